"""Commands by which the holder of a job offers it to a taker, and withdraws the offer."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import offer as offers
from holdfast.core import session as sessions
from holdfast.core.errors import OfferRefused
from holdfast.core.lease import JOB, SESSION_ENDED, Lease, proof_of
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.engine.verbs.jobs import Changed, HolderCommand
from holdfast.engine.view import View


class OfferJob(HolderCommand, frozen=True, kw_only=True):
    """Offer the job to whoever claims it with the code. Its answer shows the code, so it is never stored."""

    code: str
    lasts: Instant
    to: str | None = None

    def decide(self, view: View) -> Changed:
        """The offered job: it is held at least until the end of the offer, and belongs to no session."""
        held = self.find_held(view)
        if held.kind != JOB:
            raise OfferRefused(f"{self.name} is held as a {held.kind}: only jobs can be offered", reason="not_a_job")
        offered = offers.make(held, proof=proof_of(self.code), to=self.to, lasts=self.lasts, now=view.now)
        return Changed(lease=view.put(offered, offers.OFFERED), now=view.now)


class WithdrawJobOffer(HolderCommand, frozen=True):
    """Withdraw the offer of a job; without an offer nothing changes."""

    def stored(self, view: View) -> Lease:
        """The lease, with an offer that is over as well: withdrawing it ends the lease if its session is over."""
        return view.lease(self.account, self.name)

    def decide(self, view: View) -> Changed:
        """The job with its ordinary deadline, in its session again; free if that session is over."""
        lease = self.find_held(view)
        if lease.offer is None:
            return Changed(lease=view.effective(lease), now=view.now)
        kept = offers.withdraw(lease)
        if kept.ephemeral and not is_session_live(view, kept.account, kept.session):
            ended = leases.end(kept, SESSION_ENDED, now=view.now, reason="session ended")
            return Changed(lease=view.put(ended, "released"), now=view.now)
        kept = view.put(replace(kept, expires_at=view.now + kept.ttl), offers.OFFER_WITHDRAWN)
        return Changed(lease=view.effective(kept), now=view.now)


def is_session_live(view: View, account: str, session_id: str | None) -> bool:
    """Whether what was claimed for a session can belong to it again; also if it was claimed for none.

    On PostgreSQL the session is read and not locked, because it is locked before leases. If it ends at the same moment,
    the row keeps it, its holder is refused from then on, and the row is free at its deadline.
    """
    session = None if session_id is None else view.find(Session, account, session_id)
    return session_id is None or (session is not None and sessions.is_live(session, view.now))
