"""Sessions as the API shows them: without the secret and the lease id."""

from __future__ import annotations

from typing import Any

from holdfast.core import session as sessions
from holdfast.core.event_filter import READ_SCOPES
from holdfast.core.lease import Lease, renewal_interval
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation, paths_of
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.core.task.capabilities import split_words
from holdfast.engine.verbs.sessions import SessionState
from holdfast.transport.http.request import raw_json
from holdfast.transport.times import rfc3339, rfc3339_or_none


def session_status(session: Session, now: Instant) -> str:
    """`live`, `ended` or `expired`."""
    if sessions.is_live(session, now):
        return "live"
    return "ended" if session.ended_how == sessions.DELETED else "expired"


def session_document(by: Principal, outcome: SessionState) -> dict[str, Any]:
    """A session and what it holds: only what the key may read."""
    return {
        **session_fields(outcome.session),
        "jobs": [_job_document(job) for job in outcome.jobs if by.may(READ_SCOPES[job.noun])],
        "tasks": [_task_document(task) for task in outcome.tasks if by.may(READ_SCOPES[task.noun])],
        "reservations": [_reservation_document(row) for row in outcome.reservations if by.may(READ_SCOPES[row.noun])],
    }


def session_fields(session: Session) -> dict[str, Any]:
    """What every reader of the account may see: without the secret and the lease id."""
    return {
        "session_id": session.id,
        "name": session.name,
        "generation": session.generation,
        "lane": session.lane,
        "capabilities": sorted(split_words(session.capabilities)),
        "opened_at": rfc3339(session.opened_at),
        "expires_at": rfc3339(session.expires_at),
        "ended_at": rfc3339_or_none(session.ended_at),
        "ttl_seconds": session.ttl // SECOND,
        "heartbeat_every_seconds": max(renewal_interval(session.ttl) // SECOND, 1),
        "turn": session.turn,
        "last_action": session.last_action,
        "next_action": session.next_action,
        "context_hash": session.context_hash,
        "memory_ref": session.memory_ref,
        "context": raw_json(session.context),
        "context_version": session.context_version,
    }


def _job_document(lease: Lease) -> dict[str, Any]:
    return {
        "job_id": lease.id,
        "owner": lease.owner,
        "token": lease.token,
        "expires_at": rfc3339_or_none(lease.expires_at),
        "note": lease.note,
        "checkpoint": raw_json(lease.checkpoint),
    }


def _reservation_document(row: Reservation) -> dict[str, Any]:
    return {
        "reservation_id": row.id,
        "space": row.space,
        "paths": paths_of(row),
        "mode": row.mode,
        "owner": row.owner,
        "token": row.token,
        "expires_at": rfc3339_or_none(row.expires_at),
    }


def _task_document(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "type": task.type,
        "fencingToken": task.token,
        "leaseExpiresAt": rfc3339_or_none(task.expires_at),
        "payload": raw_json(task.payload),
        "note": task.note,
        "checkpoint": raw_json(task.checkpoint),
    }
