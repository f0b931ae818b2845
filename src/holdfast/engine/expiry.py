"""What time does by itself: leases and sessions run out, and after an outage holders get some grace."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.lease import EXPIRED, JOB, SESSION_ENDED, Lease
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Session
from holdfast.engine.command import Command
from holdfast.store.view import Needs, View

GRACE = 10 * SECOND


def settle(view: View, account: str, name: str) -> Lease:
    """The lease row as it truly is: one that has run out is ended first, swept or not."""
    lease = view.lease(account, name)
    if leases.is_due(lease, view.now):
        return view.put(leases.end(lease, EXPIRED, now=view.now), "expired")
    return lease


def end_session(view: View, session: Session, how: str) -> None:
    """Close a session and free what was claimed for its life."""
    view.put(sessions.end(session, how, view.now), "expired" if how == sessions.EXPIRED else "ended")
    for lease in view.leases_of(session.account, session.id):
        view.put(leases.end(lease, SESSION_ENDED, now=view.now, reason=f"session {how}"), "released")


class ExpireLease(Command[bool], frozen=True):
    """End a lease whose time has run out; nothing happens if it was renewed meanwhile."""

    urgent = True
    name: str

    def needs(self) -> Needs:
        """The lease."""
        return Needs(rows=((Lease.table, self.account, self.name),))

    def decide(self, view: View) -> bool:
        """Whether it is free now."""
        return not leases.is_held(settle(view, self.account, self.name))


class ExpireSession(Command[bool], frozen=True):
    """End a session whose time has run out, and free what it held."""

    urgent = True
    session_id: str

    def needs(self) -> Needs:
        """The session and its leases."""
        return Needs(
            rows=((Session.table, self.account, self.session_id),),
            session_leases=((self.account, self.session_id),),
        )

    def decide(self, view: View) -> bool:
        """Whether it was due."""
        session = view.find(Session, self.account, self.session_id)
        if session is None or not sessions.is_due(session, view.now):
            return False
        end_session(view, session, sessions.EXPIRED)
        return True


class GiveGrace(Command[bool], frozen=True):
    """More time for a job whose holder could not renew while the store was away."""

    urgent = True
    name: str
    seen: Instant
    """When the store was last known to be served."""

    def needs(self) -> Needs:
        """The lease."""
        return Needs(rows=((Lease.table, self.account, self.name),))

    def decide(self, view: View) -> bool:
        """Whether it was given any."""
        lease = view.lease(self.account, self.name)
        until = view.now + grace(view.now - self.seen, lease.ttl)
        if lease.kind != JOB or not leases.is_live(lease, self.seen) or (lease.expires_at or 0) >= until:
            return False
        view.put(replace(lease, expires_at=until), "extended")
        return True


def grace(outage: Instant, ttl: Instant) -> Instant:
    """How long a holder that could not renew keeps its lease after the store is back."""
    return max(GRACE, min(outage, ttl))
