"""Commands of named sessions, which can be resumed: open or resume, heartbeat, context, end."""

from __future__ import annotations

from typing import Self

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.errors import Forbidden, SessionMissing
from holdfast.core.holdings.lease_ids import held_lease_id, is_secret_of, session_lease_id
from holdfast.core.lease import Lease, proof_of
from holdfast.core.principal import Principal
from holdfast.core.reservation import lifecycle
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.core.session import Context, Session
from holdfast.core.task import Task
from holdfast.engine.batches.steps import with_token
from holdfast.engine.command import Command, Outcome
from holdfast.engine.expiry import end_session, expire_holdings
from holdfast.engine.session_renewal import renew_holdings
from holdfast.engine.verbs.octostore_sessions import with_holdings
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class SessionState(Outcome, frozen=True, kw_only=True):
    """The session and what it holds."""

    session: Session
    jobs: tuple[Lease, ...] = ()
    tasks: tuple[Task, ...] = ()
    reservations: tuple[Reservation, ...] = ()

    def with_tokens(self, tokens: list[int]) -> Self:
        """The state with the tokens drawn for it."""
        return replace(
            self,
            session=with_token(self.session, tokens),
            jobs=tuple(with_token(job, tokens) for job in self.jobs),
            tasks=tuple(with_token(task, tokens) for task in self.tasks),
            reservations=tuple(with_token(row, tokens) for row in self.reservations),
        )


class BegunSession(SessionState, frozen=True, kw_only=True):
    """A new generation. Only this answer contains the lease ids, and only the first one the secret."""

    resumed: bool
    secret: str | None
    lease_id: str
    """Those of the jobs and tasks are derived from it."""


class SessionCommand(Command[SessionState], frozen=True):
    """A command about one session."""

    by: Principal
    session_id: str

    def needs(self) -> Needs:
        """The session and what it holds."""
        return with_holdings(self.account, self.session_id)


class BeginSession(SessionCommand, frozen=True):
    """Open a session by its stable name, or resume it."""

    name: str
    ttl: Instant
    fresh_secret: str
    """The secret of a session that has none yet, or whose secret is lost."""
    secret: str | None = None
    lane: bool | None = None
    capabilities: str | None = None
    """What the agent can do; None leaves what the session had."""
    context: Context = Context()
    unless_live: bool = False
    """Refuse to take a live session over, although the caller has its secret."""

    def size(self) -> int:
        """The size of its context."""
        return len(self.context.context or "")

    def decide(self, view: View) -> BegunSession:
        """The new generation: what the previous one still holds gets new lease ids and tokens."""
        found = view.find(Session, self.account, self.session_id)
        session = found or Session(self.account, self.session_id)
        proof = None if self.secret is None else proof_of(self.secret)
        sessions.check_name(session, proof, self.by.id, view.now)
        if self.unless_live and found is not None:
            sessions.check_not_live(session, view.now)
        if found is not None and sessions.is_due(found, view.now):
            end_session(view, found, sessions.EXPIRED)
            session = view.find(Session, self.account, self.session_id) or found
        known = self.secret if self.secret is not None and is_secret_of(session, self.secret) else None
        secret = self.fresh_secret if known is None else known
        begun = sessions.begin(
            replace(
                session,
                principal=self.by.id,
                name=self.name,
                ttl=self.ttl,
                secret=proof_of(secret),
                lane=session.lane if self.lane is None else self.lane,
                capabilities=session.capabilities if self.capabilities is None else self.capabilities or None,
            ),
            token=view.token(),
            now=view.now,
        )
        lease_id = session_lease_id(secret, begun)
        begun = replace(begun, proof=proof_of(lease_id))
        resumed = session.version > 0
        expire_holdings(view, self.account, self.session_id)
        begun = view.put(sessions.write_context(begun, self.context, None), "resumed" if resumed else "opened")
        return BegunSession(
            session=begun,
            jobs=tuple(
                view.effective(self._reissue_job(view, lease, lease_id))
                for lease in view.leases_of(self.account, self.session_id)
            ),
            tasks=tuple(
                view.effective(self._reissue_task(view, task, lease_id))
                for task in view.tasks_of(self.account, self.session_id)
            ),
            reservations=tuple(
                view.effective(self._reissue_reservation(view, row, lease_id))
                for row in view.reservations_of(self.account, self.session_id)
            ),
            now=view.now,
            resumed=resumed,
            secret=self.fresh_secret if known is None else None,
            lease_id=lease_id,
        )

    def _reissue_job(self, view: View, lease: Lease, lease_id: str) -> Lease:
        proof = proof_of(held_lease_id(lease_id, lease))
        reissued = replace(lease, proof=proof, token=view.token())
        return view.put(leases.extend(reissued, ttl=lease.ttl, now=view.now), "reissued")

    def _reissue_reservation(self, view: View, row: Reservation, lease_id: str) -> Reservation:
        reissued = replace(row, proof=proof_of(held_lease_id(lease_id, row)), token=view.token())
        return view.put(lifecycle.renew(reissued, ttl=None, now=view.now), "reissued")

    def _reissue_task(self, view: View, task: Task, lease_id: str) -> Task:
        proof = proof_of(held_lease_id(lease_id, task))
        return view.put(tasks.reissue(task, proof=proof, token=view.token(), now=view.now), "reissued")


class GenerationCommand(SessionCommand, frozen=True):
    """A write by the newest generation of a session."""

    urgent = True
    lease_id: str | None

    def session(self, view: View) -> Session:
        """The caller's session; refuses an older generation."""
        session = view.find(Session, self.account, self.session_id)
        if session is None or session.principal != self.by.id or session.name is None:
            raise SessionMissing("there is no such session")
        sessions.check_generation(session, None if self.lease_id is None else proof_of(self.lease_id), view.now)
        return session

    def state(self, view: View, session: Session) -> SessionState:
        """The session and what it holds."""
        return SessionState(
            session=session,
            jobs=tuple(map(view.effective, view.leases_of(self.account, self.session_id))),
            tasks=tuple(map(view.effective, view.tasks_of(self.account, self.session_id))),
            reservations=tuple(map(view.effective, view.reservations_of(self.account, self.session_id))),
            now=view.now,
        )


class HeartbeatSession(GenerationCommand, frozen=True):
    """Renew the session and all that it holds."""

    context: Context = Context()

    def size(self) -> int:
        """The size of its context."""
        return len(self.context.context or "")

    def decide(self, view: View) -> SessionState:
        """The session and its holdings, with their deadlines moved."""
        renewed = sessions.write_context(sessions.keep_alive(self.session(view), view.now), self.context, None)
        session = view.put(renewed, "renewed")
        renew_holdings(view, self.account, self.session_id)
        return self.state(view, session)


class WriteContext(GenerationCommand, frozen=True):
    """Write the context that the agent needs when it resumes."""

    context: Context
    if_version: int | None = None

    def size(self) -> int:
        """The size of its context."""
        return len(self.context.context or "")

    def decide(self, view: View) -> SessionState:
        """The session with its new context; this also renews the session."""
        written = sessions.write_context(self.session(view), self.context, self.if_version)
        session = view.put(sessions.keep_alive(written, view.now), "context")
        return self.state(view, session)


class CloseSession(GenerationCommand, frozen=True):
    """Close the session and free what it holds; the context stays."""

    def decide(self, view: View) -> SessionState:
        """The closed session. An administrator need not send its lease id."""
        session = self.session(view)
        if self.lease_id is None and not self.by.may("admin"):
            raise Forbidden("closing a session takes its `lease_id`, or a key with the scope admin", scope="admin")
        end_session(view, session, sessions.DELETED)
        return SessionState(session=view.find(Session, self.account, self.session_id) or session, now=view.now)
