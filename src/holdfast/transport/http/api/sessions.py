"""`/v1/sessions`: named sessions, which an agent resumes after a restart."""

from __future__ import annotations

import uuid
from typing import Any, Literal

import msgspec

from holdfast.core import session as sessions
from holdfast.core.errors import SessionMissing
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.page import PAGE_BYTES, cut
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Context, Session
from holdfast.engine.verbs.sessions import (
    BeginSession,
    BegunSession,
    CloseSession,
    HeartbeatSession,
    SessionState,
    WriteContext,
)
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import sessions as session_advice
from holdfast.transport.http.api.cursors import check_known
from holdfast.transport.http.api.holdings.of_session import read_holdings
from holdfast.transport.http.api.session_documents import session_document, session_fields, session_status
from holdfast.transport.http.bodies.checks import NOTHING, Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE, Query
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.request import Request, Response, json_response, with_warnings
from holdfast.transport.ids import ids

_NAMES = uuid.UUID("3a9f6d5c-6f3e-5b0a-8f4a-9b8d0c2e7f11")


class ContextBody(msgspec.Struct, forbid_unknown_fields=True):
    """The context of a session: fields that an agent reads when it resumes."""

    turn: int | None = None
    last_action: str | None = None
    next_action: str | None = None
    context_hash: str | None = None
    memory_ref: str | None = None
    context: msgspec.Raw = NOTHING


class BeginBody(ContextBody, forbid_unknown_fields=True, kw_only=True):
    """Body of begin_session."""

    name: str
    secret: str | None = None
    ttl_seconds: int = bounds.SESSION_TTL.default
    lane: bool | None = None
    capabilities: list[str] | None = None
    if_live: Literal["fence", "refuse"] = "fence"


class HeartbeatBody(ContextBody, forbid_unknown_fields=True, kw_only=True):
    """Body of heartbeat_session."""

    lease_id: str


class WriteBody(ContextBody, forbid_unknown_fields=True, kw_only=True):
    """Body of write_context."""

    lease_id: str
    if_version: int | None = None


class CloseBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of close_session."""

    lease_id: str | None = None


def session_id_of(account: str, name: str) -> str:
    """The id of the session with this name; the same each time it is resumed."""
    return str(uuid.uuid5(_NAMES, f"{account}\x1f{name}"))


async def begin_session(ctx: HandlerContext, request: Request) -> Response:
    """Open a session by name, or resume it."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, BeginBody)
    checks = Checks()
    checks.require(bool(body.name.strip()), "name", "`name` must not be empty")
    checks.check_text(body.name, "name", bounds.SESSION_NAME)
    checks.check_text(body.secret, "secret", bounds.SESSION_SECRET)
    checks.check_range(body.ttl_seconds, "ttl_seconds", bounds.SESSION_TTL)
    capabilities = checks.check_words(body.capabilities, "capabilities", bounds.CAPABILITIES)
    context = _parse_context(body, checks)
    checks.raise_errors()
    account = request.by.account
    begun = await ctx.run(
        BeginSession(
            account=account,
            cause=request.cause(),
            by=request.by,
            session_id=session_id_of(account, body.name),
            name=body.name,
            ttl=body.ttl_seconds * SECOND,
            fresh_secret=(ids.draw() + ids.draw()).hex(),
            secret=body.secret,
            lane=body.lane,
            capabilities=None if body.capabilities is None else capabilities,
            context=context,
            unless_live=body.if_live == "refuse",
        )
    )
    assert isinstance(begun, BegunSession)
    document = {"status": "resumed" if begun.resumed else "opened", **session_document(request.by, begun)}
    document["lease_id"] = begun.lease_id
    document["token"] = begun.session.token
    if begun.secret is not None:
        document["secret"] = begun.secret
    tasks = {task.id: held_lease_id(begun.lease_id, task) for task in begun.tasks}
    jobs = {job.id: held_lease_id(begun.lease_id, job) for job in begun.jobs}
    reservations = {row.id: held_lease_id(begun.lease_id, row) for row in begun.reservations}
    for held in document["tasks"]:
        held["leaseId"] = tasks[held["id"]]
    for held in document["jobs"]:
        held["lease_id"] = jobs[held["job_id"]]
    for held in document["reservations"]:
        held["lease_id"] = reservations[held["reservation_id"]]
    return _response(200 if begun.resumed else 201, document, warnings)


async def heartbeat_session(ctx: HandlerContext, request: Request) -> Response:
    """Renew a session and everything it holds."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, HeartbeatBody)
    checks = Checks()
    context = _parse_context(body, checks)
    checks.raise_errors()
    outcome = await ctx.run(HeartbeatSession(**_command_fields(request), lease_id=body.lease_id, context=context))
    return _response(200, {"status": "live", **session_document(request.by, outcome)}, warnings)


async def write_context(ctx: HandlerContext, request: Request) -> Response:
    """Save the context that the agent reads when it resumes."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, WriteBody)
    checks = Checks()
    context = _parse_context(body, checks)
    checks.raise_errors()
    outcome = await ctx.run(
        WriteContext(**_command_fields(request), lease_id=body.lease_id, context=context, if_version=body.if_version)
    )
    return _response(200, {"status": "live", **session_document(request.by, outcome)}, warnings)


async def close_session(ctx: HandlerContext, request: Request) -> Response:
    """End a session and release what it holds; its context is kept until it is resumed."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, CloseBody)
    outcome = await ctx.run(CloseSession(**_command_fields(request), lease_id=body.lease_id))
    return _response(200, {"status": "ended", **session_document(request.by, outcome)}, warnings)


async def read_session(ctx: HandlerContext, request: Request) -> Response:
    """A session, its context and what it holds, of which a page at a time."""
    await ctx.authenticate(request)
    query = Query(request, {"cursor"})
    cursor = query.text("cursor")
    query.raise_errors()
    account, session_id = request.by.account, _session_id(request)

    def query_session(reader: Reader) -> tuple[SessionState, str | None]:
        with reader.snapshot():  # it may end and free what it holds between two reads
            session = reader.row(Session, account, session_id)
            if session is None or session.name is None or not sessions.is_visible(session, request.by):
                raise SessionMissing("there is no such session")
            jobs, reservations, tasks, following = read_holdings(reader, session, request.by, cursor)
        state = SessionState(session=session, jobs=jobs, reservations=reservations, tasks=tasks, now=reader.now)
        return state, following

    outcome, following = await ctx.read(query_session)
    document = {"status": session_status(outcome.session, outcome.now), **session_document(request.by, outcome)}
    return _response(200, document | {"nextCursor": following, "hasMore": following is not None}, [])


async def list_sessions(ctx: HandlerContext, request: Request) -> Response:
    """The account's named sessions."""
    await ctx.authenticate(request)
    query = Query(request, {"limit", "cursor"})
    limit = query.number("limit", bounds.SESSION_PAGE)
    after = query.text("cursor") or ""
    query.raise_errors()

    def query_sessions(reader: Reader) -> tuple[list[Session], Instant]:
        if after:
            check_known(reader, Session, request.by.account, after)
        return reader.sessions(request.by.account, after, limit + 1, PAGE_BYTES), reader.now

    found, now = await ctx.read(query_sessions)
    page, has_more = cut(found, limit)
    named = [one for one in page if one.name is not None and sessions.is_visible(one, request.by)]
    more = page[-1].id if has_more else None
    documents = [{"status": session_status(session, now), **session_fields(session)} for session in named]
    document = {"sessions": documents, "nextCursor": more, "hasMore": more is not None}
    return json_response(200, document | {"agent_contract": session_advice.listed()}, NO_STORE)


# -- parsing -----------------------------------------------------------------------------------------------------


def _command_fields(request: Request) -> dict[str, Any]:
    return {
        "account": request.by.account,
        "cause": request.cause(),
        "by": request.by,
        "session_id": _session_id(request),
    }


def _session_id(request: Request) -> str:
    found = parse_uuid(request.parameter)
    if found is None:
        raise SessionMissing("there is no such session")
    return found


def _parse_context(body: ContextBody, checks: Checks) -> Context:
    checks.check_range(body.turn, "turn", bounds.SESSION_TURN)
    for name in ("last_action", "next_action", "context_hash", "memory_ref"):
        checks.check_text(getattr(body, name), name, bounds.SESSION_TEXT)
    return Context(
        turn=body.turn,
        last_action=body.last_action,
        next_action=body.next_action,
        context_hash=body.context_hash,
        memory_ref=body.memory_ref,
        context=checks.compact_json(body.context, "context", bounds.SESSION_CONTEXT),
    )


# -- rendering ---------------------------------------------------------------------------------------------------


def _response(status: int, document: dict[str, Any], warnings: list[str]) -> Response:
    over = document["status"] in {"ended", "expired"}
    contract = session_advice.ended if over else session_advice.active
    document["agent_contract"] = contract(document["session_id"])
    return json_response(status, with_warnings(document, warnings), NO_STORE)
