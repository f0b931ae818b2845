"""Effective deadlines: a lease ends at its own deadline or with the session it was claimed for, whichever is earlier.

Rows keep both deadlines apart, because each is renewed on its own. Every answer shows the earlier one: a holder that
relied on the later one would go on working after another had claimed the job.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from holdfast.core import session as sessions
from holdfast.core.lease import Lease, renewal_interval
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Task, is_last_lease, lease_ttl

Held = TypeVar("Held", Lease, Task, Reservation)


def session_of(row: Lease | Task | Reservation) -> str | None:
    """The session whose end frees the row, if there is one."""
    return row.session if not isinstance(row, Lease) or row.ephemeral else None


def ttl_of(row: Lease | Task | Reservation | Session) -> Instant:
    """How long it lasts after a renewal."""
    return lease_ttl(row) if isinstance(row, Task) else row.ttl


def effective_deadline(row: Lease | Task | Reservation, session: Session | None) -> Instant | None:
    """When a held row is free again: at its own deadline, or with the session that it was claimed for."""
    if row.expires_at is None or session is None or session_of(row) != session.id:
        return row.expires_at
    return min(row.expires_at, sessions.deadline(session))


def with_effective_deadline(row: Held, session: Session | None) -> Held:
    """The row as an answer shows it: it expires no later than the session that it was claimed for."""
    deadline = effective_deadline(row, session)
    return row if deadline == row.expires_at else replace(row, expires_at=deadline)


def heartbeat_interval(row: Lease | Task | Reservation, now: Instant) -> Instant:
    """How often the holder of a row with its effective deadline should renew.

    A third of the TTL, or of the time that its session still lasts, if that is shorter.
    """
    ttl = ttl_of(row)
    if session_of(row) is not None and row.expires_at is not None:
        ttl = min(ttl, max(row.expires_at - now, 0))
    return renewal_interval(ttl)


def is_renewal_due(row: Lease | Task | Reservation | Session, now: Instant) -> bool:
    """Whether a third of its TTL has passed since its last renewal: a write that carries its session renews it then.

    A lease that ends with its attempt cannot be renewed any more, so it would be due again at once, for ever.
    """
    if isinstance(row, Task) and is_last_lease(row):
        return False
    ttl = ttl_of(row)
    return row.expires_at is not None and now >= row.expires_at - ttl + renewal_interval(ttl)


def after_clock_step(expires_at: Instant, ttl: Instant, step: Instant, now: Instant) -> Instant:
    """The deadline after the store's clock was set by `step`: the holder keeps the time it had left, up to its TTL.

    Several servers notice the same step, each by itself. Moving a deadline twice for one step does no harm: the holder
    has at least the time it had left, and at most its TTL.
    """
    if step > 0:
        return max(expires_at, min(expires_at + step, now + ttl))
    return min(expires_at, now + ttl)
