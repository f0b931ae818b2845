"""Deliveries on every store: what is due, which server claims it, how it ends."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from holdfast.core.row import SECOND
from holdfast.core.webhooks.delivery import (
    DEAD,
    DELIVERED,
    MAX_PENDING,
    PENDING,
    STATES,
    AttemptResult,
    Delivery,
    FinishedAttempt,
    choose_fairly,
    due_deliveries,
    find_failure,
)
from holdfast.core.webhooks.webhook import ACTIVE, PAUSED, Webhook
from holdfast.engine.view import View
from holdfast.store.contract.deliveries import Capacity, CursorMove
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.sql import delivery_queries
from tests.proof_size import sized
from tests.support import ACCOUNT, START, empty, make_store, put

HOOK = (ACCOUNT, "whk_1")
CAPACITY = Capacity({}, per_hook=100, per_account=1_000, in_all=100, claim_ttl=20 * SECOND)


def a_hook(hook_id="whk_1", account=ACCOUNT, **more):
    return Webhook(account, hook_id, url="https://example.com/", created_at=START, **more)


def a_delivery(seq, subject="task:a", hook=HOOK, **more):
    return Delivery(*hook, seq, subject, "task.created", "{}", START, **more)


def insert(store, *deliveries, cursor=None, seq=100):
    """Insert deliveries as the reader of the log does."""
    by_hook = {}
    for delivery in deliveries:
        by_hook.setdefault(delivery.webhook_key, []).append(delivery)
    store.deliveries.advance_cursors([CursorMove(hook, cursor, seq, tuple(found)) for hook, found in by_hook.items()])


def claim_due(store, capacity=CAPACITY, *outcomes):
    return store.deliveries.save_outcomes_and_claim(outcomes, capacity)


def claimed_keys(store, capacity=CAPACITY):
    return [(each.hook, each.seq) for each in claim_due(store, capacity)]


def arrived(delivery):
    return FinishedAttempt(delivery, AttemptResult(arrived=True, status=204))


def failed(delivery, wait=5 * SECOND):
    return FinishedAttempt(delivery, AttemptResult(arrived=False, status=500, error="status 500"), wait)


def every_delivery(store, hook=HOOK):
    return store.deliveries.page(hook, None, 2**53, 1_000)


# -- cursors ----------------------------------------------------------------------------------------------------


def test_a_cursor_moves_once_when_several_servers_read_for_a_webhook(store):
    put(store, a_hook(), kind="created")
    insert(store, a_delivery(1))
    insert(store, a_delivery(2), cursor=None)
    insert(store, a_delivery(3), cursor=7)
    assert [each.seq for each in every_delivery(store)] == [1]
    insert(store, a_delivery(101), cursor=100, seq=101)
    assert [each.seq for each in every_delivery(store)] == [101, 1]


def test_a_lagging_webhook_is_reported_with_the_bounds_of_its_log(store):
    put(store, a_hook(), a_hook("whk_2", state=PAUSED), kind="created")
    seen = store.deliveries.pending_work(10)
    assert seen.active == [HOOK]
    assert [(each.hook.id, each.cursor, each.floor, each.last) for each in seen.behind] == [("whk_1", None, 0, 2)]
    assert seen.behind[0].hook.url == "https://example.com/"
    insert(store, seq=2)
    store.deliveries.advance_cursors([CursorMove(HOOK, None, 2)])
    assert store.deliveries.pending_work(10).behind == []


def test_lagging_webhooks_are_listed_in_order_after_any_webhook(store):
    named = [("acct_1", "whk_2"), ("acct_1", "whk_3"), ("acct_2", "whk_1")]
    for account, hook_id in named:
        put(store, a_hook(hook_id, account), kind="created")
    for place, after in enumerate([("", ""), *named]):
        behind = store.deliveries.pending_work(2, after).behind
        assert [(each.hook.account, each.hook.id) for each in behind] == named[place : place + 2]
    assert store.deliveries.pending_work(2, named[-1]).active == named


def test_a_webhook_with_enough_pending_deliveries_is_not_lagging(store):
    put(store, a_hook(), kind="created")
    insert(store, *(a_delivery(-seq) for seq in range(1, MAX_PENDING + 1)), seq=0)
    assert store.deliveries.pending_work(10).behind == []
    (first,) = claim_due(store)
    claim_due(store, replace(CAPACITY, in_all=0), arrived(first))
    assert len(store.deliveries.pending_work(10).behind) == 1


def test_no_delivery_is_stored_for_a_deleted_webhook(store):
    insert(store, a_delivery(1))
    assert every_delivery(store) == []


# -- claiming ----------------------------------------------------------------------------------------------------


def test_a_delivery_waits_for_earlier_ones_of_its_subject_only(store, clock):
    put(store, a_hook(), kind="created")
    insert(store, a_delivery(1), a_delivery(2), a_delivery(3, "task:b"))
    first, other = claim_due(store)
    assert (first.seq, other.seq) == (1, 3)
    assert claimed_keys(store) == []
    assert claimed_keys(store, replace(CAPACITY, in_all=0)) == []
    (second,) = claim_due(store, CAPACITY, arrived(first), failed(other))
    assert second.seq == 2
    clock.advance(4.9)
    assert claim_due(store, CAPACITY, arrived(second)) == []
    clock.advance(0.2)
    assert claimed_keys(store) == [("whk_1", 3)]


def test_deliveries_behind_a_failed_one_wait_as_long_and_continue_after_a_dead_letter(store, clock):
    put(store, a_hook(), kind="created")
    insert(store, a_delivery(1), a_delivery(2))
    (first,) = claim_due(store)
    assert claim_due(store, CAPACITY, failed(first, 60 * SECOND)) == []
    assert {each.next_at for each in every_delivery(store)} == {START + 60 * SECOND}
    clock.advance(60)
    (first,) = claim_due(store)
    assert (first.seq, first.attempts, first.status, first.error) == (1, 1, 500, "status 500")
    (second,) = claim_due(store, CAPACITY, failed(first, None))
    assert second.seq == 2
    assert [(each.seq, each.state) for each in every_delivery(store)] == [(2, PENDING), (1, DEAD)]
    assert store.deliveries.counts(HOOK) == {PENDING: 1, DEAD: 1}


def test_an_unsettled_delivery_is_claimed_by_another_server_and_only_that_one_settles_it(store, clock):
    put(store, a_hook(), kind="created")
    insert(store, a_delivery(1))
    (lost,) = claim_due(store)
    clock.advance(19.9)
    assert claim_due(store) == []
    clock.advance(0.2)
    (claimed_again,) = claim_due(store)
    assert (claimed_again.claims, claimed_again.attempts) == (2, 0)
    claim_due(store, replace(CAPACITY, in_all=0), failed(lost))
    assert every_delivery(store)[0] == claimed_again
    claim_due(store, replace(CAPACITY, in_all=0), arrived(claimed_again))
    assert every_delivery(store)[0].state == DELIVERED
    claim_due(store, CAPACITY, failed(claimed_again))
    assert every_delivery(store)[0].state == DELIVERED


def test_a_delivery_returned_without_a_result_is_free_at_once_and_uses_no_attempt(store):
    put(store, a_hook(), kind="created")
    insert(store, a_delivery(1))
    (first,) = claim_due(store)
    (claimed_again,) = claim_due(store, CAPACITY, FinishedAttempt(first, None))
    assert (claimed_again.seq, claimed_again.attempts, claimed_again.claims) == (1, 0, 2)


def test_a_busy_receiver_uses_only_the_capacity_of_its_webhook(store):
    put(store, a_hook(), a_hook("whk_2"), kind="created")
    other = (ACCOUNT, "whk_2")
    insert(store, *(a_delivery(seq, f"task:{seq}") for seq in range(1, 300)), a_delivery(300, hook=other))
    assert claimed_keys(store, Capacity({HOOK: 8}, per_hook=8, per_account=1_000, in_all=64, claim_ttl=SECOND)) == [
        ("whk_2", 300)
    ]
    assert (
        len(claimed_keys(store, Capacity({HOOK: 6}, per_hook=8, per_account=1_000, in_all=64, claim_ttl=SECOND))) == 2
    )
    assert len(claimed_keys(store, Capacity({}, per_hook=100, per_account=1_000, in_all=5, claim_ttl=SECOND))) == 5


def test_slow_receivers_of_one_account_leave_capacity_for_others(store):
    """The account has many webhooks, and its deliveries are due first."""
    busy_hooks = [("acct_1", f"whk_{number:02}") for number in range(30)]
    late = ("acct_2", "whk_1")
    put(store, *(a_hook(hook_id, account) for account, hook_id in [*busy_hooks, late]), kind="created")
    due_first = [a_delivery(seq, f"task:{seq}", hook) for hook in busy_hooks for seq in range(1, 11)]
    insert(store, *due_first, *(a_delivery(seq, f"task:{seq}", late) for seq in range(1, 4)))
    capacity = Capacity({busy_hooks[0]: 1}, per_hook=8, per_account=16, in_all=64, claim_ttl=SECOND)
    found = claim_due(store, capacity)
    assert len([each for each in found if each.webhook_key in busy_hooks]) == 15
    assert len([each for each in found if each.webhook_key == late]) == 3
    full = Capacity(dict.fromkeys(busy_hooks[:16], 1), per_hook=8, per_account=16, in_all=64, claim_ttl=SECOND)
    assert claim_due(store, full) == []


# -- pages and replays -------------------------------------------------------------------------------------------


def test_pages_are_filtered_by_number_and_state(store):
    put(store, a_hook(), kind="created")
    insert(store, *(a_delivery(seq, f"task:{seq}") for seq in range(1, 6)))
    claim_due(
        store, replace(CAPACITY, in_all=0), *[arrived(each) for each in claim_due(store, replace(CAPACITY, in_all=2))]
    )
    pages = store.deliveries.page
    assert [each.seq for each in pages(HOOK, DELIVERED, 2**53, 10)] == [2, 1]
    assert [each.seq for each in pages(HOOK, None, 4, 2)] == [3, 2]
    assert pages((ACCOUNT, "other"), None, 2**53, 10) == []
    tested = store.deliveries.add(a_delivery(0))
    assert tested.seq < 0
    assert [each.seq for each in pages(HOOK, None, 0, 10)] == [tested.seq]


@pytest.mark.parametrize(
    ("arguments", "expected"), [({"seq": 2, "after": None}, [2]), ({"seq": None, "after": 1}, [2, 3]), ({}, [3])]
)
def test_a_replay_resends_one_or_all_settled_or_all_dead_deliveries(store, arguments, expected):
    put(store, a_hook(), kind="created")
    insert(store, *(a_delivery(seq, f"task:{seq}") for seq in range(1, 4)))
    first, second, third = claim_due(store)
    claim_due(store, replace(CAPACITY, in_all=0), arrived(first), arrived(second), failed(third, None))
    assert store.deliveries.replay(HOOK, **{"seq": None, "after": None, "limit": 10} | arguments) == expected
    assert sorted(seq for _, seq in claimed_keys(store)) == expected
    assert store.deliveries.replay((ACCOUNT, "other"), seq=1, after=None, limit=10) == []


def test_the_late_result_of_an_attempt_does_not_settle_a_delivery_that_was_replayed_meanwhile(store):
    put(store, a_hook(), kind="created")
    insert(store, a_delivery(1))
    (claimed,) = claim_due(store)
    assert store.deliveries.replay(HOOK, seq=1, after=None, limit=10) == [1]
    (claimed_again,) = claim_due(store, CAPACITY, arrived(claimed))
    assert (claimed_again.seq, claimed_again.state, claimed_again.attempts) == (1, PENDING, 0)


@pytest.mark.parametrize("how", ["replay", "hasten"])
def test_deliveries_behind_a_replayed_one_do_not_wait_for_its_former_retry_time(store, how):
    put(store, a_hook(), kind="created")
    insert(store, a_delivery(1), a_delivery(2), a_delivery(3, "task:b"))
    first, other = claim_due(store)
    assert claim_due(store, CAPACITY, failed(first, 60 * SECOND), failed(other, 60 * SECOND)) == []
    if how == "replay":
        assert store.deliveries.replay(HOOK, seq=1, after=None, limit=10) == [1]
    else:
        store.deliveries.retry_now(HOOK)
        store.deliveries.retry_now((ACCOUNT, "other"))
    due = {each.seq: each for each in claim_due(store)}
    assert set(due) == ({1} if how == "replay" else {1, 3})
    assert [each.seq for each in claim_due(store, CAPACITY, arrived(due[1]))] == [2]


def test_a_replay_continues_where_the_last_one_stopped(store):
    put(store, a_hook(), kind="created")
    insert(store, *(a_delivery(seq, f"task:{seq}") for seq in range(1, 6)))
    claim_due(store, replace(CAPACITY, in_all=0), *map(arrived, claim_due(store)))
    seen, after = [], 0
    while replayed := store.deliveries.replay(HOOK, seq=None, after=after, limit=2):
        claim_due(store, replace(CAPACITY, in_all=0), *map(arrived, claim_due(store)))
        seen += replayed
        after = replayed[-1]
    assert seen == [1, 2, 3, 4, 5]


def test_a_test_delivery_of_a_webhook_deleted_before_it_read_is_removed(store):
    put(store, a_hook(), a_hook("whk_2"), kind="created")
    store.deliveries.add(a_delivery(0))
    delete_hooks(store)
    assert store.deliveries.delete_old(START, START, 10) == 1
    assert every_delivery(store) == []


def test_old_settled_deliveries_and_those_of_deleted_webhooks_are_removed(store, clock):
    put(store, a_hook(), a_hook("whk_2"), kind="created")
    other = (ACCOUNT, "whk_2")
    insert(store, *(a_delivery(seq, f"task:{seq}") for seq in range(1, 4)), a_delivery(4, hook=other))
    first, second, _, _ = claim_due(store)
    claim_due(store, replace(CAPACITY, in_all=0), arrived(first), failed(second, None))
    clock.advance(10)
    assert store.deliveries.delete_old(START, START, 10) == 0
    assert store.deliveries.delete_old(START + SECOND, START, 10) == 1
    assert [each.seq for each in every_delivery(store)] == [3, 2]
    assert store.deliveries.delete_old(START + SECOND, START + SECOND, 10) == 1
    assert [each.seq for each in every_delivery(store)] == [3]
    delete_hooks(store)
    assert store.deliveries.delete_old(START, START, 10) == 1
    assert every_delivery(store) == every_delivery(store, other) == []


def delete_hooks(store):
    keys = tuple((Webhook.table, ACCOUNT, hook) for hook in ("whk_1", "whk_2"))
    with store.transaction() as transaction:
        view = View(transaction.load(AllNeeds.of([Needs(rows=keys)])))
        for key in keys:
            view.remove(view.at(key), "removed")
        view.keep()
        transaction.save(view.changes([]))


def test_erasing_an_account_deletes_its_deliveries(store):
    put(store, a_hook(account="acct_1"), kind="created")
    insert(store, a_delivery(1, hook=("acct_1", "whk_1")))
    store.erase("acct_1")
    assert every_delivery(store, ("acct_1", "whk_1")) == []
    assert store.deliveries.pending_work(10).active == []


# -- generated ---------------------------------------------------------------------------------------------------

moments = st.integers(START - 3, START + 3)


@st.composite
def generated(draw, seq):
    state = draw(st.sampled_from(STATES))
    return a_delivery(
        seq,
        draw(st.sampled_from(["task:a", "task:b"])),
        (ACCOUNT, draw(st.sampled_from(["whk_1", "whk_2", "whk_3"]))),
        state=state,
        next_at=draw(moments),
        claimed_until=draw(st.none() | moments),
        settled_at=None if state == PENDING else draw(moments),
    )


@given(data=st.data())
@settings(max_examples=sized(8, 50))
def test_due_deliveries_match_the_rule_in_every_store(every_store, data):
    deliveries = [data.draw(generated(seq)) for seq in range(1, data.draw(st.integers(0, 9)) + 1)]
    hooks = [HOOK, (ACCOUNT, "whk_2")]
    capacity = replace(CAPACITY, busy={hook: data.draw(st.integers(0, 2)) for hook in hooks}, per_hook=2, per_account=3)
    found = due_deliveries(deliveries, set(hooks), START)
    expected = [(each.hook, each.seq) for each in choose_fairly(found, capacity.busy, 2, 3, 100)]
    for store in every_store:
        empty(store)
        hooks = [a_hook(f"whk_{number}", state=ACTIVE if number < 3 else PAUSED) for number in (1, 2, 3)]
        put(store, *hooks, kind="created")
        write(store, deliveries)
        assert store.deliveries.pending_work(10).is_due == bool(found), store.name
        assert claimed_keys(store, capacity) == expected, store.name


@given(data=st.data())
@settings(max_examples=sized(8, 50))
def test_a_failing_receiver_is_found_by_the_rule_in_every_store(every_store, data):
    states = st.tuples(st.sampled_from(STATES), st.integers(0, 2), moments)
    deliveries = [
        replace(
            a_delivery(seq, f"task:{seq}", state=state, attempts=attempts, error="timeout"),
            created_at=created_at,
            settled_at=None if state == PENDING else START,
        )
        for seq, (state, attempts, created_at) in enumerate(data.draw(st.lists(states, max_size=8)), -2)
    ]
    other = a_delivery(50, hook=(ACCOUNT, "whk_2"), state=DELIVERED, settled_at=START)
    for store in every_store:
        empty(store)
        put(store, a_hook(), a_hook("whk_2"), kind="created")
        write(store, [*deliveries, other])
        assert store.deliveries.failure(HOOK) == find_failure(deliveries), store.name


def write(store, deliveries):
    """Insert deliveries unchanged, in any state."""
    if store.name == "memory":
        store.deliveries.rows = {(*each.webhook_key, each.seq): each for each in deliveries}
        return
    with store.write() as (execute, _):
        execute(delivery_queries.ADD, msgspec.json.encode([astuple(each) for each in deliveries]).decode())


@pytest.fixture(scope="module")
def every_store(tmp_path_factory, database):
    """One store of each kind, with a clock that does not move."""
    stores = [make_store(kind, tmp_path_factory.mktemp("stores"), lambda: database, lambda: START)
              for kind in ("memory", "sqlite", "postgres")]  # fmt: skip
    yield stores
    for store in stores:
        store.close()
