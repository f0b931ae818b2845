"""The handler that creates a task: `POST /v1/tasks`."""

from __future__ import annotations

import functools
import re
from typing import Any, Literal

import msgspec

from holdfast.core.row import SECOND
from holdfast.core.task import Task, retry
from holdfast.core.task.retry import Backoff
from holdfast.engine.verbs.tasks.creating import Created, CreateTask
from holdfast.operations import bounds
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.idempotency import read_task_idempotency_key
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.dependencies import check_names
from holdfast.transport.http.orchestrion.documents import task_document
from holdfast.transport.http.orchestrion.question_bodies import Approval, approval_of, read_time
from holdfast.transport.http.overload.large_work import run_sized
from holdfast.transport.http.request import Request, Response, answer, encode, with_warnings
from holdfast.transport.ids import ids

TYPE = re.compile(rf"[A-Za-z0-9_-]{{{bounds.TASK_TYPE.least},{bounds.TASK_TYPE.most}}}")


TYPE_RULE = f"`type` must be {bounds.TASK_TYPE} of A-Z a-z 0-9 - _"


class CreateBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Body of create_task."""

    type: str
    payload: msgspec.Raw
    priority: int = bounds.TASK_PRIORITY.default
    max_attempts: int = bounds.TASK_MAX_ATTEMPTS.default
    lease_duration_seconds: int = bounds.TASK_LEASE.default
    scheduled_at: str | None = None
    idempotency_key: str | None = None
    unique_key: str | None = None
    on_duplicate: Literal["return", "replace"] = "return"
    tag: str | None = None
    created_by: str | None = None
    reviewed_by: str | None = None
    source: str | None = None
    backoff: Backoff | None = None
    depends_on: list[str] = []
    on_dependency_failure: Literal["hold", "cancel", "run"] = "hold"
    deadline_at: str | None = None
    max_run_seconds: int | None = None
    requires: list[str] | None = None
    concurrency_key: str | None = None
    approval: Approval = None


# -- create ------------------------------------------------------------------------------------------------------


async def create_task(ctx: HandlerContext, request: Request) -> Response:
    """Put a task into the queue of its type."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, CreateBody)
    render = functools.partial(render_created, warnings)
    task_id = new_task_id()

    def make_command() -> CreateTask:
        once = read_task_idempotency_key(request, raw, render, in_body=body.idempotency_key)
        return create_command(request, body, task_id, once)

    command = await run_sized(len(raw), make_command)
    return answer(await ctx.run_idempotent(command), render)


def new_task_id() -> str:
    """An id for a new task. It is drawn in the event loop's thread, which `ids` belongs to."""
    return "tsk_" + ids.ulid()


def create_command(request: Request, body: CreateBody, task_id: str, idempotency: Any) -> CreateTask:
    """The command that creates a task, or a refusal with all errors of the body."""
    return CreateTask(
        account=request.by.account,
        cause=request.cause(),
        once=idempotency,
        task=checked_task(body, request.by.account, task_id, request.traceparent or None),
        depends_on=tuple(body.depends_on),
        replace_payload=body.on_duplicate == "replace",
        allowance=request.allowance,
        approval=approval_of(body.approval),
    )


def checked_task(body: CreateBody, account: str, task_id: str, traceparent: str | None = None) -> Task:
    """The task that a body describes, or a refusal with all errors of the body."""
    checks = Checks()
    checks.require(TYPE.fullmatch(body.type) is not None, "type", TYPE_RULE)
    payload = checks.compact_object(body.payload, "payload", bounds.TASK_PAYLOAD)
    checks.require(payload is not None, "payload", "`payload` must be a JSON object")
    checks.check_range(body.priority, "priority", bounds.TASK_PRIORITY)
    checks.check_range(body.max_attempts, "maxAttempts", bounds.TASK_MAX_ATTEMPTS)
    lease = body.lease_duration_seconds
    checks.check_range(lease, "leaseDurationSeconds", bounds.TASK_LEASE)
    scheduled_at = read_time(checks, body.scheduled_at, "scheduledAt")
    deadline_at = read_time(checks, body.deadline_at, "deadlineAt")
    checks.check_range(body.max_run_seconds, "maxRunSeconds", bounds.TASK_MAX_RUN)
    checks.require(body.unique_key != "", "uniqueKey", "`uniqueKey` must not be empty")
    checks.check_text(body.unique_key, "uniqueKey", bounds.TASK_UNIQUE_KEY)
    checks.require(body.concurrency_key != "", "concurrencyKey", "`concurrencyKey` must not be empty")
    checks.check_text(body.concurrency_key, "concurrencyKey", bounds.TASK_CONCURRENCY_KEY)
    checks.check_text(body.tag, "tag", bounds.TASK_LABEL)
    checks.check_text(body.created_by, "createdBy", bounds.TASK_LABEL)
    checks.check_text(body.reviewed_by, "reviewedBy", bounds.TASK_LABEL)
    checks.check_text(body.source, "source", bounds.TASK_LABEL)
    check_names(checks, body.depends_on)
    wrong = None if body.backoff is None else retry.backoff_problem(body.backoff)
    checks.require(wrong is None, "backoff", wrong or "")
    requires = checks.check_words(body.requires, "requires", bounds.TASK_REQUIRES)
    checks.raise_errors()
    return Task(
        account,
        task_id,
        type=body.type,
        payload=payload or "{}",
        priority=body.priority,
        max_attempts=body.max_attempts,
        lease_duration=lease * SECOND,
        scheduled_at=scheduled_at,
        unique_key=body.unique_key,
        tag=body.tag,
        created_by=body.created_by,
        reviewed_by=body.reviewed_by,
        source=body.source,
        backoff=None if body.backoff is None else encode(body.backoff).decode(),
        traceparent=traceparent,
        on_dependency_failure=body.on_dependency_failure,
        deadline_at=deadline_at,
        max_run=None if body.max_run_seconds is None else body.max_run_seconds * SECOND,
        requires=requires or None,
        concurrency_key=body.concurrency_key,
    )


def render_created(warnings: list[str], outcome: Created) -> tuple[int, bytes]:
    """201 for a new task, 200 for an existing one with the same unique key."""
    document = task_document(outcome.task, outcome.now)
    if outcome.deduplicated:
        document["deduplicated"] = True
    return 200 if outcome.deduplicated else 201, encode(with_warnings(document, warnings))
