"""Commands of elections: campaign, renew, resign. An election is a lease; the leader holds it."""

from __future__ import annotations

from holdfast.core import lease as leases
from holdfast.core.errors import LeaseMismatch, TooManyElections
from holdfast.core.lease import ELECTION, RELEASED, Claim, Lease, proof_of
from holdfast.core.row import Instant
from holdfast.engine.command import Command, Held, LeaseOutcome
from holdfast.engine.expiry import expire_lease_if_due
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class Leading(LeaseOutcome, frozen=True):
    """The caller leads, newly or as before."""


class Resigned(LeaseOutcome, frozen=True):
    """The election is vacant; `lease.token` is the term that ended."""


class ElectionCommand(Command[LeaseOutcome], frozen=True):
    """A command about one election."""

    name: str

    def needs(self) -> Needs:
        """The election's lease."""
        return Needs(rows=((Lease.table, self.account, self.name),))


class Campaign(ElectionCommand, frozen=True):
    """Become the leader of a vacant election. A leader that campaigns again is refused like any other candidate."""

    claims = ELECTION
    candidate: str
    holder: str
    lease_id: str
    ttl: Instant
    max_elections: int
    metadata: str | None = None

    def needs(self) -> Needs:
        """The election, and the number of live elections."""
        return Needs(rows=((Lease.table, self.account, self.name),), election_counts=(self.account,))

    def decide(self, view: View) -> Leading | Held:
        """Report the leader, or check the limit and grant the lease."""
        lease = expire_lease_if_due(view, self.account, self.name)
        if leases.is_live(lease, view.now):
            return Held(lease=lease, now=view.now)
        if view.live_elections(self.account) >= self.max_elections:
            raise TooManyElections(f"{self.max_elections} elections are live", retry_after=30)
        claim = Claim(
            kind=ELECTION,
            holder=self.holder,
            owner=self.candidate,
            principal=self.holder,
            proof=proof_of(self.lease_id),
            ttl=self.ttl,
            metadata=self.metadata,
        )
        granted = view.put(leases.grant(lease, claim, token=view.token(), now=view.now), "claimed")
        return Leading(lease=granted, now=view.now)


class LeaderCommand(ElectionCommand, frozen=True):
    """A write by the leader."""

    urgent = True
    holder: str
    lease_id: str

    def find_held(self, view: View) -> Lease:
        """The caller's live lease on the election."""
        lease = view.lease(self.account, self.name)
        if leases.is_held(lease) and lease.holder != self.holder:
            raise LeaseMismatch("another candidate leads")
        leases.check_holder(lease, proof_of(self.lease_id), view.now)
        return lease


class RenewLeadership(LeaderCommand, frozen=True):
    """Set a new deadline, earlier or later."""

    ttl: Instant

    def decide(self, view: View) -> Leading:
        """The same term with a new deadline."""
        lease = view.put(leases.extend(self.find_held(view), ttl=self.ttl, now=view.now), "renewed")
        return Leading(lease=lease, now=view.now)


class Resign(LeaderCommand, frozen=True):
    """Stop leading."""

    def decide(self, view: View) -> Resigned:
        """The vacant election."""
        lease = view.put(leases.end(self.find_held(view), RELEASED, now=view.now), "released")
        return Resigned(lease=lease, now=view.now)
