"""The transitions of a task as tables: every command in every state, and every field that it changes."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict, replace

from holdfast.core import task as tasks
from holdfast.core.errors import InvalidTransition, LeaseSuperseded, NotYetClaimable, TaskClaimed
from holdfast.core.task import CANCELLED, CLAIMED, COMPLETED, DEAD, PENDING, Task
from tests.core.states import (
    CANCELLED_TASK,
    CLAIM,
    DEAD_TASK,
    DONE,
    END,
    HELD,
    LAST,
    LATER,
    MINE,
    NEW,
    NOW,
    THEIRS,
)

LAG = tasks.SCHEDULED_LAG

STATES = {"new": NEW, "later": LATER, "held": HELD, "done": DONE, "buried": DEAD_TASK, "dropped": CANCELLED_TASK}


def changed(before: Task, after: Task) -> dict:
    old = asdict(before)
    return {name: value for name, value in asdict(after).items() if value != old[name]}


def attempt_record(task: Task) -> tuple:
    attempt = tasks.last_attempt(task)
    assert attempt is not None
    return attempt.worker, attempt.outcome, attempt.attempt, attempt.reason


FREE = {
    "principal": None, "session": None, "proof": None, "claimed_at": None, "expires_at": None, "worker": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (
            Task("default", "t1"),
            tasks.create(Task("default", "t1"), NOW),
            {"created_at": NOW, "place": NOW, "ready": True},
        ),
        (
            NEW,
            HELD,
            {
                "state": CLAIMED, "ready": False, "attempt_count": 1, "attempt": 1, "worker": "worker",
                "principal": "p1", "session": "s1", "proof": MINE, "token": 7, "claimed_at": NOW, "expires_at": END,
            },
        ),
        (HELD, tasks.heartbeat(HELD, NOW + 9), {"expires_at": END + 9}),
        (
            HELD,
            DONE,
            FREE | {"state": COMPLETED, "result": '{"n":1}', "output_id": "out_1", "ended": DONE.ended},
        ),
        (
            HELD,
            tasks.fail(HELD, reason="no", now=NOW + 1),
            FREE | {"state": PENDING, "ready": True, "failure_reason": "no"},
        ),
        (
            HELD,
            tasks.fail(HELD, reason="no", now=NOW + 1, after=5),
            FREE | {
                "state": PENDING, "failure_reason": "no", "scheduled_at": NOW + 6, "place": NOW + 6 + LAG,
            },
        ),
        (
            LAST,
            tasks.fail(LAST, reason="no", now=NOW + 1, after=5),
            FREE | {"state": DEAD, "failure_reason": "no", "dead_cause": tasks.EXHAUSTED},
        ),
        (
            HELD,
            tasks.fail(HELD, reason="no", now=NOW + 1, permanent=True),
            FREE | {"state": DEAD, "failure_reason": "no", "dead_cause": tasks.PERMANENT},
        ),
        (HELD, tasks.expire(HELD, END), FREE | {"state": PENDING, "ready": True}),
        (
            replace(LAST, failure_reason="earlier"),
            tasks.expire(replace(LAST, failure_reason="earlier"), END),
            FREE | {"state": DEAD, "dead_cause": tasks.LEASE_EXPIRED},
        ),
        (NEW, CANCELLED_TASK, {"state": CANCELLED, "ready": False}),
        (LATER, tasks.cancel(LATER), {"state": CANCELLED}),
        (
            DEAD_TASK,
            tasks.requeue(DEAD_TASK, NOW + 9),
            {"state": PENDING, "ready": True, "attempt_count": 0, "dead_cause": None},
        ),
        (
            DEAD_TASK,
            tasks.requeue(DEAD_TASK, NOW + 9, keep_count=True),
            {"state": PENDING, "ready": True, "dead_cause": None},
        ),
        (
            HELD,
            tasks.release(HELD, tasks.RELEASED, now=NOW + 1),
            FREE | {"state": PENDING, "ready": True, "attempt_count": 0},
        ),
        (
            HELD,
            tasks.release(HELD, tasks.SNOOZED, now=NOW + 1, after=5),
            FREE | {"state": PENDING, "attempt_count": 0, "scheduled_at": NOW + 6, "place": NOW + 6 + LAG},
        ),
        (HELD, tasks.undeliver(HELD, NOW + 1), FREE | {"state": PENDING, "ready": True, "attempt_count": 0}),
        (
            HELD,
            tasks.reissue(HELD, proof=THEIRS, token=8, now=NOW + 1),
            {"proof": THEIRS, "token": 8, "expires_at": END + 1},
        ),
        (HELD, tasks.request_cancel(HELD, "why"), {"cancel_requested": True, "cancel_reason": "why"}),
        (HELD, tasks.force_cancel(HELD, NOW + 1, "why"), FREE | {"state": CANCELLED, "cancel_reason": "why"}),
        (DEAD_TASK, tasks.resolve(DEAD_TASK, NOW + 1), {"resolved_at": NOW + 1}),
        (LATER, tasks.make_ready(LATER), {"ready": True}),
    ],
    ids=[
        "create", "claim", "heartbeat", "complete", "fail", "fail with a delay", "fail the last time", "fail for good",
        "expire", "expire the last time", "cancel", "cancel a scheduled one", "requeue", "requeue with its count",
        "release", "snooze", "undeliver", "reissue", "ask to stop", "force", "resolve", "ripen",
    ],
)  # fmt: skip
def test_each_transition_changes_exactly_these_fields(before, after, effect):
    expected = dict(effect)
    if after.ended != before.ended:  # how it ended is tested elsewhere; here only that it is recorded
        expected["ended"] = after.ended
    if before.worker is not None and after.state == COMPLETED:
        del expected["worker"]  # a completed task keeps its worker
    still = {name for name, value in expected.items() if getattr(before, name) == value}
    assert changed(before, after) == {name: value for name, value in expected.items() if name not in still}


@pytest.mark.parametrize(
    ("after", "expected_record"),
    [
        (DONE, ("worker", "completed", 1, None)),
        (tasks.fail(HELD, reason="no", now=NOW), ("worker", "failed", 1, "no")),
        (tasks.expire(HELD, END, reason="session expired"), ("worker", "expired", 1, "session expired")),
        (tasks.release(HELD, tasks.RELEASED, now=NOW), ("worker", "released", 1, None)),
        (tasks.force_cancel(HELD, NOW, "why"), ("worker", "cancelled", 1, "why")),
    ],
)
def test_an_ended_attempt_records_its_worker_and_its_outcome(after, expected_record):
    assert attempt_record(after) == expected_record


def test_an_undelivered_claim_records_no_attempt():
    assert tasks.undeliver(HELD, NOW).ended is None


# -- commands by state -------------------------------------------------------------------------------------------

BY_STATE = {
    # verb:           new,               later,           held,        done,              buried,            dropped
    "claim": [CLAIMED, NotYetClaimable, TaskClaimed, InvalidTransition, InvalidTransition, InvalidTransition],
    "heartbeat": [LeaseSuperseded, LeaseSuperseded, CLAIMED, InvalidTransition, InvalidTransition, LeaseSuperseded],
    "cancel": [CANCELLED, CANCELLED, TaskClaimed, InvalidTransition, InvalidTransition, InvalidTransition],
    "request": [CANCELLED, CANCELLED, CLAIMED, InvalidTransition, InvalidTransition, InvalidTransition],
    "force": [CANCELLED, CANCELLED, CANCELLED, InvalidTransition, InvalidTransition, InvalidTransition],
    "requeue": [InvalidTransition, InvalidTransition, InvalidTransition, InvalidTransition, PENDING, InvalidTransition],
    "resolve": [InvalidTransition, InvalidTransition, InvalidTransition, InvalidTransition, DEAD, InvalidTransition],
    "settle": [PENDING, PENDING, CLAIMED, COMPLETED, DEAD, CANCELLED],
}


def claim_by_id(task):
    tasks.check_claimable(task, NOW)
    return tasks.claim(task, CLAIM, proof=THEIRS, token=8, now=NOW)


def renew_if_held(task):
    tasks.check_holder(task, MINE, NOW)
    return tasks.heartbeat(task, NOW)


VERBS = {
    "claim": claim_by_id,
    "heartbeat": renew_if_held,
    "cancel": tasks.cancel,
    "request": tasks.request_cancel,
    "force": lambda task: tasks.force_cancel(task, NOW),
    "requeue": lambda task: tasks.requeue(task, NOW),
    "resolve": lambda task: tasks.resolve(task, NOW),
    "settle": lambda task: tasks.expire_if_due(task, NOW),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("state", STATES)
def test_every_command_in_every_state_has_one_outcome(verb, state):
    expected = BY_STATE[verb][list(STATES).index(state)]
    if isinstance(expected, str):
        assert VERBS[verb](STATES[state]).state == expected
        return
    with pytest.raises(expected) as caught:
        VERBS[verb](STATES[state])
    assert type(caught.value) is expected


CANCELS = {
    "no request": lambda task: task,
    "request": tasks.request_cancel,
    "force": lambda task: tasks.force_cancel(task, NOW),
}
ENDS = {
    "complete": lambda task: tasks.complete(task, result=None, output_id=None, now=NOW),
    "fail": lambda task: tasks.fail(task, reason="no", now=NOW),
    "fail for good": lambda task: tasks.fail(task, reason="no", now=NOW, permanent=True),
    "expire": lambda task: tasks.expire(task, END),
    "release": lambda task: tasks.release(task, tasks.RELEASED, now=NOW),
    "undeliver": lambda task: tasks.undeliver(task, NOW),
}
OUTCOMES_AFTER_CANCEL = {
    # what its holder does:          not cancelled, requested, forced
    "complete": [COMPLETED, COMPLETED, LeaseSuperseded],
    "fail": [PENDING, CANCELLED, LeaseSuperseded],
    "fail for good": [DEAD, CANCELLED, LeaseSuperseded],
    "expire": [PENDING, CANCELLED, LeaseSuperseded],
    "release": [PENDING, CANCELLED, LeaseSuperseded],
    "undeliver": [PENDING, CANCELLED, LeaseSuperseded],
}


@pytest.mark.parametrize("cancel", CANCELS)
@pytest.mark.parametrize("end", ENDS)
def test_every_ending_after_a_cancel_has_one_outcome(cancel, end):
    expected = OUTCOMES_AFTER_CANCEL[end][list(CANCELS).index(cancel)]
    task = CANCELS[cancel](HELD)
    if cancel == "force":
        with pytest.raises(expected) as caught:
            tasks.check_holder(task, MINE, NOW)
        assert type(caught.value) is expected
        return
    after = ENDS[end](task)
    assert after.state == expected
    assert not after.cancel_requested
    assert after.proof is None


def test_a_dead_letter_is_resolved_once_and_requeueing_it_opens_it_again():
    resolved = tasks.resolve(DEAD_TASK, NOW + 1)
    assert tasks.resolve(resolved, NOW + 9) == resolved
    assert tasks.requeue(resolved, NOW + 9).resolved_at is None


def test_replacing_the_work_takes_all_settings_and_keeps_the_position():
    wanted = Task(
        "default", "t2", type="ignored", payload='{"b":2}', priority=9, max_attempts=5, lease_duration=1, tag="tag",
        created_by="a", reviewed_by="b", source="c", backoff='{"kind":"fixed"}', unique_key="ignored",
    )  # fmt: skip
    after = tasks.replace_work(NEW, wanted, NOW + 9)
    taken_over = {
        name: getattr(wanted, name)
        for name in (
            "payload", "priority", "max_attempts", "lease_duration", "tag", "created_by", "reviewed_by", "source",
            "backoff",
        )
    }  # fmt: skip
    assert changed(NEW, after) == taken_over
    later = tasks.replace_work(NEW, replace(wanted, scheduled_at=NOW + 99), NOW)
    assert (later.ready, later.scheduled_at, later.place) == (False, NOW + 99, NOW + 99 + LAG)


def test_a_live_task_with_the_same_unique_key_prevents_requeueing():
    tasks.check_key_free(None)
    with pytest.raises(InvalidTransition) as caught:
        tasks.check_key_free(NEW)
    assert caught.value.facts == {"twin": "t1"}
