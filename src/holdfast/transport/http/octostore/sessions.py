"""OctoStore's `/sessions`."""

from __future__ import annotations

import msgspec

from holdfast.core import session as rules
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Session
from holdfast.engine.verbs.octostore_sessions import EndSession, KeepSessionAlive, OpenSession
from holdfast.store.contract import Reader
from holdfast.transport.advice import sessions as session_advice
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import U32, path_uuid, read_body
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.ids import ids
from holdfast.transport.times import rfc3339


class OpenBody(msgspec.Struct):
    """Body of open_session."""

    ttl_seconds: U32 | None = None


async def open_session(ctx: HandlerContext, request: Request) -> Response:
    """Open a session."""
    body = await read_body(ctx, request, OpenBody)
    await ctx.authenticate(request)
    session = await ctx.run(
        OpenSession(
            account=request.by.account,
            cause=request.cause(),
            by=request.by,
            session_id=ids.uuid(),
            ttl_seconds=body.ttl_seconds,
        )
    )
    return json_response(
        201,
        {
            "session_id": session.id,
            "expires_at": rfc3339(session.expires_at),
            "keepalive_interval_secs": session.ttl // SECOND // 2,
            "agent_contract": session_advice.octostore_active(session.id),
        },
    )


async def keepalive_session(ctx: HandlerContext, request: Request) -> Response:
    """Renew a session."""
    session_id = path_uuid(request.parameter)
    await ctx.authenticate(request)
    session = await ctx.run(
        KeepSessionAlive(account=request.by.account, cause=request.cause(), by=request.by, session_id=session_id)
    )
    return json_response(
        200,
        {
            "session_id": session.id,
            "expires_at": rfc3339(session.expires_at),
            "agent_contract": session_advice.octostore_active(session.id),
        },
    )


async def get_session(ctx: HandlerContext, request: Request) -> Response:
    """Whether a session is live, and how many locks belong to it."""
    session_id = path_uuid(request.parameter)
    await ctx.authenticate(request)
    account = request.by.account

    def query_session(reader: Reader) -> tuple[Session | None, int, Instant]:
        return reader.row(Session, account, session_id), reader.count_session_leases(account, session_id), reader.now

    found, count, now = await ctx.read(query_session)
    session = rules.find(found, request.by.id, now)
    live = rules.is_live(session, now)
    return json_response(
        200,
        {
            "session_id": session.id,
            "user_id": session.principal,
            "expires_at": rfc3339(session.expires_at),
            "lock_count": count,
            "active": live,
            "agent_contract": session_advice.octostore_active(session.id) if live else session_advice.octostore_ended(),
        },
    )


async def end_session(ctx: HandlerContext, request: Request) -> Response:
    """End a session and release its locks."""
    session_id = path_uuid(request.parameter)
    await ctx.authenticate(request)
    await ctx.run(EndSession(account=request.by.account, cause=request.cause(), by=request.by, session_id=session_id))
    return Response(204)
