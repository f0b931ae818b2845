"""Questions page: what workers ask people, and the forms to answer."""

from __future__ import annotations

from typing import Any

from holdfast.core import question as questions
from holdfast.core.errors import HoldfastError, Invalid
from holdfast.core.event import subject_of
from holdfast.core.question import OPEN, Question
from holdfast.core.task import Task
from holdfast.engine.verbs.questions import AnswerQuestion
from holdfast.operations.bounds import ANSWER, REASON
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row
from holdfast.transport.dashboard import event_lines
from holdfast.transport.dashboard.access.permissions import QUESTIONS, TASKS, may_use
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.pages.tasks import key_names
from holdfast.transport.http.api.questions import FIRST, read_page
from holdfast.transport.http.request import HttpRefusal

PAGE_SIZE = 50
HISTORY = 100
COUNT_LIMIT = 1_000


async def show(request: PageRequest) -> TemplateResponse:
    """Open questions, then the newest closed ones."""
    account = request.account

    def read(reader: Reader) -> dict[str, Any]:
        rows, more = read_page(reader, account, FIRST, PAGE_SIZE)
        waiting = [_row(row) for row in rows if row.state == OPEN]
        return {"rows": waiting, "closed": rows[len(waiting) :], "more": more, "wall": reader.wall}

    return TemplateResponse("questions.html", await request.ctx.read(read) | {"can_answer": _can_answer(request)})


async def count_open(request: PageRequest) -> int:
    """How many questions are open, for the navigation, counted up to a limit; 0 if the key may not see them."""
    account = request.account
    if not may_use(request.by, QUESTIONS):
        return 0
    try:
        return await request.ctx.read(lambda reader: reader.count_open_questions(account, COUNT_LIMIT))
    except HoldfastError:
        return 0  # also shown on the page of an error


async def show_one(request: PageRequest) -> TemplateResponse:
    """One question, its task and its history."""
    by, row_id = request.by, request.item

    def read(reader: Reader) -> dict[str, Any]:
        question = reader.row(Question, by.account, row_id)
        if question is None:
            raise HttpRefusal(404, "there is no such question")
        may_see_task = may_use(by, TASKS)
        return _row(question) | {
            "task": usable_row(reader, Task, by.account, question.task) if may_see_task else None,
            "may_see_task": may_see_task,
            "lines": event_lines.history(reader, by.account, subject_of(question), HISTORY),
            "key_names": key_names(reader, by),
            "now": reader.now,
            "wall": reader.wall,
        }

    return TemplateResponse("question.html", await request.ctx.read(read) | {"can_answer": _can_answer(request)})


async def answer(request: PageRequest) -> str:
    """Answer a question."""
    text, reason = request.form.get("answer", "").strip(), request.form.get("reason", "").strip() or None
    if not text or len(text) > ANSWER.most:
        raise Invalid(f"the answer must have {ANSWER}")
    if len(reason or "") > REASON.most:
        raise Invalid(f"the reason must have {REASON}")
    by = request.by.name or request.by.id
    command = AnswerQuestion(
        account=request.account, cause=request.cause(), question_id=request.item, answer=text, by=by, reason=reason
    )
    await request.ctx.run(command)
    return "answered"


def _row(question: Question) -> dict[str, Any]:
    return {"question": question, "choices": questions.choices_of(question)}


def _can_answer(request: PageRequest) -> bool:
    return may_use(request.by, "answer_question")


PAGE = Page("questions", "Questions", "q", QUESTIONS, show, show_one, {"answer": ("answer_question", answer)})
