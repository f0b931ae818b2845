"""What a principal holds: its live jobs, locks, reservations and tasks, and its open named sessions."""

from __future__ import annotations

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.lease import JOB, LOCK, Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Task

Holding = Lease | Task | Reservation | Session


def is_held_by(row: Holding, principal: str, now: Instant, owner: str | None = None) -> bool:
    """Whether a key of this principal holds it now; with `owner`, only if its holder has that label.

    Elections are left out: no key is needed for them. The store's queries apply the same rule.
    """
    if row.principal != principal or owner not in {None, owner_label(row)}:
        return False
    if isinstance(row, Session):
        return row.name is not None and sessions.is_live(row, now)
    return leases.is_live(row, now) and (not isinstance(row, Lease) or row.kind in {JOB, LOCK})


def owner_label(row: Holding) -> str | None:
    """The label that its holder chose; of a session its name."""
    if isinstance(row, Session):
        return row.name
    return row.worker if isinstance(row, Task) else row.owner
