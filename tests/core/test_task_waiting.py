"""Tasks that wait for something beside their schedule: in no queue until nothing is left to wait for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.errors import Invalid, NotYetClaimable
from holdfast.core.limits import MAX_QUESTIONS
from holdfast.core.question import Answered
from holdfast.core.row import SECOND
from holdfast.core.task import Task
from tests.core.states import NOW
from tests.support import START
from tests.task_commands import a_claimed

DUE = NOW + 5 * SECOND
REASONS = {tasks.DEPENDENCIES: {"unmet": 2}, tasks.ANSWER: {"question": "q1"}}
NOTHING = {"unmet": 0, "question": None}


def waiting(reason: str, scheduled_at: int | None = None) -> Task:
    return tasks.create(Task("default", "t1", scheduled_at=scheduled_at, **REASONS[reason]), NOW)


@pytest.mark.parametrize("reason", REASONS)
def test_a_waiting_task_cannot_be_claimed_and_the_refusal_says_why(reason):
    task = waiting(reason)
    assert (task.state, task.ready, task.waits_for) == (tasks.PENDING, False, reason)
    assert not tasks.is_claimable(task, NOW)
    with pytest.raises(NotYetClaimable) as caught:
        tasks.check_claimable(task, NOW)
    assert caught.value.facts["waiting_for"] == reason


@pytest.mark.parametrize("reason", REASONS)
def test_a_waiting_task_with_a_schedule_is_not_enqueued_by_the_sweep_when_it_is_due(reason):
    task = waiting(reason, DUE)
    assert (tasks.is_schedule_due(task, DUE), tasks.is_claimable(task, DUE), tasks.deadline(task)) == (
        False,
        False,
        None,
    )
    free = tasks.requeue_waiting(replace(task, **NOTHING), NOW)
    assert (free.waits_for, free.ready, free.scheduled_at, free.planned_at) == (None, False, DUE, None)
    assert tasks.requeue_waiting(replace(task, **NOTHING), DUE).ready


def test_a_task_that_waits_for_several_things_is_ready_after_the_last_of_them():
    task = tasks.create(Task("default", "t1", unmet=1, question="q1"), NOW)
    seen = [task.waits_for]
    for met in ({"unmet": 0}, {"question": None}):
        task = tasks.requeue_waiting(replace(task, **met), NOW)
        seen.append(task.waits_for)
    assert seen == [tasks.DEPENDENCIES, tasks.ANSWER, None]
    assert task.ready


def test_a_cancelled_task_waits_for_nothing():
    task = tasks.cancel(waiting(tasks.DEPENDENCIES, DUE))
    assert (task.state, task.waits_for, task.scheduled_at, task.planned_at) == (tasks.CANCELLED, None, DUE, None)


def test_a_task_that_got_as_many_answers_as_allowed_asks_no_more():
    held = a_claimed()
    for number in range(1, MAX_QUESTIONS + 1):
        parked = tasks.ask(held, f"t1-{number}", now=START, wall=START)
        ready = tasks.take_answer(parked, Answered(f"t1-{number}", "Which?", "this", "ann", START), START)
        assert tasks.last_answer(ready).number == number
        held = replace(held, answered=ready.answered)
    with pytest.raises(Invalid, match=f"got {MAX_QUESTIONS} answers") as refused:
        tasks.ask(held, "t1-x", now=START, wall=START)
    assert refused.value.errors[0]["pointer"] == "/question"
