"""`/v1/sessions`: sessions that survive their process."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.transport.http.api import sessions as lives
from holdfast.transport.http.bodies import query
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.jobs import NOT_BLANK
from holdfast.transport.http.schemas.operation_schema import Seconds, Shape, Time, Token, described, number, text

CAMEL = {"next_cursor": "nextCursor", "has_more": "hasMore"}


class SessionJob(Struct, kw_only=True):
    """A job that a session holds; its new proof is told to whoever resumes the session."""

    job_id: str
    owner: str | None
    token: Token | None
    expires_at: Time | None
    note: str | None
    checkpoint: Any
    lease_id: str | UnsetType = UNSET


class SessionTask(Struct, rename="camel", kw_only=True):
    """A task that a session holds; its new proof is told to whoever resumes the session."""

    id: str
    type: str
    fencing_token: Token | None
    lease_expires_at: Time | None
    payload: dict[str, Any]
    note: str | None
    checkpoint: Any
    lease_id: str | UnsetType = UNSET


class ListedSession(Struct, kw_only=True):
    """A session and its context: never its secret, never its proof."""

    status: Literal["live", "ended", "expired", "opened", "resumed"]
    session_id: UUID
    name: str
    generation: int
    lane: bool
    opened_at: Time
    expires_at: Time
    ended_at: Time | None
    ttl_seconds: Seconds
    heartbeat_every_seconds: Seconds
    turn: int | None
    last_action: str | None
    next_action: str | None
    context_hash: str | None
    memory_ref: str | None
    context: Any
    context_version: int


class NamedSession(ListedSession, kw_only=True):
    """A session, its context and what it holds."""

    jobs: list[SessionJob]
    tasks: list[SessionTask]
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class BegunSession(NamedSession, kw_only=True):
    """A new life. `lease_id` is its proof; `secret` resumes it and is shown this once."""

    lease_id: str
    token: Token
    secret: str | UnsetType = UNSET


class SessionPage(Struct, rename=CAMEL):
    """Sessions with a name."""

    sessions: list[ListedSession]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class SessionFilter(Struct):
    """Which sessions."""

    limit: Annotated[int, Meta(ge=1, le=lives.MAX_PAGE)] = lives.PAGE
    cursor: (
        Annotated[
            str,
            Meta(max_length=query.MAX_TEXT, pattern="^[^\\u0000]*$", description="`nextCursor` of the page before."),
        ]
        | UnsetType
    ) = UNSET


_CONTEXT = {"turn": number(0, lives.MAX_TURN)} | {
    name: text(lives.MAX_TEXT) for name in ("last_action", "next_action", "context_hash", "memory_ref")
}
_LIFE = (errors.SessionMissing, errors.SessionExpired, errors.LeaseLost)

SHAPES = {
    "begin_session": Shape(
        {200: BegunSession, 201: BegunSession},
        body=described(
            "BeginSessionBody",
            lives.BeginBody,
            name=text(lives.MAX_NAME, least=1) | NOT_BLANK,
            secret=text(lives.MAX_NAME),
            ttl_seconds=number(lives.MIN_TTL, lives.MAX_TTL),
            **_CONTEXT,
        ),
        refusals=(errors.SessionTaken,),
    ),
    "list_sessions": Shape({200: SessionPage}, query=SessionFilter),
    "read_session": Shape({200: NamedSession}, refusals=(errors.SessionMissing,)),
    "heartbeat_session": Shape(
        {200: NamedSession},
        body=described("HeartbeatSessionBody", lives.HeartbeatBody, **_CONTEXT),
        refusals=_LIFE,
    ),
    "write_context": Shape(
        {200: NamedSession},
        body=described("WriteContextBody", lives.WriteBody, **_CONTEXT),
        refusals=(*_LIFE, errors.ContextConflict),
    ),
    "close_session": Shape({200: NamedSession}, body=described("CloseSessionBody", lives.CloseBody), refusals=_LIFE),
}
