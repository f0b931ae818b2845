"""Documents about what a key holds: one form for sessions, jobs, locks, reservations and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.core.deadlines import heartbeat_interval, session_of
from holdfast.core.holdings.held_by import Holding, owner_label
from holdfast.core.holdings.lease_ids import recover_lease_id, recover_session_lease_id
from holdfast.core.lease import LOCK, Lease, renewal_interval
from holdfast.core.offer import open_offer
from holdfast.core.reservation.row import Reservation, paths_of
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.transport.advice.contract import seconds_left
from holdfast.transport.http.request import raw_json
from holdfast.transport.times import rfc3339_or_none

_RESUME = "Resume the session with its secret: the answer has new lease ids."
_OLDER = f"An older version of the server made it. {_RESUME}"
_WITHOUT_PROOF = f"It was claimed without `session_lease_id`. {_RESUME}"
_OF_A_LOCK = "The lease id of a lock is derived from your key. Acquire the lock again: the answer has it."
"""Why a lease id cannot be computed, and how to get one."""


def held_document(row: Holding, now: Instant) -> dict[str, Any]:
    """What a key holds, as its holder may see it: with the token, and without the lease id."""
    document: dict[str, Any] = {
        "kind": row.kind if isinstance(row, Lease) else row.noun,
        "id": row.id,
        "owner": owner_label(row),
        "token": row.token,
        "claimed_at": rfc3339_or_none(row.opened_at if isinstance(row, Session) else row.claimed_at),
        "expires_at": rfc3339_or_none(row.expires_at),
        "expires_in_seconds": seconds_left(row.expires_at, now),
        "heartbeat_every_seconds": max(_interval(row, now) // SECOND, 1),
    }
    if isinstance(row, Session):
        held = {"session_id": row.id, "note": None, "checkpoint": None, "progress": None}
        return document | held | {"generation": row.generation}
    document |= {
        "session_id": session_of(row),
        "note": row.note,
        "checkpoint": raw_json(row.checkpoint),
        "progress": None if isinstance(row, Reservation) else raw_json(row.progress),
    }
    offer = open_offer(row, now)
    if offer is not None:
        document["offered"] = {"until": rfc3339_or_none(offer.until), "to": offer.to}
    if isinstance(row, Reservation):
        return document | {"space": row.space, "paths": paths_of(row), "mode": row.mode}
    return document | {"type": row.type} if isinstance(row, Task) else document


def with_lease_ids(documents: Sequence[dict[str, Any]], rows: Sequence[Holding], session: Session, secret: str) -> None:
    """Add the lease ids that the session's secret gives, and to the others why it gives none."""
    session_lease_id = recover_session_lease_id(secret, session)
    for document, row in zip(documents, rows, strict=True):
        if isinstance(row, Session):
            found = session_lease_id
        else:
            found = None if session_lease_id is None else recover_lease_id(session_lease_id, row)
        document["lease_id"] = found
        if found is None:
            document["lease_id_missing"] = _reason(row, session_lease_id)


def _reason(row: Holding, session_lease_id: str | None) -> str:
    if isinstance(row, Lease) and row.kind == LOCK:
        return _OF_A_LOCK
    return _OLDER if session_lease_id is None else _WITHOUT_PROOF


def _interval(row: Holding, now: Instant) -> Instant:
    return renewal_interval(row.ttl) if isinstance(row, Session) else heartbeat_interval(row, now)
