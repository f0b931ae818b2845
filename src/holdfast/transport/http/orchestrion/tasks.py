"""Handlers that create and claim tasks: `POST /v1/tasks`, `/v1/tasks/claim`, `/v1/tasks/{id}/claim`."""

from __future__ import annotations

import functools
import re
from typing import Any, Literal

import msgspec

from holdfast.core.errors import Invalid
from holdfast.core.plan import READ
from holdfast.core.row import SECOND
from holdfast.core.task import Task, retry
from holdfast.core.task.retry import Backoff
from holdfast.engine.command import Replayed
from holdfast.engine.verbs.tasks.claiming import Busy, Claimed, ClaimTask, ClaimTasks, Empty, ReviewClaim
from holdfast.engine.verbs.tasks.creating import Created, CreateTask
from holdfast.operations import bounds
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.idempotency import read_task_idempotency_key
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.orchestrion.documents import claimed_task_document, task_document
from holdfast.transport.http.overload.large_work import run_sized
from holdfast.transport.http.request import Render, Request, Response, answer, encode, with_warnings
from holdfast.transport.ids import ids
from holdfast.transport.times import parse as parse_time

TYPE = re.compile(rf"[A-Za-z0-9_-]{{{bounds.TASK_TYPE.least},{bounds.TASK_TYPE.most}}}")


_TYPE_RULE = f"`type` must be {bounds.TASK_TYPE} of A-Z a-z 0-9 - _"


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


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of claim_task."""

    type: str | None = None
    types: list[str] | None = None
    worker_id: str | None = None
    limit: int | None = None
    wait_seconds: int | float = 0
    session_id: str | None = None
    session_lease_id: str | None = None
    lease_duration_seconds: int | None = None


class ClaimOneBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of claim_task_by_id."""

    worker_id: str | None = None
    session_id: str | None = None
    session_lease_id: str | None = None
    offer: str | None = None
    lease_duration_seconds: int | None = None


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
    checks = Checks()
    checks.require(TYPE.fullmatch(body.type) is not None, "type", _TYPE_RULE)
    payload = checks.compact_object(body.payload, "payload", bounds.TASK_PAYLOAD)
    checks.require(payload is not None, "payload", "`payload` must be a JSON object")
    checks.check_range(body.priority, "priority", bounds.TASK_PRIORITY)
    checks.check_range(body.max_attempts, "maxAttempts", bounds.TASK_MAX_ATTEMPTS)
    lease = body.lease_duration_seconds
    checks.check_range(lease, "leaseDurationSeconds", bounds.TASK_LEASE)
    scheduled_at = None if body.scheduled_at is None else parse_time(body.scheduled_at)
    is_time_valid = body.scheduled_at is None or scheduled_at is not None
    checks.require(is_time_valid, "scheduledAt", "`scheduledAt` must be an ISO 8601 time with an offset")
    checks.require(body.unique_key != "", "uniqueKey", "`uniqueKey` must not be empty")
    checks.check_text(body.unique_key, "uniqueKey", bounds.TASK_UNIQUE_KEY)
    checks.check_text(body.tag, "tag", bounds.TASK_LABEL)
    checks.check_text(body.created_by, "createdBy", bounds.TASK_LABEL)
    checks.check_text(body.reviewed_by, "reviewedBy", bounds.TASK_LABEL)
    checks.check_text(body.source, "source", bounds.TASK_LABEL)
    wrong = None if body.backoff is None else retry.backoff_problem(body.backoff)
    checks.require(wrong is None, "backoff", wrong or "")
    checks.raise_errors()
    task = Task(
        request.by.account,
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
        traceparent=request.traceparent or None,
    )
    return CreateTask(
        account=request.by.account,
        cause=request.cause(),
        once=idempotency,
        task=task,
        replace_payload=body.on_duplicate == "replace",
        allowance=request.allowance,
    )


def render_created(warnings: list[str], outcome: Created) -> tuple[int, bytes]:
    """201 for a new task, 200 for an existing one with the same unique key."""
    document = task_document(outcome.task, outcome.now)
    if outcome.deduplicated:
        document["deduplicated"] = True
    return 200 if outcome.deduplicated else 201, encode(with_warnings(document, warnings))


# -- claim -------------------------------------------------------------------------------------------------------


async def claim_task(ctx: HandlerContext, request: Request) -> Response:
    """Claim the next task of some types, or the next few."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ClaimBody)
    checks = Checks()
    types = tuple(dict.fromkeys([*([] if body.type is None else [body.type]), *(body.types or [])]))
    checks.require(all(map(TYPE.fullmatch, types)), "type", _TYPE_RULE)
    allowed = len(types) <= bounds.TASK_CLAIM_TYPES.most
    checks.require(allowed, "types", f"`types` must have {bounds.TASK_CLAIM_TYPES}")
    checks.check_text(body.worker_id, "worker_id", bounds.TASK_LABEL)
    checks.check_text(body.session_lease_id, "session_lease_id", bounds.TASK_LABEL)
    checks.check_range(body.lease_duration_seconds, "lease_duration_seconds", bounds.CLAIMED_TASK_LEASE)
    checks.check_range(body.limit, "limit", bounds.TASK_CLAIM_LIMIT)
    checks.check_range(body.wait_seconds, "wait_seconds", bounds.WAIT)
    checks.raise_errors()
    render = functools.partial(_render_claimed, warnings, body.limit)
    command = ClaimTasks(
        **_claim_fields(request, body, read_task_idempotency_key(request, raw, _claim_record, per_caller=True)),
        types=types,
        limit=body.limit or 1,
    )
    if body.wait_seconds:
        outcome: Any = await ctx.run_waiting(command, body.wait_seconds, request)
    else:
        outcome = await ctx.run_idempotent(command)
    if isinstance(outcome, Empty):
        await ctx.charge_instead(request, READ)  # an empty claim counts as a read
    elif isinstance(outcome, Claimed):
        ctx.charge_more(request, len(outcome.taken) - 1)  # a plan allows no more claims than can be finished
    return await _answer_claim(ctx, request, outcome, render)


async def claim_task_by_id(ctx: HandlerContext, request: Request) -> Response:
    """Claim a task by its id."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ClaimOneBody)
    checks = Checks()
    checks.check_text(body.offer, "offer", bounds.OFFER_CODE)
    checks.check_text(body.worker_id, "worker_id", bounds.TASK_LABEL)
    checks.check_text(body.session_lease_id, "session_lease_id", bounds.TASK_LABEL)
    checks.check_range(body.lease_duration_seconds, "lease_duration_seconds", bounds.CLAIMED_TASK_LEASE)
    checks.raise_errors()
    render = functools.partial(_render_claimed, warnings, None)
    command = ClaimTask(
        **_claim_fields(request, body, read_task_idempotency_key(request, raw, _claim_record, per_caller=True)),
        task_id=request.parameter,
        offer=body.offer,
    )
    return await _answer_claim(ctx, request, await ctx.run_idempotent(command), render)


def _claim_fields(request: Request, body: ClaimBody | ClaimOneBody, idempotency: Any) -> dict[str, Any]:
    session_id = None if body.session_id is None else parse_uuid(body.session_id)
    if body.session_id is not None and session_id is None:
        raise Invalid(
            "`session_id` must be a UUID", [{"pointer": "/session_id", "code": "invalid", "message": "not a UUID"}]
        )
    return {
        "account": request.by.account,
        "cause": request.cause(),
        "once": idempotency,
        "by": request.by,
        "worker": body.worker_id,
        "seed": ids.draw(),
        "session_id": session_id,
        "session_lease_id": body.session_lease_id,
        "allowance": request.allowance,
        "lease": None if body.lease_duration_seconds is None else body.lease_duration_seconds * SECOND,
    }


async def _answer_claim(ctx: HandlerContext, request: Request, outcome: Any, render: Render) -> Response:
    """Render a claim. A repeated claim returns the same leases as they are now: a replay never extends a lease."""
    if not isinstance(outcome, Replayed):
        return answer(outcome, render)
    granted: list[tuple[str, str]] = msgspec.json.decode(outcome.body)
    review = ReviewClaim(
        account=request.by.account,
        cause=request.cause(),
        task_ids=tuple(task_id for task_id, _ in granted),
        lease_ids=tuple(lease_id for _, lease_id in granted),
    )
    response = answer(await ctx.run(review), render)
    response.headers += ((b"idempotency-replayed", b"true"),)
    return response


def _claim_record(outcome: Claimed) -> tuple[int, bytes]:
    """What is stored under the idempotency key of a claim: the granted leases. A replay renders their present state."""
    return 200, encode([(claimed.task.id, claimed.lease_id) for claimed in outcome.taken])


def _render_claimed(warnings: list[str], limit: int | None, outcome: Any) -> tuple[int, bytes]:
    document: dict[str, Any]
    if isinstance(outcome, Claimed) and limit is None:
        claimed = outcome.taken[0]
        contract = task_advice.for_task(claimed.task, outcome.now, task_claimable=True)
        document = claimed_task_document(claimed, outcome.now, contract)
        document["task"] = msgspec.Raw(encode(document))
    elif isinstance(outcome, Claimed):
        # One contract for all of them: repeated in each task it would be most of the response.
        tasks = [claimed_task_document(claimed, outcome.now, {}) for claimed in outcome.taken]
        document = {"tasks": tasks, "count": len(tasks), "agent_contract": task_advice.several_claimed()}
    elif isinstance(outcome, Busy):
        document = {"task": None, "message": "busy", "inFlight": outcome.task.id}
        document["agent_contract"] = task_advice.session_busy(outcome.task, outcome.now)
    else:
        document = {"task": None, "message": "no_tasks", "agent_contract": task_advice.nothing_to_claim()}
        if limit is not None:
            document |= {"tasks": [], "count": 0}
    return 200, encode(with_warnings(document, warnings))
