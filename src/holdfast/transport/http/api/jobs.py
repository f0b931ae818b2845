"""`/v1/jobs`: parse, submit one command, render."""

from __future__ import annotations

import base64
import binascii
import functools
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from holdfast.core.errors import Invalid
from holdfast.core.lease import Lease
from holdfast.core.names import is_storable, job_id_problem
from holdfast.core.page import PAGE_BYTES, is_full, record_size
from holdfast.core.prefix_rule import check_covers
from holdfast.core.row import SECOND, Instant
from holdfast.engine.verbs.jobs import Claimed, ClaimJob, ForceRelease, HeartbeatJob, ReleaseJob
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import jobs as job_advice
from holdfast.transport.deadlines import read_effective, read_one_effective
from holdfast.transport.http.api.cursors import check_known, invalid_cursor
from holdfast.transport.http.api.job_documents import (
    job_document,
    ownership,
    render_claim,
    render_ended,
    render_renewed,
)
from holdfast.transport.http.bodies.checks import NOTHING, Checks
from holdfast.transport.http.bodies.idempotency import read_idempotency_key
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.request import Render, Request, Response, answer, json_response
from holdfast.transport.ids import ids


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of claim_job."""

    owner: str
    ttl_seconds: int = bounds.JOB_TTL.default
    metadata: msgspec.Raw = NOTHING
    session_id: str | None = None
    session_lease_id: str | None = None
    wait_seconds: int | float = 0
    waiting_id: str | None = None


class HeartbeatBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of heartbeat_job."""

    lease_id: str
    token: int | None = None
    ttl_seconds: int | None = None
    note: str | None = None
    checkpoint: msgspec.Raw = NOTHING
    progress: msgspec.Raw = NOTHING


class ReleaseBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of release_job."""

    lease_id: str
    token: int | None = None
    note: str | None = None
    checkpoint: msgspec.Raw = NOTHING


class ForceBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of force_release_job."""

    reason: str


async def claim_job(ctx: HandlerContext, request: Request) -> Response:
    """Claim a job, or return its owner if it is held."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ClaimBody)
    checks = _check_job_id(request)
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
    checks.raise_errors()
    render = functools.partial(render_claim, warnings)
    command = ClaimJob(
        **_common(request, raw, render),
        by=request.by,
        owner=body.owner,
        lease_id=ids.uuid(),
        holder=ids.uuid(),
        ttl=body.ttl_seconds * SECOND,
        metadata=metadata,
        session_id=session_id,
        session_lease_id=body.session_lease_id,
        waiting_id=body.waiting_id,
    )
    if body.wait_seconds:
        outcome = await ctx.run_waiting(command, body.wait_seconds, request)
    else:
        outcome = await ctx.run(command)
    status, answer = render(outcome)
    replayed = isinstance(outcome, Claimed) and outcome.replayed
    return Response(status, answer, ((b"idempotency-replayed", b"true"),) if replayed else ())


async def heartbeat_job(ctx: HandlerContext, request: Request) -> Response:
    """Renew a job's lease, with a checkpoint, note or progress if sent."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, HeartbeatBody)
    checks = _check_job_id(request)
    written = _holder_fields(checks, body)
    ttl = body.ttl_seconds
    checks.check_range(ttl, "ttl_seconds", bounds.JOB_TTL)
    progress = checks.compact_json(body.progress, "progress", bounds.PROGRESS)
    checks.raise_errors()

    render = functools.partial(render_renewed, warnings)
    seconds = None if ttl is None else ttl * SECOND
    command = HeartbeatJob(**_common(request, raw, render), **written, ttl=seconds, progress=progress)
    return answer(await ctx.run(command), render)


async def release_job(ctx: HandlerContext, request: Request) -> Response:
    """Release a job, so that another worker can claim it."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ReleaseBody)
    checks = _check_job_id(request)
    written = _holder_fields(checks, body)
    checks.raise_errors()
    render = functools.partial(render_ended, "released", warnings)
    return answer(await ctx.run(ReleaseJob(**_common(request, raw, render), **written)), render)


async def force_release_job(ctx: HandlerContext, request: Request) -> Response:
    """Release a job that another worker holds."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ForceBody)
    checks = _check_job_id(request)
    checks.require(bool(body.reason.strip()), "reason", "`reason` must not be empty")
    checks.check_text(body.reason, "reason", bounds.FORCE_REASON)
    checks.raise_errors()
    render = functools.partial(render_ended, "released", warnings)
    command = ForceRelease(**_common(request, raw, render), by=request.by.name, reason=body.reason)
    return answer(await ctx.run(command), render)


async def get_job_owner(ctx: HandlerContext, request: Request) -> Response:
    """The owner of a job, or how its last lease ended."""
    await ctx.authenticate(request)
    _check_job_id(request).raise_errors()
    account, name = request.by.account, request.parameter

    def query_job(reader: Reader) -> tuple[Lease, Instant]:
        return read_one_effective(reader, Lease, account, name) or Lease(account, name), reader.now

    lease, now = await ctx.read(query_job)
    return json_response(200, job_document(lease, now), ((b"cache-control", b"no-store"),))


async def list_claimed_jobs(ctx: HandlerContext, request: Request) -> Response:
    """Jobs that are held now, by id."""
    await ctx.authenticate(request)
    query = dict(parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="replace"))
    checks = Checks()
    digits = query.get("limit", str(bounds.JOB_PAGE.default))
    limit = int(digits) if re.fullmatch("[0-9]{1,6}", digits) else 0
    checks.check_range(limit, "limit", bounds.JOB_PAGE)
    prefix = query.get("prefix", request.by.name_prefix or "")
    check_covers(request.by, prefix)
    checks.require(is_storable(prefix), "prefix", "`prefix` must not contain U+0000")
    after = _parse_cursor(query.get("cursor", ""))
    if after and not request.by.covers(after):  # such a key must not learn which other names exist
        raise invalid_cursor()
    checks.raise_errors()
    account = request.by.account

    def query_jobs(reader: Reader) -> tuple[list[Lease], bool, Instant]:
        if after:
            check_known(reader, Lease, account, after)
        found, more = _read_jobs(reader, account, prefix, after, limit)
        return read_effective(reader, found), more, reader.now

    page, more, now = await ctx.read(query_jobs)
    jobs = [ownership("claimed", lease, now) for lease in page]
    document: dict[str, Any] = {
        "jobs": jobs,
        "nextCursor": _format_cursor(page[-1].id) if more else None,
        "hasMore": more,
    }
    following = urlencode({"prefix": prefix, "limit": limit, "cursor": _format_cursor(page[-1].id)}) if more else None
    document["agent_contract"] = job_advice.listed(page[0].id if page else None, following)
    return json_response(200, document, ((b"cache-control", b"no-store"),))


# -- parsing -----------------------------------------------------------------------------------------------------


def _check_job_id(request: Request) -> Checks:
    problem = job_id_problem(request.parameter)
    if problem is not None:
        raise Invalid(problem, [{"pointer": "", "code": "invalid_job_id", "message": problem}])
    return Checks()


def _common(request: Request, raw: bytes, render: Render) -> dict[str, Any]:
    """The fields that every command about a job has."""
    return {
        "account": request.by.account,
        "cause": request.cause(),
        "once": read_idempotency_key(request, raw, render),
        "name": request.parameter,
    }


def _holder_fields(checks: Checks, body: HeartbeatBody | ReleaseBody) -> dict[str, Any]:
    """The fields that a holder sends: its lease, and what it leaves for the next holder."""
    lease_id = parse_uuid(body.lease_id)
    checks.require(lease_id is not None, "lease_id", "`lease_id` must be the UUID from the answer to the claim")
    checks.check_text(body.note, "note", bounds.NOTE)
    checkpoint = checks.compact_json(body.checkpoint, "checkpoint", bounds.CHECKPOINT)
    return {"lease_id": lease_id or "", "token": body.token, "note": body.note, "checkpoint": checkpoint}


def _read_jobs(reader: Reader, account: str, prefix: str, after: str, limit: int) -> tuple[list[Lease], bool]:
    """A page of live leases whose names are job ids, and whether there are more; the store may have other names."""
    found: list[Lease] = []
    size = 0
    while True:
        page = reader.leases(account, prefix, after, limit + 1, PAGE_BYTES)
        for lease in page:
            if job_id_problem(lease.id) is None:
                if len(found) == limit or size >= PAGE_BYTES:
                    return found, True
                found.append(lease)
                size += record_size(lease)
        if not is_full(page, limit + 1, PAGE_BYTES):
            return found, False
        after = page[-1].id


def _format_cursor(job_id: str) -> str:
    return base64.urlsafe_b64encode(job_id.encode()).decode().rstrip("=")


def _parse_cursor(cursor: str) -> str:
    try:
        after = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        after = "\0"
    if not is_storable(after):
        raise invalid_cursor()
    return after
