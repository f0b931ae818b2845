"""Claims of jobs: of one, or of any of several."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core import acl
from holdfast.core import lease as leases
from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core.holdings.lease_ids import held_lease_id
from holdfast.core.lease import HANDED_OVER, JOB, UNDELIVERED, Claim, Ended, Lease, proof_of
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.engine.command import Command, Held, LeaseOutcome
from holdfast.engine.expiry import expire_lease_if_due
from holdfast.engine.session_renewal import ActingSession
from holdfast.engine.verbs.jobs import ReleaseJob, check_owner
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs


class Claimed(LeaseOutcome, frozen=True):
    """The caller holds the job now. Only this answer contains the lease id."""

    lease_id: str
    previous: Ended | None
    previous_checkpoint: str | None
    replayed: bool = False


class Done(LeaseOutcome, frozen=True):
    """The work is done already: nothing was granted."""

    @property
    def binding(self) -> bool:
        """A repeated request is decided again: the job may be free by then."""
        return False


class HeldAny(Held, frozen=True, kw_only=True):
    """Others hold every one of several jobs; `lease` is the one that ends first."""

    all_held: tuple[Lease, ...]
    done: tuple[Lease, ...] = ()
    """Those that are done for a while, and may be claimed after that."""

    @property
    def leases(self) -> tuple[Lease, ...]:
        """Every lease that the caller may wait for."""
        return (*self.all_held, *self.done)


class Claiming(Command[LeaseOutcome], frozen=True, kw_only=True):
    """A claim of a job, or of any of several."""

    claims = JOB
    by: Principal
    owner: str
    lease_id: str
    """The lease id of a claim without `session_lease_id`."""
    holder: str
    ttl: Instant
    metadata: str | None = None
    session_id: str | None = None
    session_lease_id: str | None = None
    waiting_id: str | None = None
    """The place in the queue that an earlier claim of the caller kept."""
    again: bool = False
    """Whether to claim it even if it is done."""

    def needs(self) -> Needs:
        """The leases, and the session that they are claimed for."""
        rows = self.keys()
        if self.session_id is not None:
            rows += ((Session.table, self.account, self.session_id),)
        return Needs(rows=rows)

    def acting_session(self) -> ActingSession | None:
        """The session to claim for, if its lease id was sent as well."""
        if self.session_id is None or self.session_lease_id is None:
            return None
        return ActingSession(self.by.id, self.session_id, self.session_lease_id)

    def keys(self) -> tuple[Key, ...]:
        """The leases of all jobs that it may claim."""
        raise NotImplementedError  # pragma: no cover - every claim has its own

    def wait_keys(self) -> tuple[Key, ...]:
        """The leases: callers that claim a job wait in its queue, and a claim of several in every queue."""
        return self.keys()

    def waiting_place(self) -> str | None:
        """The place that an earlier claim of the caller kept."""
        return self.waiting_id

    def give_back(self, outcome: LeaseOutcome) -> ReleaseJob | None:
        """Release the job, unless the caller can repeat its claim with its Idempotency-Key."""
        if not isinstance(outcome, Claimed) or self.once is not None:
            return None
        return ReleaseJob(
            account=self.account, cause=self.cause, name=outcome.lease.id, lease_id=outcome.lease_id, how=UNDELIVERED
        )

    def size(self) -> int:
        """The size of its metadata."""
        return len(self.metadata or "")

    def check_session(self, view: View) -> Session | None:
        """The session to claim for; refuses one that is over, or that is not the caller's."""
        if self.session_id is None:
            return None
        proof = None if self.session_lease_id is None else proof_of(self.session_lease_id)
        return sessions.check_claimer(view.find(Session, self.account, self.session_id), self.by.id, proof, view.now)

    def claim(self, view: View, name: str, *, yields: bool) -> Claimed | Held | Done:
        """Grant a free job, or report its holder, or that it is done."""
        lease = expire_lease_if_due(view, self.account, name)
        acl.check_allowed(lease.acl, self.by)
        if leases.is_done(lease, view.now) and not self.again:
            return Done(lease=lease, now=view.now)
        if yields or leases.is_live(lease, view.now) or leases.is_delayed(lease, view.now):
            return Held(lease=view.effective(lease), now=view.now)
        return self.grant(view, lease)

    def grant(self, view: View, lease: Lease) -> Claimed:
        """Give a free job to the caller."""
        claim = Claim(
            kind=JOB,
            holder=self.holder,
            owner=self.owner,
            principal=self.by.id,
            proof=proof_of(self.lease_id),
            ttl=self.ttl,
            metadata=self.metadata,
            session=self.session_id,
            ephemeral=self.session_id is not None,
        )
        granted, lease_id = leases.grant(lease, claim, token=view.token(), now=view.now), self.lease_id
        if self.session_id is not None and self.session_lease_id is not None:
            lease_id = held_lease_id(self.session_lease_id, granted)
            granted = replace(granted, proof=proof_of(lease_id))
        return _claimed(view.put(granted, "claimed"), view, lease_id)

    def replay(self, view: View, answer: Answer) -> Claimed:
        """The same lease as it is now; a replay never extends it. A name that retention removed is a lost lease."""
        first = msgspec.json.decode(answer.body)
        lease = view.lease(self.account, first["job_id"])
        check_owner(view, lease, first["lease_id"])
        return _claimed(lease, view, first["lease_id"], replayed=True)


class ClaimJob(Claiming, frozen=True, kw_only=True):
    """Claim the job if it is free."""

    name: str
    yields: bool = False
    offer: str | None = None
    """The code of an offer: the caller takes the job over from its holder."""

    def keys(self) -> tuple[Key, ...]:
        """The job's lease."""
        return ((Lease.table, self.account, self.name),)

    def wait_keys(self) -> tuple[Key, ...]:
        """The job's lease. A claim with an offer waits for nobody, whoever waits for the job."""
        return () if self.offer is not None else self.keys()

    def yield_to_waiters(self, keys: frozenset[Key]) -> ClaimJob:  # noqa: ARG002 - it has one
        """A claim that is not granted, even if the job is free: others wait for it."""
        return replace(self, yields=True)

    def decide(self, view: View) -> Claimed | Held | Done:
        """The job, its holder, or its result."""
        session = self.check_session(view)
        if self.offer is not None:
            return self.take_over(view, self.offer, session)
        return self.claim(view, self.name, yields=self.yields)

    def take_over(self, view: View, code: str, session: Session | None) -> Claimed:
        """End the giver's lease and grant the job to the caller, or refuse the code."""
        lease = expire_lease_if_due(view, self.account, self.name)
        acl.check_allowed(lease.acl, self.by)
        offers.check_code(lease, proof_of(code), None if session is None else session.name, view.now)
        return self.grant(view, view.put(leases.end(lease, HANDED_OVER, now=view.now, by=self.owner), HANDED_OVER))


class ClaimAnyJob(Claiming, frozen=True, kw_only=True):
    """Claim the first of several jobs that is free."""

    names: tuple[str, ...]
    yields_in: frozenset[str] = frozenset()
    """Jobs that others wait for, which it must not take."""

    def keys(self) -> tuple[Key, ...]:
        """The leases of all of them."""
        return tuple((Lease.table, self.account, name) for name in self.names)

    def yield_to_waiters(self, keys: frozenset[Key]) -> ClaimAnyJob:
        """A claim that takes none of the jobs that others wait for."""
        return replace(self, yields_in=frozenset(key[2] for key in keys))

    def weight(self) -> int:
        """As many rows as names."""
        return len(self.names)

    def decide(self, view: View) -> Claimed | HeldAny | Done:
        """The first job that is free. Done ones are passed over; if all are done, the first of them."""
        self.check_session(view)
        held: list[Lease] = []
        done: list[Done] = []
        for name in self.names:
            outcome = self.claim(view, name, yields=name in self.yields_in)
            if isinstance(outcome, Claimed):
                return outcome
            if isinstance(outcome, Done):
                done.append(outcome)
            else:
                held.append(outcome.lease)
        if not held:
            return done[0]
        first = min(held, key=lambda lease: lease.expires_at or lease.available_at or view.now)
        for_a_while = tuple(each.lease for each in done if each.lease.done_until is not None)
        return HeldAny(lease=first, now=view.now, all_held=tuple(held), done=for_a_while)


def _claimed(lease: Lease, view: View, lease_id: str, *, replayed: bool = False) -> Claimed:
    return Claimed(
        lease=view.effective(lease),
        now=view.now,
        lease_id=lease_id,
        previous=leases.last_ending(lease),
        previous_checkpoint=lease.ended_checkpoint,
        replayed=replayed,
    )
