"""Backoff: the delays of each policy, their bounds and their jitter."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.limits import MAX_DELAY
from holdfast.core.row import SECOND
from holdfast.core.task import DEAD, PENDING, retry
from holdfast.core.task.retry import Backoff
from tests.core.states import HELD, LAST, NOW

seconds = st.floats(0, MAX_DELAY)
fractions = st.floats(0, 1)
policies = st.builds(
    Backoff,
    kind=st.sampled_from(["fixed", "linear", "exponential"]),
    base_seconds=seconds,
    max_seconds=seconds,
    jitter=fractions,
)


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        (Backoff("fixed", 7), [7, 7, 7, 7, 7]),
        (Backoff("linear", 7), [7, 14, 21, 28, 35]),
        (Backoff("exponential", 7), [7, 14, 28, 56, 112]),
        (Backoff("linear", 7, max_seconds=20), [7, 14, 20, 20, 20]),
        (Backoff("exponential", 0.5, max_seconds=3), [0.5, 1, 2, 3, 3]),
        (Backoff("exponential", 0), [0, 0, 0, 0, 0]),
        (Backoff("fixed", 9, max_seconds=0), [0, 0, 0, 0, 0]),
        (Backoff("fixed"), [1, 1, 1, 1, 1]),
    ],
    ids=str,
)
def test_each_backoff_kind_has_its_delays(policy, delays):
    assert [retry.delay(policy, attempt, 0.0) / SECOND for attempt in range(1, 6)] == delays


@given(policy=policies, attempt=st.integers(1, 10_000), fraction=fractions)
def test_no_delay_is_negative_or_above_its_bound_or_above_thirty_days(policy, attempt, fraction):
    delay = retry.delay(policy, attempt, fraction)
    assert isinstance(delay, int)
    assert 0 <= delay <= policy.max_seconds * SECOND
    assert delay <= MAX_DELAY * SECOND


@given(policy=policies, attempt=st.integers(1, 50), fraction=fractions)
def test_jitter_removes_at_most_its_share_of_the_delay(policy, attempt, fraction):
    whole = retry.delay(replace(policy, jitter=0.0), attempt, fraction)
    delay = retry.delay(policy, attempt, fraction)
    assert whole * (1 - policy.jitter) - 1 <= delay <= whole
    assert retry.delay(policy, attempt, 0.0) == whole


@given(policy=policies, attempt=st.integers(1, 100), fraction=fractions)
def test_a_later_attempt_never_waits_less(policy, attempt, fraction):
    assert retry.delay(policy, attempt, fraction) <= retry.delay(policy, attempt + 1, fraction)


def test_with_full_jitter_the_whole_delay_is_random():
    policy = Backoff("fixed", 8, jitter=1.0)
    assert [retry.delay(policy, 1, number) / SECOND for number in (0.0, 0.25, 0.5, 1.0)] == [8, 6, 4, 0]


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        (Backoff("fixed", 0, max_seconds=0, jitter=0), None),
        (Backoff("fixed", MAX_DELAY, max_seconds=MAX_DELAY, jitter=1), None),
        (Backoff("fixed", -0.1), "base_seconds"),
        (Backoff("fixed", MAX_DELAY + 1), "base_seconds"),
        (Backoff("fixed", max_seconds=-1), "max_seconds"),
        (Backoff("fixed", max_seconds=MAX_DELAY + 1), "max_seconds"),
        (Backoff("fixed", jitter=-0.1), "jitter"),
        (Backoff("fixed", jitter=1.1), "jitter"),
        (Backoff("fixed", float("nan")), "base_seconds"),
        (Backoff("fixed", float("inf")), "base_seconds"),
    ],
    ids=str,
)
def test_a_policy_out_of_bounds_is_refused_with_the_field(policy, wrong):
    problem = retry.backoff_problem(policy)
    assert problem is None if wrong is None else wrong in problem


def test_a_failed_task_waits_by_its_policy_unless_the_holder_sends_a_delay():
    policy = msgspec.json.encode(Backoff("exponential", 4, jitter=0.5)).decode()
    task = replace(HELD, backoff=policy, max_attempts=5, attempt_count=3)
    waits = tasks.fail(task, reason=None, now=NOW, random_fraction=1.0)
    assert (waits.state, waits.scheduled_at, waits.ready) == (PENDING, NOW + 8 * SECOND, False)
    assert tasks.fail(task, reason=None, now=NOW, after=3).scheduled_at == NOW + 3
    at_once = tasks.fail(task, reason=None, now=NOW, after=0)
    assert (at_once.scheduled_at, at_once.ready) == (NOW, True)


def test_a_policy_delays_neither_an_expired_task_nor_a_dead_letter():
    policy = msgspec.json.encode(Backoff("fixed", 4)).decode()
    expired = tasks.expire(replace(HELD, backoff=policy), NOW)
    assert (expired.ready, expired.scheduled_at) == (True, None)
    assert tasks.fail(replace(LAST, backoff=policy), reason=None, now=NOW).state == DEAD
