"""Commands of the holders of jobs: heartbeat, release, force-release."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core.errors import LeaseGone, LeaseLost, LeaseMismatch, NotHeld, WrongToken
from holdfast.core.lease import DONE, FORCED, RELEASED, Lease, proof_of
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.engine.command import Command, LeaseOutcome, Replayed
from holdfast.engine.expiry import expire_lease_if_due
from holdfast.engine.session_renewal import ActingSession
from holdfast.engine.view import View
from holdfast.store.changes import Answer
from holdfast.store.needs import Needs


class Changed(LeaseOutcome, frozen=True):
    """The job after a heartbeat or a release."""


class JobCommand(Command[LeaseOutcome], frozen=True):
    """A command about one job."""

    name: str

    def needs(self) -> Needs:
        """The job's lease."""
        return Needs(rows=((Lease.table, self.account, self.name),))


class HolderCommand(JobCommand, frozen=True):
    """A write by the holder of a job; the lease id is its proof."""

    urgent = True
    lease_id: str
    token: int | None = None
    note: str | None = None
    checkpoint: str | None = None
    session: ActingSession | None = None
    """The session that it is sent for."""

    def acting_session(self) -> ActingSession | None:
        """The session that it is sent for."""
        return self.session

    def size(self) -> int:
        """The size of its texts."""
        return len(self.checkpoint or "") + len(self.note or "")

    def find_held(self, view: View) -> Lease:
        """The caller's lease with the new note and checkpoint, or LeaseLost."""
        lease = self.stored(view)
        check_owner(view, lease, self.lease_id)
        if self.token is not None and self.token != lease.token:
            raise WrongToken(f"the lease is yours, but its token is not {self.token}", job_id=self.name)
        return replace(
            lease,
            note=lease.note if self.note is None else self.note,
            checkpoint=lease.checkpoint if self.checkpoint is None else self.checkpoint,
        )

    def stored(self, view: View) -> Lease:
        """The lease; after the end of its offer it belongs to its session again."""
        return offers.without_past_offer(view.lease(self.account, self.name), view.now)


class HeartbeatJob(HolderCommand, frozen=True):
    """Renew the lease."""

    ttl: Instant | None = None
    progress: str | None = None

    @property
    def stores_answer(self) -> bool:
        """Only if it has a note, checkpoint or progress.

        Repeating a plain renewal is harmless, and renewals are frequent.
        """
        return not (self.note is None and self.checkpoint is None and self.progress is None)

    def replay(self, view: View, answer: Answer) -> LeaseOutcome | Replayed:
        """The first answer, if the lease is still held; a replay never extends it."""
        check_owner(view, self.stored(view), self.lease_id)
        return super().replay(view, answer)

    def decide(self, view: View) -> Changed:
        """The deadline moves to a full TTL from now."""
        lease = self.find_held(view)
        if self.progress is not None:
            lease = replace(lease, progress=self.progress)
        lease = view.put(leases.extend(lease, ttl=self.ttl or lease.ttl, now=view.now), "renewed")
        return Changed(lease=view.effective(lease), now=view.now)


class ReleaseJob(HolderCommand, frozen=True):
    """Release the job: free for the next holder, failed, or done."""

    how: str = RELEASED
    result: str | None = None
    done_for: Instant | None = None
    """How long a done job counts as done; None means for good."""

    def size(self) -> int:
        """The size of its texts."""
        return super().size() + len(self.result or "")

    def decide(self, view: View) -> Changed:
        """The free or done job; its note and checkpoint stay for the next holder."""
        held = self.find_held(view)
        if self.how == DONE:
            ended = leases.finish(held, result=self.result, done_for=self.done_for, now=view.now)
        else:
            ended = leases.end(held, self.how, now=view.now, result=self.result)
        return Changed(lease=view.put(ended, self.how), now=view.now)


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
