"""The session for which a holder sends a write: the write renews what the session holds."""

from __future__ import annotations

from typing import Protocol

from holdfast.engine.session_renewal import ActingSession
from holdfast.operations import bounds
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.octostore.bodies import parse_uuid
from holdfast.transport.http.request import Request


class HolderBody(Protocol):
    """The fields of a body that name a session."""

    session_id: str | None
    session_lease_id: str | None


def check_acting_session(checks: Checks, request: Request, body: HolderBody) -> ActingSession | None:
    """The session that the body names; its id and its lease id are sent together."""
    if body.session_id is None and body.session_lease_id is None:
        return None
    session_id = None if body.session_id is None else parse_uuid(body.session_id)
    checks.require(session_id is not None, "session_id", "`session_id` must be a UUID, beside `session_lease_id`")
    has_lease_id = body.session_lease_id is not None
    checks.require(has_lease_id, "session_lease_id", "`session_lease_id` must be sent beside `session_id`")
    checks.check_text(body.session_lease_id, "session_lease_id", bounds.SESSION_LEASE_ID)
    return ActingSession(request.by.id, session_id or "", body.session_lease_id or "")
