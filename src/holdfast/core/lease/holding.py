"""Granting and renewing a lease, and who is its holder."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core.errors import LeaseGone, LeaseMismatch
from holdfast.core.lease.row import Claim, Lease, is_done, is_live
from holdfast.core.row import SECOND, Instant


def grant(lease: Lease, claim: Claim, *, token: int, now: Instant) -> Lease:
    """Give a free name to a claimer."""
    return replace(
        lease,
        kind=claim.kind,
        holder=claim.holder,
        owner=claim.owner,
        principal=claim.principal,
        proof=claim.proof,
        token=token,
        ttl=claim.ttl,
        claimed_at=now,
        expires_at=now + claim.ttl,
        metadata=claim.metadata,
        session=claim.session,
        ephemeral=claim.ephemeral,
        delay=claim.delay,
        available_at=None,
        again_at=now if is_done(lease, now) else None,
    )


def extend(lease: Lease, *, ttl: Instant, now: Instant) -> Lease:
    """Move the deadline to `ttl` from now, which may be nearer than it was, unless the lease is offered."""
    return replace(lease, ttl=ttl, expires_at=offers.renewed_until(lease, now + ttl, now))


def check_holder(lease: Lease, proof: str, now: Instant) -> None:
    """Only the newest live holder may act. Every write by a holder passes through here."""
    if lease.proof is None:
        raise LeaseGone(f"{lease.id} is free")
    if lease.proof != proof:
        raise LeaseMismatch(f"{lease.id} is held under another lease")
    if not is_live(lease, now):
        raise LeaseGone(f"the lease on {lease.id} has expired")


def renewal_interval(ttl: Instant) -> Instant:
    """How often a holder should renew: a third of its TTL, so that two attempts may fail."""
    return max(ttl // 3, SECOND // 3)


def counts_toward_limit(lease: Lease, kind: str, now: Instant) -> bool:
    """Whether it counts toward a limit on live leases of that kind."""
    return lease.kind == kind and is_live(lease, now)
