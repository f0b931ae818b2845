"""`/v1/questions`: what workers ask people, and the answers."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import question as questions
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.question import Question
from holdfast.core.row import LATEST, Instant
from holdfast.engine.verbs.questions import AnswerQuestion
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import questions as advice
from holdfast.transport.http.api.cursors import format_position, invalid_cursor, parse_position
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response, raw_json, with_warnings
from holdfast.transport.times import rfc3339, rfc3339_or_none

OPEN, CLOSED = "open", "closed"
"""The two parts of the list, which the cursor names."""
Position = tuple[str, Instant, str]
"""Part of the list, time and id of the last question of a page."""


class AnswerBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of answer_question."""

    answer: str
    reason: str | None = None


async def list_questions(ctx: HandlerContext, request: Request) -> Response:
    """Open questions, the oldest first, then closed ones, the newest first."""
    await ctx.authenticate(request)
    query = Query(request, bounds.FIELDS["list_questions"])
    limit = query.number("limit", bounds.QUESTION_PAGE)
    start, account = _parse_cursor(query.text("cursor")), request.by.account
    query.raise_errors()
    page, more = await ctx.read(lambda reader: read_page(reader, account, start, limit))
    cursor = _format_cursor(page[-1]) if more else None
    document: dict[str, Any] = {
        "questions": [question_document(row) for row in page],
        "nextCursor": cursor,
        "hasMore": more,
        "agent_contract": advice.listed(next((row.id for row in page if row.state == OPEN), None), cursor),
    }
    return json_response(200, document, NO_STORE)


def read_page(reader: Reader, account: str, start: Position, limit: int) -> tuple[list[Question], bool]:
    """A page of the list after a position, and whether there are more."""
    part, asked_at, row_id = start
    found: list[Question] = []
    if part == OPEN:
        found = reader.questions(account, (asked_at, row_id), limit + 1, PAGE_BYTES, is_open=True)
        if is_full(found, limit + 1, PAGE_BYTES):
            return found[:limit], True
        asked_at, row_id = LATEST, ""
    rest = limit + 1 - len(found)
    closed = reader.questions(account, (asked_at, row_id), rest, PAGE_BYTES, is_open=False)
    return [*found, *closed][:limit], is_full(closed, rest, PAGE_BYTES)


FIRST: Position = (OPEN, 0, "")
"""Where the list begins."""


async def read_question(ctx: HandlerContext, request: Request) -> Response:
    """A question, and its answer if it has one."""
    await ctx.authenticate(request)
    account, row_id = request.by.account, request.parameter
    question = questions.check_found(await ctx.read(lambda reader: reader.row(Question, account, row_id)))
    document = question_document(question) | {"agent_contract": advice.read(question)}
    return json_response(200, document, NO_STORE)


async def answer_question(ctx: HandlerContext, request: Request) -> Response:
    """Answer a question: its task can be claimed again, or is cancelled if it was not approved."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, AnswerBody)
    checks = Checks()
    checks.require(body.answer.strip() != "", "answer", "`answer` must not be empty")
    checks.check_text(body.answer, "answer", bounds.ANSWER)
    checks.check_text(body.reason, "reason", bounds.REASON)
    checks.raise_errors()
    command = AnswerQuestion(
        account=request.by.account,
        cause=request.cause(),
        question_id=request.parameter,
        answer=body.answer,
        by=request.by.name or request.by.id,
        reason=body.reason,
    )
    outcome = await ctx.run(command)
    document = question_document(outcome.question) | {
        "task_status": outcome.task.state,
        "agent_contract": advice.read(outcome.question),
    }
    return json_response(200, with_warnings(document, warnings), NO_STORE)


def question_document(question: Question) -> dict[str, Any]:
    """A question as the API shows it."""
    return {
        "id": question.id,
        "status": question.state,
        "kind": question.kind,
        "task_id": question.task,
        "task_type": question.task_type,
        "question": question.text,
        "choices": raw_json(question.choices),
        "deadline": rfc3339_or_none(question.deadline_at),
        "on_timeout": question.on_timeout,
        "asked_at": rfc3339(question.asked_at),
        "worker": question.worker,
        "attempt": question.attempt,
        "answer": question.answer,
        "reason": question.reason,
        "answered_by": question.answered_by,
        "answered_at": rfc3339_or_none(question.answered_at),
    }


def _format_cursor(row: Question) -> str:
    return format_position(OPEN if row.state == questions.OPEN else CLOSED, f"{row.asked_at}\n{row.id}")


def _parse_cursor(cursor: str | None) -> Position:
    if not cursor:
        return FIRST
    part, rest = parse_position(cursor, (OPEN, CLOSED))
    asked_at, separator, row_id = rest.partition("\n")
    if not separator or not asked_at.isascii() or not asked_at.isdigit() or int(asked_at) > LATEST:
        raise invalid_cursor()
    return part, int(asked_at), row_id
