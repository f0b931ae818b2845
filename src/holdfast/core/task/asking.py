"""Questions of a task: asking ends the attempt, and the task waits until it is answered, rejected or expired."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import Invalid
from holdfast.core.limits import MAX_QUESTIONS
from holdfast.core.question import Answered, follow
from holdfast.core.row import Instant
from holdfast.core.task.ending import cancel, release, stop_waiting
from holdfast.core.task.queueing import requeue_waiting
from holdfast.core.task.row import ASKED, CANCELLED, DEAD, UNANSWERED, Task
from holdfast.decoding import decode


def ask(task: Task, question_id: str, *, now: Instant, wall: Instant) -> Task:
    """End the holder's attempt, uncounted: the task waits for the answer; cancelled if its holder was asked to stop."""
    check_may_ask(task)
    back = release(task, ASKED, now=now, wall=wall)
    return back if back.state == CANCELLED else await_answer(back, question_id, wall)


def check_may_ask(task: Task) -> None:
    """Refuse a question of a task that got as many answers as allowed: asking is uncounted and could go on forever."""
    last = last_answer(task)
    if last is not None and last.number >= MAX_QUESTIONS:
        message = f"this task got {last.number} answers, as many as one task may: complete, fail or release it"
        raise Invalid(message, [{"pointer": "/question", "code": "out_of_range", "message": message}])


def await_answer(task: Task, question_id: str, wall: Instant) -> Task:
    """The pending task, waiting for the answer to this question."""
    return requeue_waiting(replace(task, question=question_id), wall)


def take_answer(task: Task, answer: Answered, wall: Instant) -> Task:
    """The task with its answer: in its queue, unless it waits for something else."""
    text = msgspec.json.encode(follow(last_answer(task), answer)).decode()
    return requeue_waiting(replace(task, question=None, answered=text), wall)


def reject(task: Task, answer: Answered) -> Task:
    """Cancel a task that was not approved."""
    reason = f"{answer.by} rejected it" + (f": {answer.reason}" if answer.reason else "")
    text = msgspec.json.encode(answer).decode()
    return replace(cancel(task, reason), question=None, answered=text)


def end_unanswered(task: Task) -> Task:
    """Make a task whose question expired a dead letter. It keeps the question: requeued, it asks again."""
    return replace(stop_waiting(task), state=DEAD, ready=False, dead_cause=UNANSWERED)


def last_answer(task: Task) -> Answered | None:
    """The last answer that it got, if any."""
    return None if task.answered is None else decode(task.answered, Answered)
