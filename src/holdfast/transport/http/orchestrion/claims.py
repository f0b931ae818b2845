"""Handlers that claim tasks: `POST /v1/tasks/claim`, `/v1/tasks/{id}/claim`."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from holdfast.core.errors import Invalid
from holdfast.core.plan import READ
from holdfast.core.row import SECOND
from holdfast.core.task.capabilities import join_words
from holdfast.engine.command import Replayed
from holdfast.engine.verbs.tasks.claiming import Busy, Claimed, ClaimTask, ClaimTasks, Empty, ReviewClaim
from holdfast.operations import bounds
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.idempotency import read_task_idempotency_key
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.orchestrion.dependencies import ClaimRender, Documents, with_dependencies
from holdfast.transport.http.orchestrion.documents import claimed_task_document
from holdfast.transport.http.orchestrion.tasks import TYPE, TYPE_RULE
from holdfast.transport.http.request import Request, Response, answer, encode, with_warnings
from holdfast.transport.ids import ids


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
    capabilities: list[str] | None = None


class ClaimOneBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of claim_task_by_id."""

    worker_id: str | None = None
    session_id: str | None = None
    session_lease_id: str | None = None
    offer: str | None = None
    lease_duration_seconds: int | None = None
    capabilities: list[str] | None = None


async def claim_task(ctx: HandlerContext, request: Request) -> Response:
    """Claim the next task of some types, or the next few."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ClaimBody)
    checks = Checks()
    types = tuple(dict.fromkeys([*([] if body.type is None else [body.type]), *(body.types or [])]))
    checks.require(all(map(TYPE.fullmatch, types)), "type", TYPE_RULE)
    allowed = max(len(types), len(body.types or ())) <= bounds.TASK_CLAIM_TYPES.most
    checks.require(allowed, "types", f"`types` must have {bounds.TASK_CLAIM_TYPES}")
    checks.check_text(body.worker_id, "worker_id", bounds.TASK_LABEL)
    checks.check_text(body.session_lease_id, "session_lease_id", bounds.TASK_LABEL)
    checks.check_range(body.lease_duration_seconds, "lease_duration_seconds", bounds.CLAIMED_TASK_LEASE)
    checks.check_range(body.limit, "limit", bounds.TASK_CLAIM_LIMIT)
    checks.check_range(body.wait_seconds, "wait_seconds", bounds.WAIT)
    checks.check_words(body.capabilities, "capabilities", bounds.CAPABILITIES)
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
    checks.check_words(body.capabilities, "capabilities", bounds.CAPABILITIES)
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
        "capabilities": join_words(body.capabilities),
        "lease": None if body.lease_duration_seconds is None else body.lease_duration_seconds * SECOND,
    }


async def _answer_claim(ctx: HandlerContext, request: Request, outcome: Any, render: ClaimRender) -> Response:
    """Render a claim. A repeated claim returns the same leases as they are now: a replay never extends a lease."""
    if not isinstance(outcome, Replayed):
        return answer(outcome, await with_dependencies(ctx, request, outcome, render))
    granted: list[tuple[str, str]] = msgspec.json.decode(outcome.body)
    review = ReviewClaim(
        account=request.by.account,
        cause=request.cause(),
        task_ids=tuple(task_id for task_id, _ in granted),
        lease_ids=tuple(lease_id for _, lease_id in granted),
    )
    reviewed = await ctx.run(review)
    response = answer(reviewed, await with_dependencies(ctx, request, reviewed, render))
    response.headers += ((b"idempotency-replayed", b"true"),)
    return response


def _claim_record(outcome: Claimed) -> tuple[int, bytes]:
    """What is stored under the idempotency key of a claim: the granted leases. A replay renders their present state."""
    return 200, encode([(claimed.task.id, claimed.lease_id) for claimed in outcome.taken])


def _render_claimed(warnings: list[str], limit: int | None, dependencies: Documents, outcome: Any) -> tuple[int, bytes]:
    document: dict[str, Any]
    if isinstance(outcome, Claimed) and limit is None:
        claimed = outcome.taken[0]
        contract = task_advice.for_task(claimed.task, outcome.now, task_claimable=True)
        document = claimed_task_document(claimed, outcome.now, contract, dependencies.get(claimed.task.id))
        document["task"] = msgspec.Raw(encode(document))
    elif isinstance(outcome, Claimed):
        # One contract for all of them: repeated in each task it would be most of the response.
        tasks = [
            claimed_task_document(claimed, outcome.now, {}, dependencies.get(claimed.task.id))
            for claimed in outcome.taken
        ]
        document = {"tasks": tasks, "count": len(tasks), "agent_contract": task_advice.several_claimed()}
    elif isinstance(outcome, Busy):
        document = {"task": None, "message": "busy", "inFlight": outcome.task.id}
        document["agent_contract"] = task_advice.session_busy(outcome.task, outcome.now)
    else:
        document = {"task": None, "message": "no_tasks", "agent_contract": task_advice.nothing_to_claim()}
        if limit is not None:
            document |= {"tasks": [], "count": 0}
    return 200, encode(with_warnings(document, warnings))
