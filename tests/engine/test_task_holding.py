"""Commands of the holder of a task, and cancelling, requeueing and reviewing claims."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.core.errors import (
    InvalidTransition,
    LeaseExpired,
    LeaseSuperseded,
    TaskClaimed,
    TaskMissing,
)
from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.core.task import CANCELLED, CLAIMED, COMPLETED, DEAD, LEASE_EXPIRED, PENDING, Handover, Task, last_attempt
from holdfast.core.task.retry import Backoff
from holdfast.engine.verbs.tasks.claiming import ReviewClaim
from tests.support import START, check_log, every, run, transact
from tests.task_commands import (
    BASE,
    HOLDER_VERBS,
    LEASE,
    beat,
    cancel,
    complete,
    create,
    event_kinds,
    fail,
    lease_of,
    release_task,
    requeue,
    resolve,
    sweep,
    take,
    take_this,
    the_task,
    undeliver,
)


@pytest.mark.parametrize(
    ("verb", "state", "kind"),
    [
        (beat(), CLAIMED, "renewed"),
        (complete(result='{"a":1}', output_id="o"), COMPLETED, "completed"),
        (fail(reason="no"), PENDING, "failed"),
        (fail(permanent=True), DEAD, "dead_lettered"),
        (release_task(), PENDING, "released"),
        (release_task(outcome="snoozed", after=9), PENDING, "snoozed"),
        (undeliver(), PENDING, "undelivered"),
        (cancel(mode="request"), CLAIMED, "cancel_requested"),
        (cancel(mode="force"), CANCELLED, "cancelled"),
    ],
)
def test_each_step_of_a_task_writes_one_event(claimed_store, verb, state, kind):
    outcome = run(claimed_store, verb)
    assert outcome.task == the_task(claimed_store)
    assert outcome.task.state == state
    assert event_kinds(claimed_store) == ["created", "claimed", kind]
    check_log(claimed_store)


@pytest.mark.parametrize("verb", HOLDER_VERBS)
def test_a_superseded_holder_changes_nothing(claimed_store, clock, verb):
    clock.advance(LEASE // SECOND)
    run(claimed_store, take_this("t1", seed="next", worker="next"))
    before = the_task(claimed_store)
    with pytest.raises(LeaseSuperseded) as caught:
        run(claimed_store, HOLDER_VERBS[verb]("t1"))
    assert caught.value.facts["held_by"] == "next"
    assert lease_of("t1", "next") not in repr(caught.value.facts) + caught.value.message
    assert the_task(claimed_store) == before


def test_an_unknown_task_is_missing(store):
    for verb in (beat(), complete(), fail(), release_task(), cancel(), requeue(), resolve(), take_this()):
        with pytest.raises(TaskMissing):
            run(store, verb)


# -- notes and checkpoints ---------------------------------------------------------------------------------------


def test_the_next_holder_gets_the_last_note_and_checkpoint_that_were_left(claimed_store, clock):
    run(claimed_store, beat(handover=Handover("step 4 next", '{"step":4}', "0.5")))
    assert (the_task(claimed_store).note, the_task(claimed_store).progress) == ("step 4 next", "0.5")
    clock.advance(LEASE // SECOND)
    (again,) = run(claimed_store, take_this("t1", seed="2", worker="crasher")).taken
    assert (again.task.note, again.task.checkpoint, again.task.progress) == (None, None, None)
    run(claimed_store, release_task("t1", "2"))
    (third,) = run(claimed_store, take("work", seed="3")).taken
    attempt = last_attempt(third.task)
    assert (attempt.worker, attempt.outcome, attempt.attempt) == ("crasher", "released", 2)
    assert (attempt.note, attempt.context_from, third.task.ended_checkpoint) == ("step 4 next", 1, '{"step":4}')
    run(claimed_store, fail("t1", "3", handover=Handover(note="worse")))
    attempt = last_attempt(the_task(claimed_store))
    assert (attempt.note, attempt.context_from, the_task(claimed_store).ended_checkpoint) == ("worse", 3, None)


def test_a_failure_records_its_reason_and_its_code(claimed_store):
    run(claimed_store, fail(reason="no disk", code="ENOSPC"))
    assert the_task(claimed_store).failure_reason == "no disk"
    assert (last_attempt(the_task(claimed_store)).reason, last_attempt(the_task(claimed_store)).code) == (
        "no disk",
        "ENOSPC",
    )


def test_a_task_that_ends_in_the_batch_of_its_claim_has_its_real_token(store):
    transact(store, create("t1"), take("work"), cancel("t1", "force"))
    assert the_task(store).token == 1
    assert not any(
        '":-' in event_kinds for event_kinds in (the_task(store).ended, *(event.data for event in every(store, Event)))
    )
    check_log(store)


# -- attempts ----------------------------------------------------------------------------------------------------


def test_a_task_has_as_many_attempts_as_it_was_created_with(store):
    run(store, create("t1", max_attempts=3))
    for number in range(3):
        run(store, take("work", seed=str(number)))
        state = run(store, fail("t1", str(number), reason=f"no {number}")).task.state
        assert state == (DEAD if number == 2 else PENDING)
    assert (the_task(store).attempt_count, the_task(store).failure_reason) == (3, "no 2")
    assert run(store, requeue("t1")).task.attempt_count == 0


def test_a_release_does_not_count_the_attempt_and_an_expiry_does(claimed_store, clock):
    run(claimed_store, release_task())
    assert (the_task(claimed_store).attempt, the_task(claimed_store).attempt_count) == (1, 0)
    for seed in ("2", "3"):
        run(claimed_store, take("work", seed=seed))
        clock.advance(LEASE // SECOND)
        sweep(claimed_store)
    assert (the_task(claimed_store).state, the_task(claimed_store).dead_cause) == (DEAD, LEASE_EXPIRED)
    assert the_task(claimed_store).failure_reason is None
    assert event_kinds(claimed_store)[-2:] == ["claimed", "dead_lettered"]


def test_a_failed_task_waits_by_its_backoff_policy(store, clock):
    backoff = msgspec.json.encode(Backoff("exponential", 10, jitter=0.5)).decode()
    run(store, create("t1", backoff=backoff, max_attempts=5))
    waits = []
    for number in range(3):
        run(store, take_this("t1", seed=str(number)))
        due = run(store, fail("t1", str(number), random_fraction=1.0)).task.scheduled_at
        waits.append((due - clock.now) // SECOND)
        clock.now = due
    assert waits == [5, 10, 20]


# -- cancelling --------------------------------------------------------------------------------------------------


def test_cancelling_a_held_task_is_refused_requested_or_forced_by_mode(claimed_store):
    with pytest.raises(TaskClaimed):
        run(claimed_store, cancel())
    run(claimed_store, cancel(mode="request"))
    assert len(event_kinds(claimed_store)) == 3
    run(claimed_store, cancel(mode="request"))
    assert len(event_kinds(claimed_store)) == 3, "asking twice is asking once"
    assert run(claimed_store, beat()).task.cancel_requested
    assert run(claimed_store, cancel(mode="force", reason="now")).task.state == CANCELLED
    assert last_attempt(the_task(claimed_store)).reason == "now"
    assert run(claimed_store, cancel()).task.state == CANCELLED
    with pytest.raises(LeaseSuperseded, match="cancelled while it was held"):
        run(claimed_store, complete())


@pytest.mark.parametrize("mode", ["pending", "request", "force"])
def test_the_reason_of_a_cancellation_is_stored_and_returned(store, mode):
    transact(store, create("t1"))
    assert run(store, cancel(mode=mode, reason="done by another task")).task.cancel_reason == "done by another task"
    assert msgspec.json.decode(every(store, Event)[-1].data)["cancel_reason"] == "done by another task"


def test_a_holder_that_is_asked_to_stop_gets_the_reason(claimed_store):
    run(claimed_store, cancel(mode="request", reason="too late"))
    assert run(claimed_store, beat()).task.cancel_reason == "too late"
    run(claimed_store, cancel(mode="request"))
    assert run(claimed_store, beat()).task.cancel_reason == "too late", "asking again without a word takes none back"


@pytest.mark.parametrize(
    ("verb", "state"),
    [(complete(), COMPLETED), (fail(), CANCELLED), (release_task(), CANCELLED), (undeliver(), CANCELLED)],
)
def test_a_holder_that_was_asked_to_stop_ends_it(claimed_store, verb, state):
    run(claimed_store, cancel(mode="request"))
    assert run(claimed_store, verb).task.state == state
    check_log(claimed_store)


@pytest.mark.parametrize("mode", ["pending", "request", "force"])
def test_a_lapsed_task_can_be_cancelled_before_the_sweep(claimed_store, clock, mode):
    clock.advance(LEASE // SECOND)
    assert run(claimed_store, cancel(mode=mode)).task.state == CANCELLED
    assert event_kinds(claimed_store) == ["created", "claimed", "expired", "cancelled"]
    check_log(claimed_store)


def test_a_holder_that_was_asked_to_stop_and_lapsed_leaves_a_cancelled_task(claimed_store, clock):
    run(claimed_store, cancel(mode="request"))
    clock.advance(LEASE // SECOND)
    assert run(claimed_store, cancel()).task.state == CANCELLED
    assert event_kinds(claimed_store)[-1] == "cancelled"


def test_a_dead_letter_is_resolved_once(claimed_store):
    run(claimed_store, fail(permanent=True))
    for _ in range(2):
        assert run(claimed_store, resolve()).task.resolved_at == START
    assert event_kinds(claimed_store)[-2:] == ["dead_lettered", "resolved"]
    run(claimed_store, requeue())
    with pytest.raises(InvalidTransition):
        run(claimed_store, resolve())


# -- reviewing claims --------------------------------------------------------------------------------------------


def test_reviewing_a_claim_returns_its_live_leases_and_grants_nothing(store, clock):
    transact(store, create("t1"), create("t2"), take("work", limit=2))
    clock.advance(9)
    run(store, beat("t1"))
    review = ReviewClaim(**BASE, task_ids=("t1", "t2"), lease_ids=(lease_of("t1"), lease_of("t2")))
    assert [each.task for each in run(store, review).taken] == every(store, Task)
    run(store, complete("t2"))
    before = every(store, Task)
    assert [(each.task.id, each.lease_id) for each in run(store, review).taken] == [("t1", lease_of("t1"))]
    clock.advance(LEASE // SECOND)
    with pytest.raises(LeaseExpired):
        run(store, review)
    assert every(store, Task) == before
