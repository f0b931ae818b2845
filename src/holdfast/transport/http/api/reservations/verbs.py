"""`/v1/reservations`: parse, submit one command, render."""

from __future__ import annotations

import functools
from typing import Any, Literal

import msgspec

from holdfast.core.reservation.row import Request as FileRequest
from holdfast.core.row import SECOND
from holdfast.engine.verbs.reservation_claims import Reserve, Reserved, TakeReservation
from holdfast.engine.verbs.reservations import (
    ExtendReservation,
    ForceReleaseReservation,
    HeartbeatReservation,
    ReleaseReservation,
)
from holdfast.operations import bounds
from holdfast.transport.http.api.reservations.documents import (
    render_extended,
    render_released,
    render_renewed,
    render_reserve,
)
from holdfast.transport.http.api.reservations.parsing import (
    base_fields,
    check_lease_id,
    check_patterns,
    check_space,
    find_reservation,
)
from holdfast.transport.http.bodies.acting_session import check_acting_session
from holdfast.transport.http.bodies.checks import NOTHING, Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.request import Render, Request, Response, answer
from holdfast.transport.ids import ids


class ReserveBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of reserve_files."""

    space: str
    owner: str
    paths: list[str]
    mode: Literal["exclusive", "shared"] = "exclusive"
    ttl_seconds: int = bounds.RESERVATION_TTL.default
    reason: str | None = None
    metadata: msgspec.Raw = NOTHING
    session_id: str | None = None
    session_lease_id: str | None = None
    wait_seconds: int | float = 0
    waiting_id: str | None = None


class HeartbeatReservationBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of heartbeat_reservation."""

    lease_id: str
    token: int | None = None
    ttl_seconds: int | None = None
    session_id: str | None = None
    session_lease_id: str | None = None


class ReleaseFilesBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of release_files. Without `paths` everything is released."""

    lease_id: str
    token: int | None = None
    paths: list[str] = []
    session_id: str | None = None
    session_lease_id: str | None = None


class ExtendBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of extend_reservation."""

    lease_id: str
    paths: list[str]
    token: int | None = None
    session_id: str | None = None
    session_lease_id: str | None = None


class TakeBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of claim_reservation."""

    owner: str
    offer: str
    ttl_seconds: int = bounds.RESERVATION_TTL.default
    session_id: str | None = None
    session_lease_id: str | None = None


class ForceReservationBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of force_release_reservation."""

    reason: str


async def reserve_files(ctx: HandlerContext, request: Request) -> Response:
    """Reserve all paths, or return who holds paths that overlap them."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ReserveBody)
    checks = Checks()
    check_space(checks, request, body.space)
    paths = check_patterns(checks, body.paths)
    checks.check_text(body.reason, "reason", bounds.REASON)
    session_id = _check_claimer(checks, body)
    checks.check_range(body.wait_seconds, "wait_seconds", bounds.WAIT)
    metadata = checks.compact_object(body.metadata, "metadata", bounds.JOB_METADATA)
    checks.check_text(body.waiting_id, "waiting_id", bounds.WAITING_ID)
    checks.raise_errors()
    render = functools.partial(render_reserve, warnings)
    command = Reserve(
        **base_fields(request, raw, render),
        by=request.by,
        request=FileRequest(
            space=body.space,
            mode=body.mode,
            paths=paths,
            owner=body.owner,
            principal=request.by.id,
            ttl=body.ttl_seconds * SECOND,
            reason=body.reason,
            metadata=metadata,
            session=session_id,
        ),
        reservation_id=ids.uuid(),
        lease_id=ids.uuid(),
        session_lease_id=body.session_lease_id,
        waiting_id=body.waiting_id,
        may_wait=body.wait_seconds > 0,
    )
    if body.wait_seconds:
        outcome = await ctx.run_waiting(command, body.wait_seconds, request)
    else:
        outcome = await ctx.run(command)
    return _claimed(outcome, render)


async def claim_reservation(ctx: HandlerContext, request: Request) -> Response:
    """Take over a reservation with the code of its offer."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, TakeBody)
    checks = Checks()
    session_id = _check_claimer(checks, body)
    checks.check_text(body.offer, "offer", bounds.OFFER_CODE)
    checks.raise_errors()
    row = await find_reservation(ctx, request)
    render = functools.partial(render_reserve, warnings)
    command = TakeReservation(
        **base_fields(request, raw, render),
        by=request.by,
        reservation_id=row.id,
        lease_id=ids.uuid(),
        session_lease_id=body.session_lease_id,
        code=body.offer,
        owner=body.owner,
        ttl=body.ttl_seconds * SECOND,
        session_id=session_id,
    )
    return _claimed(await ctx.run(command), render)


def _claimed(outcome: Any, render: Render) -> Response:
    status, content = render(outcome)
    replayed = isinstance(outcome, Reserved) and outcome.replayed
    return Response(status, content, ((b"idempotency-replayed", b"true"),) if replayed else ())


async def heartbeat_reservation(ctx: HandlerContext, request: Request) -> Response:
    """Renew a reservation."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, HeartbeatReservationBody)
    checks = Checks()
    checks.check_range(body.ttl_seconds, "ttl_seconds", bounds.RESERVATION_TTL)
    lease_id, session = check_lease_id(checks, body.lease_id), check_acting_session(checks, request, body)
    checks.raise_errors()
    row = await find_reservation(ctx, request)
    render = functools.partial(render_renewed, warnings)
    command = HeartbeatReservation(
        **base_fields(request, raw, render),
        reservation_id=row.id,
        lease_id=lease_id,
        token=body.token,
        session=session,
        ttl=None if body.ttl_seconds is None else body.ttl_seconds * SECOND,
    )
    return answer(await ctx.run(command), render)


async def release_files(ctx: HandlerContext, request: Request) -> Response:
    """Release all paths of a reservation, or some of them."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ReleaseFilesBody)
    checks = Checks()
    lease_id, session = check_lease_id(checks, body.lease_id), check_acting_session(checks, request, body)
    checks.raise_errors()
    row = await find_reservation(ctx, request)
    render = functools.partial(render_released, warnings)
    command = ReleaseReservation(
        **base_fields(request, raw, render),
        reservation_id=row.id,
        lease_id=lease_id,
        token=body.token,
        session=session,
        paths=tuple(dict.fromkeys(body.paths)),
    )
    return answer(await ctx.run(command), render)


async def extend_reservation(ctx: HandlerContext, request: Request) -> Response:
    """Add paths to a reservation, or return who holds paths that overlap them."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ExtendBody)
    checks = Checks()
    lease_id, session = check_lease_id(checks, body.lease_id), check_acting_session(checks, request, body)
    paths = check_patterns(checks, body.paths)
    checks.raise_errors()
    row = await find_reservation(ctx, request)
    render = functools.partial(render_extended, row.id, warnings)
    command = ExtendReservation(
        **base_fields(request, raw, render),
        reservation_id=row.id,
        lease_id=lease_id,
        token=body.token,
        session=session,
        space=row.space,
        paths=paths,
    )
    return answer(await ctx.run(command), render)


async def force_release_reservation(ctx: HandlerContext, request: Request) -> Response:
    """Release what another owner has reserved."""
    await ctx.authenticate(request)
    body, warnings, raw = await read_body(request, ForceReservationBody)
    checks = Checks()
    checks.require(bool(body.reason.strip()), "reason", "`reason` must not be empty")
    checks.check_text(body.reason, "reason", bounds.FORCE_REASON)
    checks.raise_errors()
    row = await find_reservation(ctx, request)
    render = functools.partial(render_released, warnings)
    command = ForceReleaseReservation(
        **base_fields(request, raw, render), reservation_id=row.id, by=request.by.name, reason=body.reason
    )
    return answer(await ctx.run(command), render)


def _check_claimer(checks: Checks, body: ReserveBody | TakeBody) -> str | None:
    """Check who claims, and for how long; returns the session to claim for."""
    checks.require(bool(body.owner.strip()), "owner", "`owner` must not be empty")
    checks.check_text(body.owner, "owner", bounds.JOB_OWNER)
    checks.check_range(body.ttl_seconds, "ttl_seconds", bounds.RESERVATION_TTL)
    checks.check_text(body.session_lease_id, "session_lease_id", bounds.SESSION_LEASE_ID)
    session_id = None if body.session_id is None else parse_uuid(body.session_id)
    checks.require(session_id is not None or body.session_id is None, "session_id", "`session_id` must be a UUID")
    return session_id
