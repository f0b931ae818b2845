"""Documents about reservations: for the holder, for a caller that finds files held, and for readers."""

from __future__ import annotations

from typing import Any

from holdfast.core.offer import open_offer
from holdfast.core.reservation.lifecycle import Conflict
from holdfast.core.reservation.row import Reservation, is_open, paths_of
from holdfast.core.row import SECOND, Instant
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.reservations import ChangedReservation, FilesHeld
from holdfast.transport.advice import reservations as advice
from holdfast.transport.advice.contract import seconds_left, seconds_to_wait
from holdfast.transport.deadlines import heartbeat_seconds
from holdfast.transport.http.request import encode, raw_json
from holdfast.transport.times import rfc3339, rfc3339_or_none

RESERVED, WAITING, ENDED = "reserved", "waiting", "ended"


def render_reserve(warnings: list[str], outcome: Any) -> tuple[int, bytes]:
    """Status and body of the answer to a request for files."""
    if isinstance(outcome, Reserved):
        proof = {"lease_id": outcome.lease_id, "token": outcome.row.token}
        return _answer(_held_by_caller(outcome.row, outcome.now) | proof, warnings)
    wait = _seconds_to_wait(outcome)
    return _answer(held_document(outcome, wait) | {"agent_contract": advice.held(wait)}, warnings)


def render_renewed(warnings: list[str], outcome: Any) -> tuple[int, bytes]:
    """Status and body of the answer to a heartbeat."""
    return _answer(_held_by_caller(outcome.row, outcome.now), warnings)


def render_offered(warnings: list[str], code: str, outcome: Any) -> tuple[int, bytes]:
    """Status and body of the answer to an offer: only this answer contains the code."""
    row, now = outcome.row, outcome.now
    document = reservation_document(row, now) | {"status": "offered", "offer": code, "ttl_seconds": row.ttl // SECOND}
    document["agent_contract"] = advice.offered(row.id, document["expires_in_seconds"])
    return _answer(document, warnings)


def render_extended(reservation_id: str, warnings: list[str], outcome: Any) -> tuple[int, bytes]:
    """Status and body of the answer to a request for more files."""
    if isinstance(outcome, ChangedReservation):
        return render_renewed(warnings, outcome)
    wait = _seconds_to_wait(outcome)
    contract = advice.not_extended(reservation_id, wait)
    return _answer(held_document(outcome, wait) | {"agent_contract": contract}, warnings)


def render_released(warnings: list[str], outcome: Any) -> tuple[int, bytes]:
    """Status and body of the answer to a release."""
    row = outcome.row
    if is_open(row):  # some of its paths, or its offer, were given up
        return _answer(_held_by_caller(row, outcome.now) | {"agent_contract": advice.reduced(row.id)}, warnings)
    document = {
        "status": "released",
        "reservation_id": row.id,
        "space": row.space,
        "paths": paths_of(row),
        "released_at": rfc3339(outcome.now),
        "agent_contract": advice.released(),
    }
    return _answer(document, warnings)


def held_document(outcome: FilesHeld, wait: int) -> dict[str, Any]:
    """What conflicts with the caller's request."""
    document: dict[str, Any] = {
        "status": "held",
        "conflicts": [_conflict(conflict, outcome.now) for conflict in outcome.conflicts],
        "waiting": outcome.waiting,
        "retry_after_seconds": wait,
    }
    if outcome.waiting_id is not None:
        document["waiting_id"] = outcome.waiting_id
    return document


def reservation_document(row: Reservation, now: Instant) -> dict[str, Any]:
    """What every reader may see of a reservation: never the lease id or the token."""
    document: dict[str, Any] = {
        "status": status_of(row, now),
        "reservation_id": row.id,
        "space": row.space,
        "owner": row.owner,
        "paths": paths_of(row),
        "mode": row.mode,
        "reason": row.reason,
        "metadata": raw_json(row.metadata),
        "reserved_at": rfc3339_or_none(row.claimed_at),
        "expires_at": rfc3339_or_none(row.expires_at),
        "expires_in_seconds": seconds_left(row.expires_at, now),
        "session_id": row.session,
        "note": row.note,
        "checkpoint": raw_json(row.checkpoint),
    }
    offer = open_offer(row, now)
    if offer is not None:
        document["offered"] = {"until": rfc3339(offer.until), "to": offer.to}
    if document["status"] == ENDED:
        document["ended"] = {
            "how": row.ended_how or "expired",
            "at": rfc3339_or_none(row.ended_at or row.expires_at),
            "by": row.ended_by,
            "reason": row.ended_reason,
        }
    return document


def status_of(row: Reservation, now: Instant) -> str:
    """`reserved`, `waiting` or `ended`; one that has expired has ended, swept or not."""
    deadline = row.expires_at if row.proof is not None else row.waits_until
    if deadline is None or deadline <= now:
        return ENDED
    return RESERVED if row.proof is not None else WAITING


def _held_by_caller(row: Reservation, now: Instant) -> dict[str, Any]:
    every = heartbeat_seconds(row, now)
    document = reservation_document(row, now)
    document["ttl_seconds"] = row.ttl // SECOND
    document["heartbeat_every_seconds"] = every
    document["agent_contract"] = advice.reserved(row.id, document["expires_in_seconds"], every)
    return document


def _conflict(conflict: Conflict, now: Instant) -> dict[str, Any]:
    row = conflict.row
    return {
        "reservation_id": row.id,
        "status": status_of(row, now),
        "owner": row.owner,
        "mode": row.mode,
        "reason": row.reason,
        "expires_at": rfc3339_or_none(row.expires_at),
        "expires_in_seconds": None if row.expires_at is None else seconds_left(row.expires_at, now),
        "paths": [{"yours": yours, "theirs": theirs} for yours, theirs in conflict.overlapping_pairs],
    }


def _seconds_to_wait(outcome: FilesHeld) -> int:
    """Until the last conflicting reservation has expired, if it is not renewed."""
    deadlines = [conflict.row.expires_at for conflict in outcome.conflicts if conflict.row.expires_at is not None]
    return seconds_to_wait(max(deadlines, default=None), outcome.now)


def _answer(document: dict[str, Any], warnings: list[str]) -> tuple[int, bytes]:
    if warnings:
        document["warnings"] = warnings
    return 200, encode(document)
