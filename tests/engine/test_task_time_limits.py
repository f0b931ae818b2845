"""Deadlines of tasks and limits of attempts: no lease outlasts them, and what is over becomes a dead letter."""

from __future__ import annotations

import pytest

from holdfast.core.errors import Invalid, InvalidTransition, LeaseExpired
from holdfast.core.offer import offer_of
from holdfast.core.row import SECOND
from holdfast.core.task import DEAD, DEADLINE, DEPENDENCIES, PENDING, last_attempt
from holdfast.core.task.retry import default_backoff
from holdfast.engine.expiry import GiveGrace
from holdfast.engine.verbs.tasks.claiming import Claimed, Empty
from holdfast.store.contract import TaskPath
from holdfast.store.memory.transaction import MemoryTransaction
from tests.support import START, check_log, run, transact
from tests.task_commands import (
    BASE,
    LEASE,
    beat,
    cancel,
    create,
    event_kinds,
    fail,
    offer_task,
    requeue,
    sweep,
    take,
    take_this,
    the_task,
    withdraw_task,
)

HOUR = 3600 * SECOND


@pytest.mark.parametrize("limit", [{"deadline_at": START + LEASE + 9 * SECOND}, {"max_run": LEASE + 9 * SECOND}])
def test_no_lease_is_granted_or_renewed_past_the_limit(store, clock, limit):
    run(store, create("t1", **limit))
    end = START + LEASE + 9 * SECOND
    (granted,) = run(store, take("work")).taken
    assert (granted.task.expires_at, granted.task.run_until) == (START + LEASE, end)
    clock.advance(10)
    assert run(store, beat()).task.expires_at == end
    for extend in (offer_task(lasts=HOUR), withdraw_task(), GiveGrace(**BASE, key=granted.task.key, last_beat=START)):
        run(store, extend)
        assert the_task(store).expires_at <= end
    check_log(store)


def test_an_offer_ends_with_the_attempt_at_the_latest(store):
    transact(store, create("t1", max_run=LEASE + 9 * SECOND), take("work"))
    offered = run(store, offer_task(lasts=HOUR)).task
    assert offer_of(offered).until == offered.expires_at == START + LEASE + 9 * SECOND
    assert offer_of(run(store, offer_task(lasts=SECOND)).task).until == START + SECOND
    check_log(store)


def test_an_offered_task_is_not_taken_over_after_its_deadline_by_the_wall_clock(memory, clock, monkeypatch):
    transact(memory, create("t1", deadline_at=START + HOUR), take("work"), offer_task("t1"))
    monkeypatch.setattr(memory, "wall", lambda: clock.now + HOUR)
    with pytest.raises(InvalidTransition, match="the deadline of this task has passed"):
        run(memory, take_this("t1", seed="s2", offer="code-1"))
    assert event_kinds(memory) == ["created", "claimed", "offered"]


def test_a_claim_near_the_deadline_gets_only_the_time_that_is_left(store, clock):
    run(store, create("t1", deadline_at=START + 100 * SECOND))
    clock.advance(95)
    (granted,) = run(store, take("work", lease=HOUR)).taken
    assert granted.task.expires_at == START + 100 * SECOND


def test_a_task_that_waits_for_a_worker_is_a_dead_letter_at_its_deadline(store, clock):
    run(store, create("t1", deadline_at=START + 100 * SECOND))
    clock.advance(100)
    assert isinstance(run(store, take("work")), Empty), "although no sweep has run yet"
    assert sweep(store) == [True]
    task = the_task(store)
    assert (task.state, task.dead_cause, task.ready) == (DEAD, DEADLINE, False)
    assert event_kinds(store) == ["created", "dead_lettered"]
    assert sweep(store) == []
    check_log(store)


@pytest.mark.parametrize("types", [("work",), ()])
@pytest.mark.parametrize("able", [{}, {"requires": "gpu"}], ids=["", "gpu"])
@pytest.mark.parametrize("limit", [1, 3])
def test_tasks_whose_deadline_has_passed_hide_none_behind_them(store, clock, types, able, limit):
    transact(store, *(create(f"t{n:02}", deadline_at=START + 100 * SECOND, **able) for n in range(20)))
    transact(store, create("v", scheduled_at=START + 50 * SECOND, **able), *(create(f"u{n}", **able) for n in range(2)))
    clock.advance(100)
    claim = take(*types, limit=limit, capabilities=able.get("requires", ""))
    assert [each.task.id for each in run(store, claim).taken] == ["u0", "u1", "v"][:limit]


def test_they_make_only_the_claims_of_their_own_queue_load_more(memory, clock, monkeypatch):
    counts, load = [], MemoryTransaction.load

    def count_and_load(transaction, needs, *more):
        counts.append({task_type: count for _, task_type, count in needs.ready})
        return load(transaction, needs, *more)

    transact(memory, *(create(f"t{n:02}", deadline_at=START + 100 * SECOND) for n in range(20)), create("u"))
    transact(memory, create("v", type="other"))
    clock.advance(100)
    monkeypatch.setattr(MemoryTransaction, "load", count_and_load)
    taken = transact(memory, take("work"), take("other"))
    assert [each.task.id for outcome in taken for each in outcome.taken] == ["u", "v"]
    assert counts[-1]["work"] > 20
    assert counts[-1]["other"] == 1


@pytest.mark.parametrize(
    "waiting", [{"scheduled_at": START + 50 * SECOND}, {"unmet": 1}, {"unmet": 1, "scheduled_at": START + 50 * SECOND}]
)
def test_so_is_one_that_waits_for_something_else(store, clock, waiting):
    run(store, create("t1", deadline_at=START + 100 * SECOND, **waiting))
    clock.advance(100)
    sweep(store)
    task = the_task(store)
    assert (task.state, task.dead_cause, task.waits_for) == (DEAD, DEADLINE, None)
    assert sweep(store) == []
    check_log(store)


def test_a_claim_by_id_after_the_deadline_is_refused_and_makes_it_a_dead_letter_no_sooner(store, clock):
    run(store, create("t1", deadline_at=START + 100 * SECOND))
    clock.advance(100)
    with pytest.raises(InvalidTransition):
        run(store, take_this())


def test_a_held_task_is_a_dead_letter_at_its_deadline_although_attempts_are_left(store, clock):
    transact(store, create("t1", deadline_at=START + 100 * SECOND, max_attempts=9), take("work", lease=HOUR))
    clock.advance(100)
    with pytest.raises(LeaseExpired):
        run(store, beat())
    sweep(store)
    task = the_task(store)
    assert (task.state, task.dead_cause) == (DEAD, DEADLINE)
    assert last_attempt(task).reason == "the deadline has passed"
    check_log(store)


def test_an_attempt_that_takes_too_long_ends_and_the_next_one_has_its_full_time(store, clock):
    transact(store, create("t1", max_run=40 * SECOND, max_attempts=2), take("work"))
    for _ in range(4):
        clock.advance(10)
        transact(store, beat())
    sweep(store)
    task = the_task(store)
    assert (task.state, task.attempt_count, task.run_until) == (PENDING, 1, None)
    assert last_attempt(task).reason == "the attempt took longer than `maxRunSeconds`"
    (granted,) = run(store, take("work", seed="s2")).taken
    assert granted.task.run_until == START + 80 * SECOND
    clock.advance(40)
    sweep(store)
    assert (the_task(store).state, the_task(store).dead_cause) == (DEAD, DEADLINE)
    check_log(store)


def test_a_requeued_dead_letter_has_no_passed_deadline_any_more(store, clock):
    run(store, create("t1", deadline_at=START + 100 * SECOND))
    clock.advance(100)
    sweep(store)
    assert run(store, requeue()).task.deadline_at is None
    assert isinstance(run(store, take("work")), Claimed)
    check_log(store)


def test_a_cancelled_task_stays_cancelled_at_its_deadline(store, clock):
    transact(store, create("t1", deadline_at=START + 100 * SECOND), cancel())
    clock.advance(100)
    assert sweep(store) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"deadline_at": START},
        {"deadline_at": START + 366 * 24 * HOUR},
        {"deadline_at": START + 50 * SECOND, "scheduled_at": START + 50 * SECOND},
    ],
)
def test_a_deadline_that_makes_no_sense_is_refused(store, wrong):
    with pytest.raises(Invalid) as caught:
        run(store, create("t1", **wrong))
    assert caught.value.errors[0]["pointer"] == "/deadlineAt"


# -- the backoff of tasks without one ----------------------------------------------------------------------------


def failing(**more):
    return fail(default_backoff=default_backoff(5, 300), **more)


def test_a_failure_without_a_delay_comes_back_after_the_default_backoff(store, clock):
    run(store, create("t1", max_attempts=9))
    delays = []
    for _ in range(8):
        run(store, take("work"))
        task = run(store, failing()).task
        delays.append((task.scheduled_at - clock.now) // SECOND)
        clock.now = task.scheduled_at
    assert delays == [5, 10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(
    ("create_with", "fail_with", "delay"),
    [
        ({}, {"random_fraction": 1.0}, 3_750_000),
        ({}, {"after": 0}, 0),
        ({}, {"after": 7 * SECOND}, 7 * SECOND),
        ({"backoff": '{"kind":"fixed","base_seconds":2}'}, {}, 2 * SECOND),
        ({}, {"seed": None}, None),
    ],
    ids=["jitter", "at once", "as asked", "its own policy", "without a lease id"],
)
def test_what_the_caller_or_the_task_says_comes_first(store, clock, create_with, fail_with, delay):
    transact(store, create("t1", **create_with), take("work"))
    task = run(store, failing(**fail_with)).task
    assert task.scheduled_at == (None if delay is None else clock.now + delay)


def test_a_waiting_task_is_listed_by_what_it_waits_for(store):
    transact(store, create("t1", unmet=1), create("t2"))
    assert the_waiting(store) == ["t1"]


def the_waiting(store):
    with store.read() as reader:
        return [task.id for task in reader.tasks("default", TaskPath(waits_for=DEPENDENCIES), "~", 9)]
