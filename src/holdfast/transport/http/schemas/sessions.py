"""Schemas of `/v1/sessions` and `/v1/mine`."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.core import errors
from holdfast.operations import bounds
from holdfast.transport.http.api import sessions
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.jobs import NOT_BLANK, OpenOffer
from holdfast.transport.http.schemas.operation_schema import (
    OperationSchema,
    QueryText,
    Seconds,
    Time,
    Token,
    request_body,
    within,
    words,
)

CAMEL = {"next_cursor": "nextCursor", "has_more": "hasMore"}
_OWNER = "Only what was claimed under this label: `owner` of a job or reservation, worker of a task, name of a session."
_SESSION = "Only this session and what it holds. With the header Holdfast-Session-Secret also the lease ids."


class SessionJob(Struct, kw_only=True):
    """A job that a session holds; its new lease id is returned when the session is resumed."""

    job_id: str
    owner: str | None
    token: Token | None
    expires_at: Time | None
    note: str | None
    checkpoint: Any
    lease_id: str | UnsetType = UNSET


class SessionReservation(Struct):
    """Files that a session has reserved; the lease id only when it is resumed."""

    reservation_id: str
    space: str
    paths: list[str]
    mode: Literal["exclusive", "shared"]
    owner: str
    token: Token
    expires_at: Time | None
    lease_id: str | UnsetType = UNSET


class SessionTask(Struct, rename="camel", kw_only=True):
    """A task that a session holds; its new lease id is returned when the session is resumed."""

    id: str
    type: str
    fencing_token: Token | None
    lease_expires_at: Time | None
    payload: dict[str, Any]
    note: str | None
    checkpoint: Any
    lease_id: str | UnsetType = UNSET


class ListedSession(Struct, kw_only=True):
    """A session and its context, without secret and lease id."""

    status: Literal["live", "ended", "expired", "opened", "resumed"]
    session_id: UUID
    name: str
    generation: int
    lane: bool
    capabilities: list[str]
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
    reservations: list[SessionReservation]
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class ReadSession(NamedSession, rename=CAMEL, kw_only=True):
    """A session, its context and a page of what it holds: jobs by id, then reservations, then tasks."""

    next_cursor: str | None
    has_more: bool


class BegunSession(NamedSession, kw_only=True):
    """An opened or resumed session. `lease_id` is its proof; `secret` resumes it and is shown only once."""

    lease_id: str
    token: Token
    secret: str | UnsetType = UNSET


class SessionPage(Struct, rename=CAMEL):
    """Named sessions."""

    sessions: list[ListedSession]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class HoldingsFilter(Struct):
    """Page of what a session holds."""

    cursor: Annotated[QueryText, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET


class SessionFilter(Struct):
    """Page."""

    limit: Annotated[int, within(bounds.SESSION_PAGE)] = bounds.SESSION_PAGE.default
    cursor: Annotated[QueryText, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET


class Held(Struct, kw_only=True):
    """A job, lock, reservation, task or session that the key holds."""

    kind: Literal["job", "lock", "reservation", "task", "session"]
    id: Annotated[str, Meta(description="Name of the job or lock; id of the reservation, task or session.")]
    owner: Annotated[str | None, Meta(description="The label that its holder chose; of a session its name.")]
    token: Token
    claimed_at: Time | None
    expires_at: Annotated[Time, Meta(description="When it ends unless it is renewed, or its session ends before.")]
    expires_in_seconds: Seconds
    heartbeat_every_seconds: Seconds
    session_id: Annotated[str | None, Meta(description="The session whose end frees it.")]
    note: str | None
    checkpoint: Any
    progress: Any
    offered: OpenOffer | UnsetType = UNSET
    type: Annotated[str, Meta(description="Of a task.")] | UnsetType = UNSET
    space: Annotated[str, Meta(description="Of a reservation.")] | UnsetType = UNSET
    paths: Annotated[list[str], Meta(description="Of a reservation.")] | UnsetType = UNSET
    mode: Annotated[Literal["exclusive", "shared"], Meta(description="Of a reservation.")] | UnsetType = UNSET
    generation: Annotated[int, Meta(description="Of a session: how often it was begun.")] | UnsetType = UNSET
    lease_id: Annotated[str | None, Meta(description="Only with the session's secret.")] | UnsetType = UNSET
    lease_id_missing: Annotated[str, Meta(description="Why there is no lease id, and how to get one.")] | UnsetType = (
        UNSET
    )


class HeldPage(Struct, rename=CAMEL):
    """What the key holds: sessions, then jobs and locks, then reservations, then tasks, each by id."""

    held: list[Held]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class HeldFilter(Struct):
    """Filter and page."""

    owner: Annotated[QueryText, Meta(description=_OWNER)] | UnsetType = UNSET
    session_id: Annotated[UUID, Meta(description=_SESSION)] | UnsetType = UNSET
    limit: Annotated[int, within(bounds.JOB_PAGE)] = bounds.JOB_PAGE.default
    cursor: Annotated[QueryText, Meta(description="`nextCursor` of the previous page.")] | UnsetType = UNSET


_LOST = (errors.SessionMissing, errors.SessionExpired, errors.LeaseLost)

OPERATION_SCHEMAS = {
    "begin_session": OperationSchema(
        {200: BegunSession, 201: BegunSession},
        body=request_body(
            "BeginSessionBody",
            sessions.BeginBody,
            bounds.FIELDS["begin_session"],
            name=NOT_BLANK,
            capabilities=words(bounds.CAPABILITIES),
        ),
        refusals=(errors.SessionTaken, errors.SessionLive),
    ),
    "list_sessions": OperationSchema({200: SessionPage}, query=SessionFilter),
    "read_session": OperationSchema({200: ReadSession}, query=HoldingsFilter, refusals=(errors.SessionMissing,)),
    "heartbeat_session": OperationSchema(
        {200: NamedSession},
        body=request_body("HeartbeatSessionBody", sessions.HeartbeatBody, bounds.FIELDS["heartbeat_session"]),
        refusals=_LOST,
    ),
    "write_context": OperationSchema(
        {200: NamedSession},
        body=request_body("WriteContextBody", sessions.WriteBody, bounds.FIELDS["write_context"]),
        refusals=(*_LOST, errors.ContextConflict),
    ),
    "close_session": OperationSchema(
        {200: NamedSession}, body=request_body("CloseSessionBody", sessions.CloseBody, {}), refusals=_LOST
    ),
    "list_mine": OperationSchema(
        {200: HeldPage}, query=HeldFilter, refusals=(errors.SessionMissing,), takes_session_secret=True
    ),
}
