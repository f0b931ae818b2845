"""Documents about OctoStore's locks."""

from __future__ import annotations

from typing import Any

from holdfast.core import lease as leases
from holdfast.core.lease import Lease
from holdfast.core.row import SECOND
from holdfast.engine.command import Held, LeaseOutcome
from holdfast.engine.verbs.locks import Acquired
from holdfast.transport.advice import locks as lock_advice
from holdfast.transport.advice.contract import seconds_to_wait
from holdfast.transport.http.octostore.bodies import metadata_text, milliseconds_left, pseudonym
from holdfast.transport.times import rfc3339, rfc3339_or_none


def acquired_document(outcome: Acquired) -> dict[str, Any]:
    """The answer to a caller that acquired or kept the lock."""
    lease = outcome.lease
    return {
        "status": "acquired",
        "lease_id": outcome.lease_id,
        "fencing_token": lease.token,
        "expires_at": rfc3339(lease.expires_at or 0),
        "renew_after_ms": milliseconds_left(lease.expires_at, outcome.now) // 2,
        "metadata": metadata_text(lease),
        "agent_contract": lock_advice.acquired(lease.id),
    }


def held_document(outcome: Held) -> dict[str, Any]:
    """The answer to a caller that finds the lock held."""
    lease = outcome.lease
    return {
        "status": "held",
        "holder_id": pseudonym(lease.holder or ""),
        "expires_at": rfc3339(lease.expires_at or 0),
        "retry_after_ms": milliseconds_left(lease.expires_at, outcome.now),
        "metadata": metadata_text(lease),
        "agent_contract": lock_advice.held(lease.id, seconds_to_wait(lease.expires_at, outcome.now)),
    }


def delayed_document(outcome: LeaseOutcome) -> dict[str, Any]:
    """The answer during the delay after the last holder."""
    lease, ended = outcome.lease, leases.last_ending(outcome.lease)
    delay = (lease.available_at or 0) - (ended.at if ended else 0)
    return {
        "status": "delayed",
        "available_at": rfc3339(lease.available_at or 0),
        "lock_delay_seconds": delay // SECOND,
        "retry_after_ms": milliseconds_left(lease.available_at, outcome.now),
        "agent_contract": lock_advice.held(lease.id, seconds_to_wait(lease.available_at, outcome.now)),
    }


def status_document(lease: Lease, next_token: int) -> dict[str, Any]:
    """A held lock as every reader may see it."""
    return {
        "name": lease.id,
        "status": "held",
        "holder_id": pseudonym(lease.holder or ""),
        "fencing_token": lease.token or next_token,
        "expires_at": rfc3339_or_none(lease.expires_at),
        "metadata": metadata_text(lease),
    }


def free_document(lease: Lease, token: int) -> dict[str, Any]:
    """A free lock as every reader may see it."""
    return {
        "name": lease.id,
        "status": "free",
        "holder_id": None,
        "fencing_token": token,
        "expires_at": None,
        "metadata": None,
    }
