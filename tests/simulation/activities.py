"""What simulated clients do with names and sessions: claim, renew, release, resume, and write as a former holder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from holdfast.core.errors import Refused
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.lease import DONE, FAILED, RELEASED
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.row import SECOND
from holdfast.core.session import Context
from holdfast.engine.command import Command, LeaseOutcome
from holdfast.engine.verbs import elections, job_claims, job_offers, jobs, locks
from holdfast.engine.verbs.octostore_sessions import EndSession, KeepSessionAlive, OpenSession
from holdfast.engine.verbs.sessions import BeginSession, BegunSession, CloseSession, HeartbeatSession, WriteContext
from tests.simulation.clients import BASE, TTL, Activity, Client
from tests.simulation.request import Operation, is_holder_command

WAIT_SECONDS = 30.0


class NameActivity(Activity):
    """Holds names: jobs, locks or elections."""

    names: tuple[str, ...]

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.held: dict[str, str] = {}
        self.past: list[tuple[str, str]] = []
        """Leases that it gave up or lost: it may still write with them."""

    def next_operation(self) -> Operation | None:
        name = self.random.choice(self.names)
        lease_id = self.held.get(name)
        if lease_id is not None:
            return self.operation(self.write(name, lease_id))
        if self.past and self.random.random() < 0.25:
            return self.operation(self.write(*self.random.choice(self.past)))
        return self.claim(name)

    @abstractmethod
    def claim(self, name: str) -> Operation:
        """Ask for a name that it does not hold."""

    @abstractmethod
    def write(self, name: str, lease_id: str) -> Command[Any]:
        """A change that only the holder may make."""

    def receive(self, command: Command[Any], outcome: Any) -> None:
        name = command.name
        if isinstance(command, job_offers.OfferJob) and isinstance(outcome, LeaseOutcome):
            self.client.world.job_offers.append((name, command.code))
            self._lose(name, command.lease_id)  # it goes on to other work, and seldom writes with this lease again
        elif is_holder_command(command):
            is_over = isinstance(command, jobs.ReleaseJob) or isinstance(outcome, Refused)
            if is_over or (isinstance(outcome, LeaseOutcome) and outcome.lease.proof is None):
                self._lose(name, command.lease_id)
        elif (lease_id := self.granted_id(command, outcome)) is not None:
            self.held[name] = lease_id

    def granted_id(self, command: Command[Any], outcome: Any) -> str | None:
        """The lease id that an answer grants."""
        return getattr(outcome, "lease_id", None)

    def _lose(self, name: str, lease_id: str) -> None:
        self.past.append((name, lease_id))
        if self.held.get(name) == lease_id:
            del self.held[name]

    def forget(self) -> None:
        self.past += self.held.items()
        self.held = {}


class JobActivity(NameActivity):
    names = ("north", "south")

    def claim(self, name: str) -> Operation:
        offered = self.client.world.job_offers
        if offered and self.random.random() < 0.4:
            name, code = self.random.choice(offered[-3:])
            return self.operation(self.claim_command(name, offer=code))
        if self.random.random() < 0.06:
            by = {"by": "admin", "reason": "needed elsewhere"}
            return self.operation(jobs.ForceRelease(**BASE, name=name, **by))
        return self.operation(self.claim_command(name), WAIT_SECONDS if self.random.random() < 0.5 else 0.0)

    def claim_command(self, name: str, **more: Any) -> job_claims.ClaimJob:
        return job_claims.ClaimJob(
            **BASE, name=name, lease_id="", holder="", by=self.client.principal, owner=str(self.client), ttl=TTL,
            once=self.maybe_once(), again=self.random.random() < 0.5, **more,
        )  # fmt: skip

    def write(self, name: str, lease_id: str) -> Command[Any]:
        chance = self.random.random()
        if (name, lease_id) in self.past and chance < 0.6:
            return job_offers.WithdrawJobOffer(**BASE, name=name, lease_id=lease_id)
        if chance < 0.25:
            lasts = self.random.choice([TTL // 2, TTL, 3 * TTL])
            code = self.client.new_id("code")
            return job_offers.OfferJob(**BASE, name=name, lease_id=lease_id, code=code, lasts=lasts, note="take it")
        if chance < 0.55:
            how = self.random.choice([RELEASED, FAILED, DONE, DONE])
            return jobs.ReleaseJob(
                **BASE, name=name, lease_id=lease_id, how=how, result='"r"' if how == DONE else None, done_for=2 * TTL,
                note="for the next one", once=self.maybe_once(),
            )  # fmt: skip
        note = self.random.choice([None, "halfway"])
        ttl = self.random.choice([None, TTL // 2, 2 * TTL])
        return jobs.HeartbeatJob(
            **BASE, name=name, lease_id=lease_id, ttl=ttl, note=note, once=self.maybe_once() if note else None
        )


class LockActivity(NameActivity):
    names = ("door", "gate")

    def claim(self, name: str) -> Operation:
        return self.operation(self.acquire(name, delay=self.random.choice([0, 0, 3 * SECOND])))

    def acquire(self, name: str, **more: Any) -> locks.AcquireLock:
        by = self.client.principal
        return locks.AcquireLock(**BASE, name=name, by=by, secret=by.name.encode(), ttl=TTL, limit=2, **more)

    def write(self, name: str, lease_id: str) -> Command[Any]:
        by = {"by": self.client.principal, "name": name, "lease_id": lease_id}
        if self.random.random() < 0.2:
            return self.acquire(name)
        if self.random.random() < 0.5:
            return locks.ReleaseLock(**BASE, **by)
        return locks.RenewLock(**BASE, **by, ttl=self.random.choice([TTL, 2 * TTL]))


class ElectionActivity(NameActivity):
    names = (f"{ELECTION_PREFIX}captain-of-the-ship",)

    def claim(self, name: str) -> Operation:
        who = self.client.principal.id
        command = elections.Campaign(
            **BASE, name=name, candidate=who, holder=who, lease_id="", ttl=TTL, max_elections=9
        )
        return self.operation(command)

    def write(self, name: str, lease_id: str) -> Command[Any]:
        by = {"name": name, "holder": self.client.principal.id, "lease_id": lease_id}
        if self.random.random() < 0.4:
            return elections.Resign(**BASE, **by)
        return elections.RenewLeadership(**BASE, **by, ttl=TTL)

    def granted_id(self, command: Command[Any], outcome: Any) -> str | None:
        return command.lease_id if isinstance(outcome, elections.Leading) else None


class EphemeralLockActivity(LockActivity):
    """OctoStore's sessions, and locks that end with them."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.session: str | None = None

    def next_operation(self) -> Operation | None:
        mine = {"by": self.client.principal, "session_id": self.session}
        chance = self.random.random()
        if self.session is None:
            mine["session_id"] = ""
            return self.operation(OpenSession(**BASE, **mine, ttl_seconds=10))
        if chance < 0.25:
            return self.operation(KeepSessionAlive(**BASE, **mine))
        if chance < 0.4:
            return self.operation(EndSession(**BASE, **mine))
        return super().next_operation()

    def acquire(self, name: str, **more: Any) -> locks.AcquireLock:
        return super().acquire(name, session_id=self.session, ephemeral=True, **more)

    def receive(self, command: Command[Any], outcome: Any) -> None:
        if isinstance(command, OpenSession):
            self.session = None if isinstance(outcome, Refused) else outcome.id
        elif isinstance(command, EndSession | KeepSessionAlive):
            if isinstance(command, EndSession) or isinstance(outcome, Refused):
                self.forget()
        else:
            super().receive(command, outcome)

    def forget(self) -> None:
        super().forget()
        self.session = None


class SessionActivity(JobActivity):
    """A named session with context, and jobs that are claimed for it. After a crash it is resumed with its secret."""

    names = ("north", "south")

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.session_id = f"agent-{client.number}"
        self.secret: str | None = None
        """On disk: it survives a crash of the client."""
        self.lease_id: str | None = None
        self.past_lease_ids: list[str] = []
        self.on_begun: list[Callable[[BegunSession], None]] = []
        """Take the tasks and the reservations that a resumed session holds."""

    def next_operation(self) -> Operation | None:
        chance = self.random.random()
        lease_id = self.lease_id
        if self.past_lease_ids and chance < 0.08:
            lease_id = self.random.choice(self.past_lease_ids)
        elif lease_id is None or chance > 0.92:
            return self.operation(self._begin())
        mine = {"by": self.client.principal, "session_id": self.session_id, "lease_id": lease_id}
        if chance < 0.2:
            return self.operation(HeartbeatSession(**BASE, **mine))
        if chance < 0.35:
            context = Context(next_action=self.client.new_id("action"))
            return self.operation(WriteContext(**BASE, **mine, context=context))
        if chance < 0.45:
            return self.operation(CloseSession(**BASE, **mine))
        return super().next_operation()

    def _begin(self) -> BeginSession:
        return BeginSession(
            **BASE, by=self.client.principal, session_id=self.session_id, name=self.session_id, ttl=TTL,
            fresh_secret="", secret=self.secret,
        )  # fmt: skip

    def claim_command(self, name: str, **more: Any) -> job_claims.ClaimJob:
        return super().claim_command(name, session_id=self.session_id, session_lease_id=self.lease_id, **more)

    def receive(self, command: Command[Any], outcome: Any) -> None:
        if isinstance(outcome, BegunSession):
            self._begun(outcome)
        elif isinstance(command, BeginSession):
            self.secret = None  # its first answer was lost: it must wait until the session is over
        elif isinstance(command, HeartbeatSession | WriteContext | CloseSession):
            if (
                isinstance(command, CloseSession) or isinstance(outcome, Refused)
            ) and command.lease_id == self.lease_id:
                self.forget()
        else:
            super().receive(command, outcome)

    def _begun(self, outcome: BegunSession) -> None:
        self.forget()
        self.secret = outcome.secret or self.secret
        self.lease_id = outcome.lease_id
        self.held = {job.id: held_lease_id(outcome.lease_id, job) for job in outcome.jobs}
        for take in self.on_begun:
            take(outcome)

    def forget(self) -> None:
        super().forget()
        if self.lease_id is not None:
            self.past_lease_ids.append(self.lease_id)
        self.lease_id = None
