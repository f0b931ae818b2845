"""Renewal of a session and what it holds: by its own heartbeat, and by writes that carry its proof."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.deadlines import is_renewal_due
from holdfast.core.lease import Lease, proof_of
from holdfast.core.reservation import lifecycle
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.view import View
from holdfast.store.needs import Needs

Renewable = Lease | Task | Reservation | Session


class ActingSession(msgspec.Struct, frozen=True):
    """The session for which a write is sent, and its lease id: the write shows that the session's agent is alive."""

    principal: str
    session_id: str
    lease_id: str


def needs_of(account: str, acting: ActingSession) -> Needs:
    """The session and what it holds."""
    return Needs(
        rows=((Session.table, account, acting.session_id),),
        holdings=((account, acting.session_id),),
    )


def renew_by_write(view: View, account: str, acting: ActingSession) -> None:
    """Renew the session and its holdings, each at most once in a third of its TTL; refuses a wrong or old proof."""
    found = view.find(Session, account, acting.session_id)
    session = sessions.check_claimer(found, acting.principal, proof_of(acting.lease_id), view.now)
    if is_renewal_due(session, view.now):
        view.put(sessions.keep_alive(session, view.now), "renewed")
    renew_holdings(view, account, acting.session_id, is_renewal_due)


def renew_holdings(
    view: View,
    account: str,
    session_id: str,
    is_wanted: Callable[[Renewable, Instant], bool] = lambda _, __: True,
) -> None:
    """Renew what a session holds and what has not expired."""
    for lease in view.leases_of(account, session_id):
        if leases.is_live(lease, view.now) and is_wanted(lease, view.now):
            view.put(leases.extend(lease, ttl=lease.ttl, now=view.now), "renewed")
    for task in view.tasks_of(account, session_id):
        if leases.is_live(task, view.now) and is_wanted(task, view.now):
            view.put(tasks.heartbeat(task, view.now), "renewed")
    for row in view.reservations_of(account, session_id):
        if leases.is_live(row, view.now) and is_wanted(row, view.now):
            view.put(lifecycle.renew(row, ttl=None, now=view.now), "renewed")
