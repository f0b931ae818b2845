"""`/v1/jobs`: parse, submit one command, render."""

from __future__ import annotations

import functools
import random
from typing import Any, Literal

import msgspec

from holdfast.core.errors import Invalid
from holdfast.core.lease import RELEASED, Lease
from holdfast.core.names import job_id_problem, normal_job_id
from holdfast.core.prefix_rule import check_covers
from holdfast.core.row import SECOND, Instant
from holdfast.engine.verbs.job_claims import ClaimAnyJob, Claimed, Claiming, ClaimJob
from holdfast.engine.verbs.jobs import ForceRelease, HeartbeatJob, ReleaseJob
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.deadlines import read_one_effective
from holdfast.transport.http.api.job_documents import (
    job_document,
    render_claim,
    render_ended,
    render_renewed,
)
from holdfast.transport.http.bodies.acting_session import check_acting_session
from holdfast.transport.http.bodies.checks import NOTHING, Checks
from holdfast.transport.http.bodies.idempotency import read_idempotency_key
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.request import Render, Request, Response, answer, json_response
from holdfast.transport.ids import ids


class ClaimFields(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of every claim."""

    owner: str
    ttl_seconds: int = bounds.JOB_TTL.default
    metadata: msgspec.Raw = NOTHING
    session_id: str | None = None
    session_lease_id: str | None = None
    wait_seconds: int | float = 0
    waiting_id: str | None = None
    again: bool = False


class ClaimBody(ClaimFields, forbid_unknown_fields=True):
    """Body of claim_job."""

    offer: str | None = None


class ClaimAnyBody(ClaimFields, forbid_unknown_fields=True, kw_only=True):
    """Body of claim_any_job."""

    any_of: list[str]
    order: Literal["given", "random"] = "given"


class HeartbeatBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of heartbeat_job."""

    lease_id: str
    token: int | None = None
    ttl_seconds: int | None = None
    note: str | None = None
    checkpoint: msgspec.Raw = NOTHING
    progress: msgspec.Raw = NOTHING
    session_id: str | None = None
    session_lease_id: str | None = None


class ReleaseBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of release_job."""

    lease_id: str
    token: int | None = None
    note: str | None = None
    checkpoint: msgspec.Raw = NOTHING
    outcome: Literal["free", "done", "failed"] = "free"
    result: msgspec.Raw = NOTHING
    done_for_seconds: int | None = bounds.DONE_FOR.default
    session_id: str | None = None
    session_lease_id: str | None = None


class ForceBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of force_release_job."""

    reason: str


async def claim_job(ctx: HandlerContext, request: Request) -> Response:
    """Claim a job, or return its owner if it is held, or its result if it is done."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ClaimBody)
    checks = check_job_id(request)
    claim = _claim_fields(checks, request, body)
    checks.check_text(body.offer, "offer", bounds.OFFER_CODE)
    checks.raise_errors()
    render = functools.partial(render_claim, warnings)
    command = ClaimJob(**common_fields(request, raw, render), **claim, offer=body.offer)
    return await _claim(ctx, request, command, body.wait_seconds if body.offer is None else 0, render)


async def claim_any_job(ctx: HandlerContext, request: Request) -> Response:
    """Claim the first of several jobs that is free."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ClaimAnyBody)
    names = list(dict.fromkeys(map(normal_job_id, body.any_of)))
    checks = Checks()
    checks.require(1 <= len(body.any_of) <= bounds.ANY_OF.most, "any_of", f"`any_of` must have {bounds.ANY_OF}")
    for name in names:
        problem = job_id_problem(name)
        checks.require(problem is None, "any_of", problem or "")
        check_covers(request.by, name)
    claim = _claim_fields(checks, request, body)
    checks.raise_errors()
    if body.order == "random":
        random.shuffle(names)
    render = functools.partial(render_claim, warnings)
    command = ClaimAnyJob(**_base(request, raw, render), names=tuple(names), **claim)
    return await _claim(ctx, request, command, body.wait_seconds, render)


async def _claim(
    ctx: HandlerContext, request: Request, command: Claiming, wait_seconds: float, render: Render
) -> Response:
    if wait_seconds:
        outcome = await ctx.run_waiting(command, wait_seconds, request)
    else:
        outcome = await ctx.run(command)
    status, answer = render(outcome)
    replayed = isinstance(outcome, Claimed) and outcome.replayed
    return Response(status, answer, ((b"idempotency-replayed", b"true"),) if replayed else ())


async def heartbeat_job(ctx: HandlerContext, request: Request) -> Response:
    """Renew a job's lease, with a checkpoint, note or progress if sent."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, HeartbeatBody)
    checks = check_job_id(request)
    written = _holder_fields(checks, request, body)
    ttl = body.ttl_seconds
    checks.check_range(ttl, "ttl_seconds", bounds.JOB_TTL)
    progress = checks.compact_json(body.progress, "progress", bounds.PROGRESS)
    checks.raise_errors()

    render = functools.partial(render_renewed, warnings)
    seconds = None if ttl is None else ttl * SECOND
    command = HeartbeatJob(**common_fields(request, raw, render), **written, ttl=seconds, progress=progress)
    return answer(await ctx.run(command), render)


async def release_job(ctx: HandlerContext, request: Request) -> Response:
    """Release a job, so that another worker can claim it."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ReleaseBody)
    checks = check_job_id(request)
    written = _holder_fields(checks, request, body)
    checks.check_range(body.done_for_seconds, "done_for_seconds", bounds.DONE_FOR)
    result = checks.compact_json(body.result, "result", bounds.JOB_RESULT)
    has_end = body.outcome != "free"
    checks.require(result is None or has_end, "result", "`result` needs the `outcome` done or failed")
    checks.raise_errors()
    render = functools.partial(render_ended, "released", warnings)
    command = ReleaseJob(
        **common_fields(request, raw, render),
        **written,
        how=body.outcome if has_end else RELEASED,
        result=result,
        done_for=None if body.done_for_seconds is None else body.done_for_seconds * SECOND,
    )
    return answer(await ctx.run(command), render)


async def force_release_job(ctx: HandlerContext, request: Request) -> Response:
    """Release a job that another worker holds."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ForceBody)
    checks = check_job_id(request)
    checks.require(bool(body.reason.strip()), "reason", "`reason` must not be empty")
    checks.check_text(body.reason, "reason", bounds.FORCE_REASON)
    checks.raise_errors()
    render = functools.partial(render_ended, "released", warnings)
    command = ForceRelease(**common_fields(request, raw, render), by=request.by.name, reason=body.reason)
    return answer(await ctx.run(command), render)


async def get_job_owner(ctx: HandlerContext, request: Request) -> Response:
    """The owner of a job, or how its last lease ended."""
    await ctx.authenticate(request)
    check_job_id(request).raise_errors()
    account, name = request.by.account, request.parameter

    def query_job(reader: Reader) -> tuple[Lease, Instant]:
        return read_one_effective(reader, Lease, account, name) or Lease(account, name), reader.now

    lease, now = await ctx.read(query_job)
    return json_response(200, job_document(lease, now), ((b"cache-control", b"no-store"),))


# -- parsing -----------------------------------------------------------------------------------------------------


def check_job_id(request: Request) -> Checks:
    """Checks of a request about a job, or a refusal of its id."""
    problem = job_id_problem(request.parameter)
    if problem is not None:
        raise Invalid(problem, [{"pointer": "", "code": "invalid_job_id", "message": problem}])
    return Checks()


def common_fields(request: Request, raw: bytes, render: Render) -> dict[str, Any]:
    """The fields that every command about a job has."""
    return _base(request, raw, render) | {"name": request.parameter}


def _base(request: Request, raw: bytes, render: Render) -> dict[str, Any]:
    once = read_idempotency_key(request, raw, render)
    return {"account": request.by.account, "cause": request.cause(), "once": once}


def _claim_fields(checks: Checks, request: Request, body: ClaimFields) -> dict[str, Any]:
    """The fields of a claim."""
    checks.require(bool(body.owner.strip()), "owner", "`owner` must not be empty")
    checks.check_text(body.owner, "owner", bounds.JOB_OWNER)
    checks.check_range(body.ttl_seconds, "ttl_seconds", bounds.JOB_TTL)
    checks.check_range(body.wait_seconds, "wait_seconds", bounds.WAIT)
    metadata = checks.compact_json(body.metadata, "metadata", bounds.JOB_METADATA)
    checks.require(metadata is None or metadata[0] in '{"', "metadata", "`metadata` must be a JSON object or a string")
    checks.check_text(body.session_lease_id, "session_lease_id", bounds.SESSION_LEASE_ID)
    checks.check_text(body.waiting_id, "waiting_id", bounds.WAITING_ID)
    session_id = None if body.session_id is None else parse_uuid(body.session_id)
    checks.require(session_id is not None or body.session_id is None, "session_id", "`session_id` must be a UUID")
    return {
        "by": request.by,
        "owner": body.owner,
        "lease_id": ids.uuid(),
        "holder": ids.uuid(),
        "ttl": body.ttl_seconds * SECOND,
        "metadata": metadata,
        "session_id": session_id,
        "session_lease_id": body.session_lease_id,
        "waiting_id": body.waiting_id,
        "again": body.again,
    }


def _holder_fields(checks: Checks, request: Request, body: HeartbeatBody | ReleaseBody) -> dict[str, Any]:
    """The fields that a holder sends: its lease, and what it leaves for the next holder."""
    lease_id = parse_uuid(body.lease_id)
    checks.require(lease_id is not None, "lease_id", "`lease_id` must be the UUID from the answer to the claim")
    checks.check_text(body.note, "note", bounds.NOTE)
    checkpoint = checks.compact_json(body.checkpoint, "checkpoint", bounds.CHECKPOINT)
    return {
        "lease_id": lease_id or "",
        "token": body.token,
        "note": body.note,
        "checkpoint": checkpoint,
        "session": check_acting_session(checks, request, body),
    }
