"""Questions in request bodies: `ask`, and `approval` of a new task."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from holdfast.core.question import APPROVAL, APPROVAL_CHOICES, APPROVAL_TEXT, QuestionContent
from holdfast.core.row import Instant
from holdfast.operations import bounds
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.orchestrion.task_verbs import HolderBody, heartbeat_fields
from holdfast.transport.times import parse as parse_time


class AskBody(HolderBody, forbid_unknown_fields=True, kw_only=True, rename={"on_timeout": "onTimeout"}):
    """Body of ask."""

    question: str
    choices: list[str] | None = None
    deadline: str | None = None
    on_timeout: str | None = None


class ApprovalBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What a person must approve before the first claim."""

    question: str = APPROVAL_TEXT
    deadline: str | None = None
    on_timeout: Literal["approve", "reject"] | None = None


def ask_fields(body: AskBody, checks: Checks) -> dict[str, Any]:
    """Command fields of ask."""
    _check_text(checks, body.question, "question", bounds.QUESTION)
    choices = body.choices or []
    checks.require(len(choices) <= bounds.CHOICES.most, "choices", f"`choices` must have {bounds.CHOICES}")
    for place, choice in enumerate(choices[: bounds.CHOICES.most]):
        _check_text(checks, choice, f"choices/{place}", bounds.CHOICE)
    checks.require(len(set(choices)) == len(choices), "choices", "`choices` must differ from each other")
    if body.on_timeout is not None:
        _check_text(checks, body.on_timeout, "onTimeout", bounds.ANSWER)
    deadline = read_time(checks, body.deadline, "deadline")
    content = QuestionContent(body.question, tuple(choices), deadline, body.on_timeout)
    return {**heartbeat_fields(body, checks), "content": content}


Approval = bool | ApprovalBody | None


def approval_of(body: Approval) -> QuestionContent | None:
    """The approval that a new task needs, if any, or a refusal with all its errors."""
    checks = Checks()
    if body is None or body is False:
        return None
    asked = ApprovalBody() if body is True else body
    _check_text(checks, asked.question, "approval/question", bounds.QUESTION)
    deadline = read_time(checks, asked.deadline, "approval/deadline")
    checks.raise_errors()
    return QuestionContent(asked.question, APPROVAL_CHOICES, deadline, asked.on_timeout, APPROVAL)


def read_time(checks: Checks, text: str | None, field: str) -> Instant | None:
    """A time of the body, if it has one."""
    at = None if text is None else parse_time(text)
    checks.require(text is None or at is not None, field, f"`{field}` must be an ISO 8601 time with an offset")
    return at


def _check_text(checks: Checks, text: str, field: str, bound: Any) -> None:
    checks.require(text.strip() != "", field, f"`{field}` must not be empty")
    checks.check_text(text, field, bound)
