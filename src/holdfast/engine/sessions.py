"""The verbs of sessions: open, keep alive, end."""

from __future__ import annotations

from holdfast.core import session as sessions
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.engine.command import Command
from holdfast.engine.expiry import end_session
from holdfast.store.view import Needs, View


class SessionCommand(Command[Session], frozen=True):
    """A verb about one session of the caller's."""

    by: Principal
    session_id: str

    def needs(self) -> Needs:
        """The session."""
        return Needs(rows=((Session.table, self.account, self.session_id),))


class OpenSession(SessionCommand, frozen=True):
    """Begin a life."""

    ttl_seconds: int | None = None

    def decide(self, view: View) -> Session:
        """A session under the id it was given, with its time to live bounded."""
        ttl = sessions.clamp_ttl(self.ttl_seconds) * SECOND
        session = Session(
            self.account,
            self.session_id,
            principal=self.by.id,
            ttl=ttl,
            opened_at=view.now,
            expires_at=view.now + ttl,
        )
        return view.put(session, "opened")


class KeepSessionAlive(SessionCommand, frozen=True):
    """Still there: start its time to live again."""

    urgent = True

    def decide(self, view: View) -> Session:
        """The session with its new deadline."""
        session = sessions.check_live(view.find(Session, self.account, self.session_id), self.by.id, view.now)
        return view.put(sessions.keep_alive(session, view.now), "renewed")


class EndSession(SessionCommand, frozen=True):
    """End a life: what was claimed for it is freed in the same transaction."""

    urgent = True

    def needs(self) -> Needs:
        """The session and its leases."""
        return Needs(
            rows=((Session.table, self.account, self.session_id),),
            session_leases=((self.account, self.session_id),),
        )

    def decide(self, view: View) -> Session:
        """The session as it was; one that has just run out may still be ended."""
        session = sessions.find(view.find(Session, self.account, self.session_id), self.by.id, view.now)
        end_session(view, session, sessions.DELETED)
        return session
