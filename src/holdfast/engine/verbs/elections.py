"""The verbs of elections: campaign, renew, resign. A room is a lease; its leader's token is holder and lease id."""

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
    """The caller leads, newly or still."""


class Resigned(LeaseOutcome, frozen=True):
    """The room is vacant again; `lease.token` is the term that ended."""


class ElectionCommand(Command[LeaseOutcome], frozen=True):
    """A verb about one room."""

    room: str

    def needs(self) -> Needs:
        """The lease behind the room."""
        return Needs(rows=((Lease.table, self.account, self.room),))


class Campaign(ElectionCommand, frozen=True):
    """Lead if nobody does. It is not re-entrant: a leader that campaigns again is told that somebody leads."""

    claims = ELECTION
    candidate: str
    holder: str
    lease_id: str
    ttl: Instant
    max_rooms: int
    metadata: str | None = None

    def needs(self) -> Needs:
        """The room, and how many others are live."""
        return Needs(rows=((Lease.table, self.account, self.room),), election_counts=(self.account,))

    def decide(self, view: View) -> Leading | Held:
        """Capacity first, then the contest."""
        lease = expire_lease_if_due(view, self.account, self.room)
        if leases.is_live(lease, view.now):
            return Held(lease=lease, now=view.now)
        if view.live_elections(self.account) >= self.max_rooms:
            raise TooManyElections(f"{self.max_rooms} elections are live", retry_after=30)
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

    def led(self, view: View) -> Lease:
        """The caller's live lease on the room."""
        lease = view.lease(self.account, self.room)
        if leases.is_held(lease) and lease.holder != self.holder:
            raise LeaseMismatch("somebody else leads")
        leases.check_holder(lease, proof_of(self.lease_id), view.now)
        return lease


class RenewLeadership(LeaderCommand, frozen=True):
    """Lead for longer, or for less."""

    ttl: Instant

    def decide(self, view: View) -> Leading:
        """The same term with a new deadline."""
        lease = view.put(leases.extend(self.led(view), ttl=self.ttl, now=view.now), "renewed")
        return Leading(lease=lease, now=view.now)


class Resign(LeaderCommand, frozen=True):
    """Stop leading."""

    def decide(self, view: View) -> Resigned:
        """The vacant room."""
        lease = view.put(leases.end(self.led(view), RELEASED, now=view.now), "released")
        return Resigned(lease=lease, now=view.now)
