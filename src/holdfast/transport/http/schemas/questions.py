"""Schemas of `/v1/questions` and of asking."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.core.question import QUESTION_KINDS, QUESTION_STATES
from holdfast.core.task import STATES
from holdfast.operations import bounds
from holdfast.transport.http.api import questions
from holdfast.transport.http.orchestrion import question_bodies
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, QueryText, Time, request_body, within
from holdfast.transport.http.schemas.task_operations import PROOF_REFUSALS
from holdfast.transport.http.schemas.tasks import Task

CAMEL = {"next_cursor": "nextCursor", "has_more": "hasMore"}
NOT_BLANK = {"pattern": r"\S"}
_STATUS = Annotated[str, Meta(extra_json_schema={"enum": list(QUESTION_STATES)})]
_KIND = Annotated[str, Meta(extra_json_schema={"enum": list(QUESTION_KINDS)})]
_CHOICE = Annotated[str, Meta(max_length=bounds.CHOICE.most, extra_json_schema=NOT_BLANK)]
_DEADLINE = {"format": "date-time", "description": "When the question expires, in the future."}


class ListedQuestion(Struct, kw_only=True):
    """A question about a task; `choices` is empty if any text is an answer."""

    id: str
    status: _STATUS
    kind: _KIND
    task_id: str
    task_type: str
    question: str
    choices: list[str]
    deadline: Time | None
    on_timeout: str | None
    asked_at: Time
    worker: str | None
    attempt: int
    answer: str | None
    reason: str | None
    answered_by: str | None
    answered_at: Time | None


class Question(ListedQuestion, kw_only=True):
    """A question with its agent_contract."""

    agent_contract: AgentContract


class AnsweredQuestion(Question, kw_only=True):
    """The answered question, and the status of its task now."""

    task_status: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    warnings: list[str] | UnsetType = UNSET


class QuestionPage(Struct, rename=CAMEL):
    """Open questions, the oldest first, then closed ones, the newest first."""

    questions: list[ListedQuestion]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class QuestionFilter(Struct):
    """Page."""

    limit: Annotated[int, within(bounds.QUESTION_PAGE)] = bounds.QUESTION_PAGE.default
    cursor: Annotated[QueryText, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET


OPERATION_SCHEMAS = {
    "ask_task": OperationSchema(
        {200: Task},
        body=request_body(
            "AskTaskBody",
            question_bodies.AskBody,
            bounds.FIELDS["ask_task"],
            session_id={"format": "uuid"},
            question=NOT_BLANK,
            choices=Annotated[list[_CHOICE], Meta(max_length=bounds.CHOICES.most)],
            deadline=_DEADLINE,
            on_timeout=NOT_BLANK,
        ),
        refusals=(errors.TaskMissing, *PROOF_REFUSALS),
        takes_idempotency_key=True,
    ),
    "list_questions": OperationSchema({200: QuestionPage}, query=QuestionFilter),
    "read_question": OperationSchema({200: Question}, refusals=(errors.QuestionMissing,)),
    "answer_question": OperationSchema(
        {200: AnsweredQuestion},
        body=request_body(
            "AnswerQuestionBody", questions.AnswerBody, bounds.FIELDS["answer_question"], answer=NOT_BLANK
        ),
        refusals=(errors.QuestionMissing, errors.QuestionClosed, errors.TaskMissing),
    ),
}
