"""Commands of OctoStore's sessions, which have no name and cannot be resumed: open, keep alive, end."""

from __future__ import annotations

from holdfast.core import session as sessions
from holdfast.core.principal import Principal
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.engine.command import Command
from holdfast.engine.expiry import end_session
from holdfast.engine.view import View
from holdfast.store.needs import Needs


def with_holdings(account: str, session_id: str) -> Needs:
    """Needs of a command that reads a session and what it holds."""
    return Needs(rows=((Session.table, account, session_id),), holdings=((account, session_id),))


class SessionCommand(Command[Session], frozen=True):
    """A command about one session of the caller."""

    by: Principal
    session_id: str

    def needs(self) -> Needs:
        """The session."""
        return Needs(rows=((Session.table, self.account, self.session_id),))

    def find_unnamed(self, view: View) -> Session | None:
        """The session if it has no name: only the newest generation of a named one may act."""
        session = view.find(Session, self.account, self.session_id)
        return None if session is None or session.name is not None else session


class OpenSession(SessionCommand, frozen=True):
    """Open a session."""

    ttl_seconds: int | None = None

    def decide(self, view: View) -> Session:
        """The new session, with its TTL within the bounds."""
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
    """Renew the session."""

    urgent = True

    def decide(self, view: View) -> Session:
        """The session with its new deadline."""
        session = sessions.check_live(self.find_unnamed(view), self.by.id, view.now)
        return view.put(sessions.keep_alive(session, view.now), "renewed")


class EndSession(SessionCommand, frozen=True):
    """End the session and free what it holds, in the same transaction."""

    urgent = True

    def needs(self) -> Needs:
        """The session and what it holds."""
        return with_holdings(self.account, self.session_id)

    def decide(self, view: View) -> Session:
        """The session as it was; one that has just expired may still be ended."""
        session = sessions.find(self.find_unnamed(view), self.by.id, view.now)
        end_session(view, session, sessions.DELETED)
        return session
