"""Commands of jobs: claim, heartbeat, release, force-release."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core import acl
from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.errors import LeaseGone, LeaseLost, LeaseMismatch, NotHeld, WrongToken
from holdfast.core.lease import FORCED, JOB, RELEASED, UNDELIVERED, Claim, Ended, Lease, proof_of
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.engine.command import Command, Held, LeaseOutcome, Replayed
from holdfast.engine.expiry import expire_lease_if_due
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs


class Claimed(LeaseOutcome, frozen=True):
    """The caller holds the job now. Only this answer contains the lease id."""

    lease_id: str
    previous: Ended | None
    previous_checkpoint: str | None
    replayed: bool = False


class Changed(LeaseOutcome, frozen=True):
    """The job after a heartbeat or a release."""


class JobCommand(Command[LeaseOutcome], frozen=True):
    """A command about one job."""

    name: str

    def needs(self) -> Needs:
        """The job's lease."""
        return Needs(rows=((Lease.table, self.account, self.name),))


class ClaimJob(JobCommand, frozen=True):
    """Claim the job if it is free."""

    claims = JOB
    by: Principal
    owner: str
    lease_id: str
    holder: str
    ttl: Instant
    metadata: str | None = None
    session_id: str | None = None
    session_lease_id: str | None = None
    waiting_id: str | None = None
    """The place in the queue that an earlier claim of the caller kept."""
    yields: bool = False

    def needs(self) -> Needs:
        """The lease, and the session that it is claimed for."""
        rows: tuple[Key, ...] = ((Lease.table, self.account, self.name),)
        if self.session_id is not None:
            rows += ((Session.table, self.account, self.session_id),)
        return Needs(rows=rows)

    def wait_key(self) -> Key:
        """The job's lease: callers that claim one job wait in its queue."""
        return (Lease.table, self.account, self.name)

    def waiting_place(self) -> str | None:
        """The place that an earlier claim of the caller kept."""
        return self.waiting_id

    def yield_to_waiters(self) -> ClaimJob:
        """A claim that is not granted, even if the job is free: others wait for it."""
        return replace(self, yields=True)

    def give_back(self, outcome: LeaseOutcome) -> ReleaseJob | None:
        """Release the job, unless the caller can repeat its claim with its Idempotency-Key."""
        if not isinstance(outcome, Claimed) or self.once is not None:
            return None
        return ReleaseJob(
            account=self.account, cause=self.cause, name=self.name, lease_id=outcome.lease_id, undelivered=True
        )

    def size(self) -> int:
        """The size of its metadata."""
        return len(self.metadata or "")

    def decide(self, view: View) -> Claimed | Held:
        """Grant a free job, or report its holder."""
        if self.session_id is not None:
            proof = None if self.session_lease_id is None else proof_of(self.session_lease_id)
            sessions.check_claimer(view.find(Session, self.account, self.session_id), self.by.id, proof, view.now)
        lease = expire_lease_if_due(view, self.account, self.name)
        acl.check_allowed(lease.acl, self.by)
        if self.yields or leases.is_live(lease, view.now) or leases.is_delayed(lease, view.now):
            return Held(lease=view.effective(lease), now=view.now)
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
        granted = view.put(leases.grant(lease, claim, token=view.token(), now=view.now), "claimed")
        return self._claimed(granted, view, self.lease_id)

    def replay(self, view: View, answer: Answer) -> Claimed:
        """The same lease as it is now; a replay never extends it. A name that retention removed is a lost lease."""
        lease_id = str(msgspec.json.decode(answer.body)["lease_id"])
        lease = view.lease(self.account, self.name)
        check_owner(view, lease, lease_id)
        return self._claimed(lease, view, lease_id, replayed=True)

    def _claimed(self, lease: Lease, view: View, lease_id: str, *, replayed: bool = False) -> Claimed:
        return Claimed(
            lease=view.effective(lease),
            now=view.now,
            lease_id=lease_id,
            previous=leases.last_ending(lease),
            previous_checkpoint=lease.ended_checkpoint,
            replayed=replayed,
        )


class HolderCommand(JobCommand, frozen=True):
    """A write by the holder of a job; the lease id is its proof."""

    urgent = True
    lease_id: str
    token: int | None = None
    note: str | None = None
    checkpoint: str | None = None

    def size(self) -> int:
        """The size of its texts."""
        return len(self.checkpoint or "") + len(self.note or "")

    def find_held(self, view: View) -> Lease:
        """The caller's lease with the new note and checkpoint, or LeaseLost."""
        lease = view.lease(self.account, self.name)
        check_owner(view, lease, self.lease_id)
        if self.token is not None and self.token != lease.token:
            raise WrongToken(f"the lease is yours, but its token is not {self.token}", job_id=self.name)
        return replace(
            lease,
            note=lease.note if self.note is None else self.note,
            checkpoint=lease.checkpoint if self.checkpoint is None else self.checkpoint,
        )


class HeartbeatJob(HolderCommand, frozen=True):
    """Renew the lease."""

    ttl: Instant | None = None
    progress: str | None = None

    @property
    def stores_answer(self) -> bool:
        """Only if it carries something: renewing twice is renewing once, and renewals are many."""
        return not (self.note is None and self.checkpoint is None and self.progress is None)

    def replay(self, view: View, answer: Answer) -> LeaseOutcome | Replayed:
        """The first answer, if the lease is still held; a replay never extends it."""
        check_owner(view, view.lease(self.account, self.name), self.lease_id)
        return super().replay(view, answer)

    def decide(self, view: View) -> Changed:
        """The deadline moves to a full TTL from now."""
        lease = self.find_held(view)
        if self.progress is not None:
            lease = replace(lease, progress=self.progress)
        lease = view.put(leases.extend(lease, ttl=self.ttl or lease.ttl, now=view.now), "renewed")
        return Changed(lease=view.effective(lease), now=view.now)


class ReleaseJob(HolderCommand, frozen=True):
    """Release the job."""

    undelivered: bool = False

    def decide(self, view: View) -> Changed:
        """The free job; its note and checkpoint stay for the next holder."""
        how = UNDELIVERED if self.undelivered else RELEASED
        lease = view.put(leases.end(self.find_held(view), how, now=view.now), how)
        return Changed(lease=lease, now=view.now)


class ForceRelease(JobCommand, frozen=True):
    """An administrator takes the job from its holder."""

    urgent = True
    by: str
    reason: str

    def decide(self, view: View) -> Changed:
        """The free job; the former holder's next call reports who took it and why."""
        lease = expire_lease_if_due(view, self.account, self.name)
        if not leases.is_held(lease):
            raise NotHeld(f"{self.name} has no holder")
        lease = view.put(leases.end(lease, FORCED, now=view.now, by=self.by, reason=self.reason), FORCED)
        return Changed(lease=lease, now=view.now)


def check_owner(view: View, lease: Lease, lease_id: str) -> None:
    """Refuse every caller but the newest live holder, and report what happened to the job."""
    proof = proof_of(lease_id)
    try:
        leases.check_holder(lease, proof, view.now)
    except (LeaseGone, LeaseMismatch):
        raise leases.lease_lost_error(view.effective(lease), proof, view.now) from None
    if lease.ephemeral and lease.session is not None:
        session = view.find(Session, lease.account, lease.session)
        if session is None or not sessions.is_live(session, view.now):
            raise LeaseLost(f"the session that held {lease.id} is over", job_id=lease.id, ended="session_ended")
