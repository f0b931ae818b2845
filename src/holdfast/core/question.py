"""Questions: a task waits until a person has answered.

A worker asks about the task that it holds; an approval is asked for when the task is created. An open question is
answered, expires at its deadline, or is withdrawn when its task ends. A dead letter that is requeued asks again.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import Invalid, QuestionClosed, QuestionMissing
from holdfast.core.limits import MAX_DEADLINE_AHEAD
from holdfast.core.row import SECOND, Instant, Row
from holdfast.decoding import decoder

OPEN, ANSWERED, EXPIRED, WITHDRAWN = "open", "answered", "expired", "withdrawn"
QUESTION_STATES = (OPEN, ANSWERED, EXPIRED, WITHDRAWN)

WORKER, APPROVAL = "question", "approval"
QUESTION_KINDS = (WORKER, APPROVAL)
"""Asked by the holder of the task, or before its first claim."""

APPROVE, REJECT = "approve", "reject"
APPROVAL_CHOICES = (APPROVE, REJECT)
APPROVAL_TEXT = "May this task run?"
"""The text of an approval that was asked for without one."""

TIMEOUT = "timeout"
"""Who answered a question whose default answer was taken at its deadline."""

_decode_choices = decoder(list[str])


class QuestionContent(msgspec.Struct, frozen=True):
    """The content of a question: text, choices, deadline and default answer."""

    text: str
    choices: tuple[str, ...] = ()
    """The possible answers; none for an answer in free text."""
    deadline_at: Instant | None = None
    """When it expires, by the wall clock."""
    on_timeout: str | None = None
    """The answer at the deadline; without one the task becomes a dead letter."""
    kind: str = WORKER


class Question(Row, frozen=True):
    """The row of a question."""

    table: ClassVar[str] = "questions"
    noun: ClassVar[str] = "question"
    json: ClassVar[frozenset[str]] = frozenset({"choices"})

    task: str = ""
    """The id of the task that waits for the answer."""
    task_type: str = ""
    kind: str = WORKER
    text: str = ""
    choices: str = "[]"
    """The possible answers as a JSON array; empty if any text is one."""
    on_timeout: str | None = None
    asked_at: Instant = 0
    deadline_at: Instant | None = None
    """When it expires, by the wall clock: people set it. `asked_at` is by the same clock."""
    worker: str | None = None
    """The label of the worker that asked."""
    attempt: int = 0
    """The attempt of the task that asked; 0 before the first one."""
    state: str = OPEN
    answer: str | None = None
    reason: str | None = None
    """Why, in the words of who answered."""
    answered_by: str | None = None
    """The name of the key that answered."""
    answered_at: Instant | None = None


class Answered(msgspec.Struct, frozen=True):
    """An answered question as its task keeps it for the next worker."""

    id: str
    question: str
    answer: str
    by: str
    at: Instant
    kind: str = WORKER
    reason: str | None = None
    number: int = 1
    """Which answer of the task it is: the first, the second and so on."""
    approval: str | None = None
    """The text of the approval that the task got earlier, if this is the answer to another question."""


def question_id(task_id: str, version: int) -> str:
    """The id of the question that a task asks with this version of its row: it contains the id of the task."""
    return f"{task_id}-{version}"


def task_of(row_id: str) -> str:
    """The id of the task that asks a question."""
    return row_id.rpartition("-")[0]


def ask(
    row: Question,
    content: QuestionContent,
    *,
    task_type: str,
    wall: Instant,
    worker: str | None = None,
    attempt: int = 0,
) -> Question:
    """Fill a blank row: account, id and task."""
    check_content(content, wall)
    return replace(
        row,
        task_type=task_type,
        kind=content.kind,
        text=content.text,
        choices=msgspec.json.encode(content.choices).decode(),
        on_timeout=content.on_timeout,
        asked_at=wall,
        deadline_at=content.deadline_at,
        worker=worker,
        attempt=attempt,
    )


def ask_again(question: Question, wall: Instant) -> Question:
    """Open a question again, with as much time for the answer as it had."""
    time = None if question.deadline_at is None else question.deadline_at - question.asked_at
    return replace(question, state=OPEN, asked_at=wall, deadline_at=None if time is None else wall + time)


def answer(question: Question, text: str, *, by: str, reason: str | None, wall: Instant) -> Question:
    """Close a question with an answer; it must be one of its choices, if it has any."""
    check_open(question, wall)
    choices = choices_of(question)
    if choices and text not in choices:
        message = f"`answer` must be one of {', '.join(choices)}"
        raise Invalid(message, [{"pointer": "/answer", "code": "invalid", "message": message}])
    return replace(question, state=ANSWERED, answer=text, reason=reason, answered_by=by, answered_at=wall)


def approval_again(asked: Question | None, last: Answered | None, wall: Instant) -> QuestionContent | None:
    """The approval that a task needs once more when its work is replaced; None if it never needed one.

    `asked` is its open question, `last` its last answer: that, or an earlier one, approved the work before.
    """
    if asked is not None and asked.kind == APPROVAL:
        again = ask_again(asked, wall)
        return QuestionContent(again.text, APPROVAL_CHOICES, again.deadline_at, again.on_timeout, APPROVAL)
    text = approved_text(last)
    return None if text is None else QuestionContent(text, APPROVAL_CHOICES, kind=APPROVAL)


def approved_text(last: Answered | None) -> str | None:
    """The text of the approval that a task with this last answer got; None if it needed none."""
    if last is None or last.kind == APPROVAL:
        return None if last is None else last.question
    return last.approval


def follow(last: Answered | None, answer: Answered) -> Answered:
    """An answer as its task keeps it in the place of the last one: counted, and with the approval that it got."""
    return answer if last is None else replace(answer, number=last.number + 1, approval=approved_text(last))


def expire(question: Question, wall: Instant) -> Question:
    """Close a question at its deadline: with its default answer, or without one."""
    if question.on_timeout is None:
        return replace(question, state=EXPIRED)
    return replace(
        question, state=ANSWERED, answer=question.on_timeout, answered_by=TIMEOUT, answered_at=wall,
        reason="not answered before the deadline",
    )  # fmt: skip


def withdraw(question: Question) -> Question:
    """Close a question whose task has ended, or has other work now."""
    return replace(question, state=WITHDRAWN)


def is_due(question: Question, wall: Instant) -> bool:
    """Whether it is open and its deadline has passed: the sweep closes it."""
    return question.state == OPEN and question.deadline_at is not None and question.deadline_at <= wall


def deadline(question: Question) -> Instant | None:
    """When the sweep must act on it."""
    return question.deadline_at if question.state == OPEN else None


def is_rejected(question: Question) -> bool:
    """Whether an approval was refused: then its task is cancelled."""
    return question.kind == APPROVAL and question.answer == REJECT


def answered(question: Question) -> Answered:
    """What the task keeps of an answered question."""
    assert question.answer is not None
    assert question.answered_at is not None
    return Answered(
        question.id, question.text, question.answer, question.answered_by or "", question.answered_at, question.kind,
        question.reason,
    )  # fmt: skip


def choices_of(question: Question) -> tuple[str, ...]:
    """The possible answers; none if any text is one."""
    return tuple(_decode_choices(question.choices))


def check_found(question: Question | None) -> Question:
    """The question, or QuestionMissing: absent and foreign ids get the same refusal."""
    if question is None or question.version == 0:
        raise QuestionMissing("there is no such question")
    return question


def check_open(question: Question, wall: Instant) -> None:
    """Refuse the answer to a question that is closed, or whose deadline has passed."""
    state = EXPIRED if is_due(question, wall) else question.state
    if state != OPEN:
        raise QuestionClosed(f"this question is {state}", state=state, answer=question.answer)


def check_content(content: QuestionContent, wall: Instant) -> None:
    """Refuse a deadline that has passed or is too far ahead, and a default answer that nobody could give."""
    at, default = content.deadline_at, content.on_timeout
    field, message = "deadline", None
    if at is not None and not wall < at <= wall + MAX_DEADLINE_AHEAD * SECOND:
        message = f"`deadline` must be in the future, at most {MAX_DEADLINE_AHEAD // 86_400} days from now"
    elif default is not None and at is None:
        field, message = "onTimeout", "`onTimeout` needs a `deadline`"
    elif default is not None and content.choices and default not in content.choices:
        field, message = "onTimeout", "`onTimeout` must be one of the choices"
    if message is not None:
        prefix = "/approval" if content.kind == APPROVAL else ""
        raise Invalid(message, [{"pointer": f"{prefix}/{field}", "code": "out_of_range", "message": message}])
