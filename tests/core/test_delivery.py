"""Deliveries: when they are retried, when they are given up, and which are sent first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core.row import SECOND
from holdfast.core.webhooks.delivery import (
    DEAD,
    DELIVERED,
    MAX_RETRY_AFTER,
    PENDING,
    SCHEDULE,
    AttemptResult,
    Delivery,
    FinishedAttempt,
    at_capacity,
    choose_fairly,
    claim,
    find_failure,
    record_attempt,
    replay,
    retry_wait,
)

FAILED = AttemptResult(arrived=False, status=500, error="status 500")
NOW = 1_000 * SECOND


def a_delivery(seq=1, hook="whk_1", **more):
    return Delivery("acct", hook, seq, "task:a", "task.created", "{}", 0, **more)


def test_the_retry_schedule_goes_from_seconds_to_a_day():
    hours = 3600
    assert (
        5, 300, 1800, 2 * hours, 5 * hours, 10 * hours, 14 * hours, 20 * hours, 24 * hours,
    ) == SCHEDULE  # fmt: skip


@given(attempts=st.integers(1, 12), fraction=st.floats(0, 1))
def test_a_wait_is_never_shorter_than_planned_and_at_most_a_fifth_longer(attempts, fraction):
    wait = retry_wait(attempts, FAILED, SCHEDULE, fraction)
    if attempts > len(SCHEDULE):
        assert wait is None
    else:
        planned = SCHEDULE[attempts - 1] * SECOND
        assert planned <= wait <= planned * 1.2


@pytest.mark.parametrize(("asked", "waited"), [(None, 5), (1, 5), (60, 60), (10**9, MAX_RETRY_AFTER)])
def test_retry_after_of_a_receiver_is_honoured_up_to_its_maximum(asked, waited):
    verdict = AttemptResult(arrived=False, status=429, retry_after=asked)
    assert retry_wait(1, verdict, SCHEDULE, 0.0) == waited * SECOND


def test_an_attempt_ends_in_one_of_four_ways():
    taken = claim(a_delivery(), NOW + SECOND)
    arrived = record_attempt(FinishedAttempt(taken, AttemptResult(arrived=True, status=204)), NOW)
    assert (arrived.state, arrived.attempts, arrived.status, arrived.settled_at) == (DELIVERED, 1, 204, NOW)
    waits = record_attempt(FinishedAttempt(taken, FAILED, 5 * SECOND), NOW)
    assert (waits.state, waits.attempts, waits.next_at, waits.error) == (PENDING, 1, NOW + 5 * SECOND, "status 500")
    dead = record_attempt(FinishedAttempt(taken, FAILED, None), NOW)
    assert (dead.state, dead.attempts, dead.settled_at) == (DEAD, 1, NOW)
    unknown = record_attempt(FinishedAttempt(taken, None), NOW)
    assert (unknown.state, unknown.attempts, unknown.next_at) == (PENDING, 0, 0)
    assert {each.claimed_until for each in (arrived, waits, dead, unknown)} == {None}


def test_a_replay_has_all_attempts_again_and_cancels_the_current_claim():
    dead = record_attempt(FinishedAttempt(claim(a_delivery(), NOW), FAILED, None), NOW)
    again = replay(dead, NOW + 5)
    assert (again.state, again.attempts, again.next_at, again.settled_at) == (PENDING, 0, NOW + 5, None)
    assert again.claims == dead.claims + 1


@given(
    accounts=st.lists(st.sampled_from(["a", "b", "c"]), max_size=30), busy=st.integers(0, 6), places=st.integers(0, 12)
)
def test_deliveries_are_chosen_in_rotation_within_the_account_limit(accounts, busy, places):
    found = [replace(a_delivery(seq, f"whk_{seq}"), account=account) for seq, account in enumerate(accounts)]
    chosen = choose_fairly(found, {("a", "whk_x"): busy}, 8, 4, places)
    has = {account: sum(each.account == account for each in chosen) + busy * (account == "a") for account in "abc"}
    assert all(has[account] <= max(4, busy * (account == "a")) for account in "abc")
    assert at_capacity({("a", "whk_x"): busy}, 8, 4) == ([], ["a"] if busy >= 4 else [])
    for account in set(accounts) - {
        each.account for each in chosen
    }:  # accounts without a delivery had the most attempts already
        assert has[account] >= 4 or len(chosen) == places
    if len(chosen) == places and "b" in accounts and "c" in accounts:
        wanting = [each for each in "bc" if accounts.count(each) > has[each] and has[each] < 4]
        assert all(has[other] <= has[each] + 1 for each in wanting for other in "bc")


@given(hooks=st.lists(st.sampled_from(["a", "b", "c"]), max_size=30), busy=st.integers(0, 5), places=st.integers(0, 20))
def test_no_webhook_or_account_exceeds_its_limit_of_attempts(hooks, busy, places):
    found = [a_delivery(seq, hook) for seq, hook in enumerate(hooks)]
    chosen = choose_fairly(found, {("acct", "a"): busy}, 4, 100, places)
    assert len(chosen) <= places
    of = {hook: sum(each.hook == hook for each in chosen) for hook in "abc"}
    assert of["a"] <= max(4 - busy, 0)
    assert max(of["b"], of["c"]) <= 4
    if len(chosen) < places:  # deliveries that were left out belong to a webhook or account at its limit
        left = {each.hook for each in found} - {each.hook for each in found if each in chosen}
        assert left <= {"a"}


def test_a_receiver_fails_from_the_first_failed_delivery_after_the_last_that_arrived():
    arrived = a_delivery(3, state=DELIVERED, attempts=2)
    older = a_delivery(2, state=DEAD, attempts=10, error="status 500")
    assert find_failure([older, arrived, a_delivery(4)]) is None, "nothing newer was tried"
    first = replace(a_delivery(5, attempts=1, error="timeout"), created_at=7)
    last = a_delivery(6, state=DEAD, attempts=10, error="the host name does not resolve")
    failure = find_failure([last, a_delivery(7), first, older, arrived])
    assert (failure.since, failure.last) == (7, last)
    assert find_failure([first, last, a_delivery(8, state=DELIVERED, attempts=1)]) is None
    assert find_failure([a_delivery(-5, attempts=1, error="a test")]) is None
