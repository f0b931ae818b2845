"""Schemas of OctoStore's `/sessions`."""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct

from holdfast.core import errors
from holdfast.transport.http.octostore import sessions
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Seconds, Time, request_body


class OpenedSession(Struct):
    """A new session and its keepalive interval."""

    session_id: UUID
    expires_at: Time
    keepalive_interval_secs: Seconds
    agent_contract: AgentContract


class KeptSession(Struct):
    """The session was renewed."""

    session_id: UUID
    expires_at: Time
    agent_contract: AgentContract


class SessionStatus(Struct):
    """Whether a session is active, and how many locks belong to it."""

    session_id: UUID
    user_id: str
    expires_at: Time
    lock_count: int
    active: bool
    agent_contract: AgentContract


OPERATION_SCHEMAS = {
    "open_session": OperationSchema({201: OpenedSession}, body=request_body("OpenSessionBody", sessions.OpenBody, {})),
    "get_session": OperationSchema({200: SessionStatus}, refusals=(errors.SessionMissing,)),
    "end_session": OperationSchema({204: None}, refusals=(errors.SessionMissing,)),
    "keepalive_session": OperationSchema({200: KeptSession}, refusals=(errors.SessionMissing, errors.SessionExpired)),
}
