"""`/v1/jobs`: parse, submit one command, render."""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from holdfast.core import contract as contracts
from holdfast.core import lease as leases
from holdfast.core.errors import Invalid
from holdfast.core.lease import Ended, Lease
from holdfast.core.names import job_id_problem, storable
from holdfast.core.row import SECOND, Instant
from holdfast.engine.command import Command, Outcome, Replayed
from holdfast.engine.jobs import Claimed, ClaimJob, ForceRelease, HeartbeatJob, ReleaseJob
from holdfast.store.contract import Reader
from holdfast.transport.chance import chance
from holdfast.transport.http.door import Door
from holdfast.transport.http.message import Request, Response, encode, json_response
from holdfast.transport.http.octostore import parse_uuid
from holdfast.transport.http.problem import NOTHING, Checks, once, read_body
from holdfast.transport.times import rfc3339, rfc3339_or_none

DEFAULT_TTL, MAX_TTL = 120, 3600
MAX_WAIT = 60
MAX_METADATA, MAX_CHECKPOINT, MAX_PROGRESS = 4 * 1024, 64 * 1024, 1024
MAX_OWNER, MAX_NOTE, MAX_REASON = 256, 4096, 500
PAGE, MAX_PAGE = 100, 1000

Render = Callable[[Any], tuple[int, bytes]]


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True):
    """What claim takes."""

    owner: str
    ttl_seconds: int = DEFAULT_TTL
    metadata: msgspec.Raw = NOTHING
    session_id: str | None = None
    wait_seconds: int | float = 0


class HeartbeatBody(msgspec.Struct, forbid_unknown_fields=True):
    """What heartbeat takes."""

    lease_id: str
    token: int | None = None
    ttl_seconds: int | None = None
    note: str | None = None
    checkpoint: msgspec.Raw = NOTHING
    progress: msgspec.Raw = NOTHING


class ReleaseBody(msgspec.Struct, forbid_unknown_fields=True):
    """What release takes."""

    lease_id: str
    token: int | None = None
    note: str | None = None
    checkpoint: msgspec.Raw = NOTHING


class ForceBody(msgspec.Struct, forbid_unknown_fields=True):
    """What force-release takes."""

    reason: str


async def claim_job(door: Door, request: Request) -> Response:
    """Own a job if nobody does, or learn who does."""
    await door.authenticate(request)
    body, warnings, raw = await read_body(request, ClaimBody)
    checks = _checks(request)
    checks.that(bool(body.owner.strip()), "owner", "`owner` says who claims; it must not be empty")
    checks.text(body.owner, "owner", MAX_OWNER)
    checks.that(1 <= body.ttl_seconds <= MAX_TTL, "ttl_seconds", f"`ttl_seconds` is 1 to {MAX_TTL}")
    checks.that(0 <= body.wait_seconds <= MAX_WAIT, "wait_seconds", f"`wait_seconds` is 0 to {MAX_WAIT}")
    metadata = checks.json(body.metadata, "metadata", MAX_METADATA)
    checks.that(metadata is None or metadata[0] in '{"', "metadata", "`metadata` is a JSON object or a string")
    session_id = None if body.session_id is None else parse_uuid(body.session_id)
    checks.that(session_id is not None or body.session_id is None, "session_id", "`session_id` is a UUID")
    checks.done()
    render = functools.partial(_render_claim, door, warnings)
    command = ClaimJob(
        **_common(request, raw, render),
        by=request.by,
        owner=body.owner,
        lease_id=chance.uuid(),
        holder=chance.uuid(),
        ttl=body.ttl_seconds * SECOND,
        metadata=metadata,
        session_id=session_id,
    )
    if body.wait_seconds:
        undo = functools.partial(_undelivered, command)
        outcome = await door.run_patiently(command, body.wait_seconds, request, undo)
    else:
        outcome = await door.run(command)
    status, answer = render(outcome)
    replayed = isinstance(outcome, Claimed) and outcome.replayed
    return Response(status, answer, ((b"idempotency-replayed", b"true"),) if replayed else ())


async def heartbeat_job(door: Door, request: Request) -> Response:
    """Still at work: renew, and leave a checkpoint."""
    await door.authenticate(request)
    body, warnings, raw = await read_body(request, HeartbeatBody)
    checks = _checks(request)
    written = _written(checks, body)
    ttl = body.ttl_seconds
    checks.that(ttl is None or 1 <= ttl <= MAX_TTL, "ttl_seconds", f"`ttl_seconds` is 1 to {MAX_TTL}")
    progress = checks.json(body.progress, "progress", MAX_PROGRESS)
    checks.done()

    def render(outcome: Outcome) -> tuple[int, bytes]:
        document = {"status": "claimed", **_ownership(outcome.lease, outcome.now), **_pace(outcome.lease)}
        return 200, encode(_finish(document, warnings, _holding(outcome.lease, outcome.now)))

    seconds = None if ttl is None else ttl * SECOND
    command = HeartbeatJob(**_common(request, raw, render), **written, ttl=seconds, progress=progress)
    return _answer(await door.run(command), render)


async def release_job(door: Door, request: Request) -> Response:
    """Done with it: let the next one have it."""
    await door.authenticate(request)
    body, warnings, raw = await read_body(request, ReleaseBody)
    checks = _checks(request)
    written = _written(checks, body)
    checks.done()
    render = functools.partial(_render_ended, "released", warnings)
    return _answer(await door.run(ReleaseJob(**_common(request, raw, render), **written)), render)


async def force_release_job(door: Door, request: Request) -> Response:
    """Take a job from its holder."""
    await door.authenticate(request)
    body, warnings, raw = await read_body(request, ForceBody)
    checks = _checks(request)
    checks.that(bool(body.reason.strip()), "reason", "`reason` is told to the former holder; it must not be empty")
    checks.text(body.reason, "reason", MAX_REASON)
    checks.done()
    render = functools.partial(_render_ended, "released", warnings)
    command = ForceRelease(**_common(request, raw, render), by=request.by.name, reason=body.reason)
    return _answer(await door.run(command), render)


async def get_job_owner(door: Door, request: Request) -> Response:
    """Who owns a job, or how its last ownership ended."""
    await door.authenticate(request)
    _checks(request).done()
    account, name = request.by.account, request.parameter

    def look(reader: Reader) -> tuple[Lease, Instant]:
        return reader.lease(account, name) or Lease(account, name), reader.now

    lease, now = await door.read(look)
    return json_response(200, _state(lease, now), ((b"cache-control", b"no-store"),))


async def list_claimed_jobs(door: Door, request: Request) -> Response:
    """Jobs that somebody owns right now, by id."""
    await door.authenticate(request)
    query = dict(parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="replace"))
    checks = Checks()
    asked = query.get("limit", str(PAGE))
    limit = int(asked) if re.fullmatch("[0-9]{1,6}", asked) else 0
    checks.that(1 <= limit <= MAX_PAGE, "limit", f"`limit` is 1 to {MAX_PAGE}")
    prefix = query.get("prefix", "")
    checks.that(storable(prefix), "prefix", "`prefix` must not contain U+0000")
    after = _read_cursor(query.get("cursor", ""))
    checks.done()
    account = request.by.account

    def look(reader: Reader) -> tuple[list[Lease], Instant]:
        return _page(reader, account, prefix, after, limit + 1), reader.now

    found, now = await door.read(look)
    page, more = found[:limit], len(found) > limit
    jobs = [{"status": "claimed", **_ownership(lease, now)} for lease in page]
    document: dict[str, Any] = {"jobs": jobs, "nextCursor": _cursor(page[-1].id) if more else None, "hasMore": more}
    following = urlencode({"prefix": prefix, "limit": limit, "cursor": _cursor(page[-1].id)}) if more else None
    document["agent_contract"] = contracts.job_list(page[0].id if page else None, following)
    return json_response(200, document, ((b"cache-control", b"no-store"),))


# -- parsing -----------------------------------------------------------------------------------------------------


def _checks(request: Request) -> Checks:
    problem = job_id_problem(request.parameter)
    if problem is not None:
        raise Invalid(problem, [{"pointer": "", "code": "invalid_job_id", "message": problem}])
    return Checks()


def _common(request: Request, raw: bytes, render: Render) -> dict[str, Any]:
    """What every command about a job carries."""
    return {
        "account": request.by.account,
        "cause": request.cause(),
        "once": once(request, raw, render),
        "name": request.parameter,
    }


def _written(checks: Checks, body: HeartbeatBody | ReleaseBody) -> dict[str, Any]:
    """What a holder writes: its proof, and what it leaves for the next one."""
    lease_id = parse_uuid(body.lease_id)
    checks.that(lease_id is not None, "lease_id", "`lease_id` is the UUID that the claim answered")
    checks.text(body.note, "note", MAX_NOTE)
    checkpoint = checks.json(body.checkpoint, "checkpoint", MAX_CHECKPOINT)
    return {"lease_id": lease_id or "", "token": body.token, "note": body.note, "checkpoint": checkpoint}


def _page(reader: Reader, account: str, prefix: str, after: str, limit: int) -> list[Lease]:
    """Live leases that are jobs by name; a page of the store may hold others."""
    found: list[Lease] = []
    while len(found) < limit:
        page = reader.leases(account, prefix, after, limit)
        found += [lease for lease in page if job_id_problem(lease.id) is None]
        if len(page) < limit:
            break
        after = page[-1].id
    return found[:limit]


def _cursor(job_id: str) -> str:
    return base64.urlsafe_b64encode(job_id.encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> str:
    try:
        after = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        after = "\0"
    if not storable(after):
        raise Invalid(
            "`cursor` is not one of ours", [{"pointer": "/cursor", "code": "invalid_cursor", "message": "unknown"}]
        )
    return after


# -- rendering ---------------------------------------------------------------------------------------------------


def _answer(outcome: Any, render: Any) -> Response:
    if isinstance(outcome, Replayed):
        return Response(outcome.status, outcome.body, ((b"idempotency-replayed", b"true"),))
    status, body = render(outcome)
    return Response(status, body)


def _render_claim(door: Door, warnings: list[str], outcome: Any) -> tuple[int, bytes]:
    lease, now = outcome.lease, outcome.now
    if isinstance(outcome, Claimed):
        document = {
            "status": "claimed",
            **_ownership(lease, now),
            "lease_id": outcome.lease_id,
            "token": lease.token,
            **_pace(lease),
            "previous": _previous(outcome.previous, outcome.previous_checkpoint),
        }
        return 200, encode(_finish(document, warnings, _holding(lease, now)))
    wait = contracts.seconds_to_wait(lease.expires_at or lease.available_at, now)
    document = {"status": "held", **_ownership(lease, now), "retry_after_seconds": wait}
    document["waiting"] = door.engine.lines.length(lease.key)
    return 200, encode(_finish(document, warnings, contracts.job_held(lease.id, wait)))


def _render_ended(status: str, warnings: list[str], outcome: Outcome) -> tuple[int, bytes]:
    lease = outcome.lease
    document = {
        "status": status,
        "job_id": lease.id,
        "released_at": rfc3339(outcome.now),
        "previous": _previous(leases.ended(lease), lease.ended_checkpoint),
    }
    return 200, encode(_finish(document, warnings, contracts.job_released(lease.id)))


def _state(lease: Lease, now: Instant) -> dict[str, Any]:
    story = leases.ended(lease)
    if leases.is_live(lease, now):
        document = {"status": "claimed", **_ownership(lease, now)}
        contract = contracts.job_held(lease.id, contracts.seconds_to_wait(lease.expires_at, now))
    else:
        document, contract = {"status": "free", "job_id": lease.id, "owner": None}, contracts.job_free(lease.id)
        if leases.is_held(lease):  # its time ran out a moment ago and nobody has tidied up yet
            ended = leases.end(lease, leases.EXPIRED, now=lease.expires_at or now)
            story, lease = leases.ended(ended), ended
    document["previous"] = _previous(story, lease.ended_checkpoint)
    return document | {"agent_contract": contract}


def _ownership(lease: Lease, now: Instant) -> dict[str, Any]:
    """What anybody may see of who owns a job; never the lease id, never the token."""
    return {
        "job_id": lease.id,
        "owner": lease.owner,
        "metadata": _raw(lease.metadata),
        "claimed_at": rfc3339_or_none(lease.claimed_at),
        "expires_at": rfc3339_or_none(lease.expires_at or lease.available_at),
        "expires_in_seconds": contracts.seconds_left(lease.expires_at or lease.available_at, now),
        "note": lease.note,
        "progress": _raw(lease.progress),
        "session_id": lease.session if lease.ephemeral else None,
    }


def _pace(lease: Lease) -> dict[str, Any]:
    return {"ttl_seconds": lease.ttl // SECOND, "heartbeat_every_seconds": _every(lease)}


def _every(lease: Lease) -> float:
    pace = leases.heartbeat_pace(lease.ttl)
    return pace // SECOND if pace >= SECOND else round(pace / SECOND, 3)


def _holding(lease: Lease, now: Instant) -> contracts.Contract:
    return contracts.job_claimed(lease.id, contracts.seconds_left(lease.expires_at, now), _every(lease))


def _previous(story: Ended | None, checkpoint: str | None) -> dict[str, Any] | None:
    """How the last ownership ended, for a successor."""
    if story is None:
        return None
    return {
        "owner": story.owner,
        "outcome": story.how,
        "ended_at": rfc3339(story.at),
        "by": story.by if story.how == leases.FORCED else None,
        "reason": story.reason,
        "note": story.note,
        "checkpoint": _raw(checkpoint),
        "context_from": story.context_from,
    }


def _raw(text: str | None) -> msgspec.Raw | None:
    return None if text is None else msgspec.Raw(text.encode())


def _finish(document: dict[str, Any], warnings: list[str], contract: contracts.Contract) -> dict[str, Any]:
    if warnings:
        document["warnings"] = warnings
    document["agent_contract"] = contract
    return document


def _undelivered(command: ClaimJob, outcome: Any) -> Command[Any] | None:
    """A grant nobody heard of is given back, unless its caller can ask for it again by its key."""
    if not isinstance(outcome, Claimed) or command.once is not None:
        return None
    return ReleaseJob(
        account=command.account, cause=command.cause, name=command.name, lease_id=outcome.lease_id, undelivered=True
    )
