"""Parses `session_id` and `session_lease_id` of a holder's request, which then also renews the session."""

from __future__ import annotations

from typing import Protocol

from holdfast.engine.session_renewal import ActingSession
from holdfast.operations import bounds
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import field_error
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
    if body.session_id is None or body.session_lease_id is None:
        missing = "session_id" if body.session_id is None else "session_lease_id"
        message = f"`{missing}` is missing: `session_id` and `session_lease_id` are sent together"
        checks.errors.append(field_error(f"/{missing}", "incomplete_session", message))
        return None
    session_id = parse_uuid(body.session_id)
    checks.require(session_id is not None, "session_id", "`session_id` must be a UUID")
    checks.check_text(body.session_lease_id, "session_lease_id", bounds.SESSION_LEASE_ID)
    return ActingSession(request.by.id, session_id or "", body.session_lease_id)
