"""Leases: one holder, one deadline, one token that only grows. Jobs, locks and elections are leases on names."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from typing import ClassVar, Protocol

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import LeaseGone, LeaseLost, LeaseMismatch
from holdfast.core.row import SECOND, Instant, Row
from holdfast.decoding import decode

JOB, LOCK, ELECTION = "job", "lock", "election"

RELEASED, EXPIRED, FORCED, SESSION_ENDED, UNDELIVERED = "released", "expired", "forced", "session_ended", "undelivered"
RESTORED = "restored"
"""How a lease ends, also as the reason that its former holder gets."""
RESTORED_MESSAGE = "the store was restored from a backup, which ended every lease of before"


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the last lease on a name ended."""

    owner: str | None
    how: str
    at: Instant
    kind: str
    proof: str
    claimed_at: Instant | None = None
    principal: str | None = None
    note: str | None = None
    context_from: str | None = None
    """The owner that left the note and the checkpoint: the last one that left any."""
    by: str | None = None
    reason: str | None = None


class Leased(Protocol):
    """A row that can be held: a name or a task."""

    @property
    def proof(self) -> str | None:
        """SHA-256 of the lease id while it is held, else None."""

    @property
    def expires_at(self) -> Instant | None:
        """When the lease expires while it is held, else None."""


class Lease(Row, frozen=True):
    """The row of a name. It is held while `proof` is set; `ended` records the last holder after it is gone."""

    table: ClassVar[str] = "leases"
    noun: ClassVar[str] = "lease"
    hashed: ClassVar[frozenset[str]] = frozenset({"checkpoint", "ended_checkpoint"})
    json: ClassVar[frozenset[str]] = frozenset({"metadata", "progress", "acl", "ended"})
    booleans: ClassVar[frozenset[str]] = frozenset({"ephemeral"})
    # A renewal changes none of these, so it updates no index but the one by deadline.
    column_groups: ClassVar[tuple[tuple[str, ...], ...]] = (
        (
            "kind", "holder", "owner", "principal", "proof", "claimed_at", "metadata", "session", "ephemeral", "delay",
            "available_at", "acl",
        ),
        ("note", "checkpoint", "progress"),
        ("ended", "ended_checkpoint"),
    )  # fmt: skip
    required: ClassVar[tuple[str, ...]] = ("ephemeral",)

    kind: str | None = None
    holder: str | None = None
    """Id by which the same holder is recognised; never displayed."""
    owner: str | None = None
    """The label the holder chose: displayed, never proof."""
    principal: str | None = None
    """The principal whose key claimed it, for limits and audit."""
    proof: str | None = None
    """SHA-256 of the lease id. Only the lease id proves who holds it."""
    token: int = 0
    """The newest token granted for this name; it stays when the lease ends."""
    ttl: Instant = 0
    claimed_at: Instant | None = None
    expires_at: Instant | None = None
    metadata: str | None = None
    session: str | None = None
    ephemeral: bool = False
    """Whether it ends with its session."""
    delay: Instant = 0
    """How long the name cannot be claimed after this lease ends."""
    available_at: Instant | None = None
    """Until when the name cannot be claimed."""
    note: str | None = None
    checkpoint: str | None = None
    progress: str | None = None
    acl: str | None = None
    ended: str | None = None
    ended_checkpoint: str | None = None


class Claim(msgspec.Struct, frozen=True):
    """A request for a lease: who asks, for how long, and with which options."""

    kind: str
    holder: str
    owner: str | None
    principal: str
    proof: str
    ttl: Instant
    metadata: str | None = None
    session: str | None = None
    ephemeral: bool = False
    delay: Instant = 0


def proof_of(lease_id: str) -> str:
    """SHA-256 of a lease id: enough to recognise it, not enough to use it."""
    return hashlib.sha256(lease_id.encode()).hexdigest()


def derive_lease_id(secret: bytes, account: str, name: str, claimed_at: Instant) -> str:
    """A lease id derived from the holder's key, so that the same holder gets the same id again.

    Rows keep only its hash: without the key the id cannot be found, not even with the whole database.
    """
    digest = hmac.digest(secret, f"{account}\x1f{name}\x1f{claimed_at}".encode(), "sha256")
    return str(uuid.UUID(bytes=digest[:16], version=4))


def is_held(lease: Leased) -> bool:
    """Whether the row has a lease, expired or not."""
    return lease.proof is not None


def is_live(lease: Leased, now: Instant) -> bool:
    """Whether it is held and has not expired; at `expires_at` itself it has."""
    return lease.expires_at is not None and lease.expires_at > now


def is_due(lease: Leased, now: Instant) -> bool:
    """Whether it is held and has expired: the sweep may end it."""
    return lease.expires_at is not None and lease.expires_at <= now


def is_delayed(lease: Lease, now: Instant) -> bool:
    """Whether the name is free but cannot be claimed yet."""
    return lease.available_at is not None and lease.available_at > now


def counts_toward_limit(lease: Lease, kind: str, now: Instant) -> bool:
    """Whether it counts toward a limit on live leases of that kind."""
    return lease.kind == kind and is_live(lease, now)


def last_ending(lease: Lease) -> Ended | None:
    """How the last lease ended, if there was one."""
    return None if lease.ended is None else decode(lease.ended, Ended)


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
    )


def extend(lease: Lease, *, ttl: Instant, now: Instant) -> Lease:
    """Move the deadline to `ttl` from now, which may be nearer than it was."""
    return replace(lease, ttl=ttl, expires_at=now + ttl)


def end(
    lease: Lease, how: str, *, now: Instant, note: str | None = None, by: str | None = None, reason: str | None = None
) -> Lease:
    """Free the name, record how the lease ended, and start its delay if the holder asked for one.

    If this holder was cut off and left neither note nor checkpoint, those of the earlier holder stay: a successor that
    dies before its first checkpoint does not erase the work before it.
    """
    assert lease.proof is not None
    assert lease.kind is not None
    if how == UNDELIVERED:
        return _clear_holder(lease, now)  # the claim never reached its caller, so there is no ending to record
    last_note = lease.note if note is None else note
    left_context = last_note is not None or lease.checkpoint is not None
    previous = None if left_context or how == RELEASED else last_ending(lease)
    ending = Ended(
        owner=lease.owner,
        how=how,
        at=now,
        kind=lease.kind,
        proof=lease.proof,
        claimed_at=lease.claimed_at,
        principal=lease.principal,
        note=previous.note if previous else last_note,
        context_from=previous.context_from if previous else lease.owner if left_context else None,
        by=by,
        reason=reason,
    )
    return replace(
        _clear_holder(lease, now),
        ended=msgspec.json.encode(ending).decode(),
        ended_checkpoint=lease.ended_checkpoint if previous else lease.checkpoint,
    )


def end_by_restore(lease: Lease, now: Instant) -> Lease:
    """End a lease of a store that was restored from a backup; the name cannot be claimed before its old deadline.

    The lease may have ended after the backup was taken, so its id must not work again. Its holder may also have missed
    all of that: until the deadline it may act as the holder.
    """
    assert lease.expires_at is not None
    available_at = lease.expires_at + lease.delay
    ended = end(lease, RESTORED, now=now, reason=RESTORED)
    return replace(ended, available_at=available_at if available_at > now else None)


def _clear_holder(lease: Lease, now: Instant) -> Lease:
    return replace(
        lease,
        kind=None,
        holder=None,
        owner=None,
        principal=None,
        proof=None,
        ttl=0,
        claimed_at=None,
        expires_at=None,
        metadata=None,
        session=None,
        ephemeral=False,
        delay=0,
        available_at=now + lease.delay if lease.delay else None,
        note=None,
        checkpoint=None,
        progress=None,
    )


def check_holder(lease: Lease, proof: str, now: Instant) -> None:
    """Only the newest live holder may act. Every write by a holder passes through here."""
    if lease.proof is None:
        raise LeaseGone(f"{lease.id} is free")
    if lease.proof != proof:
        raise LeaseMismatch(f"{lease.id} is held under another lease")
    if not is_live(lease, now):
        raise LeaseGone(f"the lease on {lease.id} has expired")


def lease_lost_error(lease: Lease, proof: str, now: Instant) -> LeaseLost:
    """The error for a former holder, with the present holder, and how, by which principal and why its lease ended."""
    ending = last_ending(lease)
    facts: dict[str, object] = {"job_id": lease.id}
    if ending is not None and ending.proof == proof:
        facts |= {"ended": ending.how, "ended_at": ending.at, "ended_by": ending.by, "reason": ending.reason}
    elif lease.proof == proof:
        facts |= {"ended": EXPIRED, "ended_at": lease.expires_at}
    if is_live(lease, now) and lease.proof != proof:
        facts |= {"held_by": lease.owner, "held_since": lease.claimed_at, "expires_at": lease.expires_at}
        return LeaseLost(f"{lease.id} is now held by another owner", **facts)
    if facts.get("ended") == RESTORED:
        return LeaseLost(f"{RESTORED_MESSAGE}: claim {lease.id} again", **facts)
    if facts.get("ended") == RELEASED:
        return LeaseLost(f"you have already released {lease.id}", **facts)
    return LeaseLost(f"your lease on {lease.id} is over; it has no holder now", **facts)


def renewal_interval(ttl: Instant) -> Instant:
    """How often a holder should renew: a third of its TTL, so that two attempts may fail."""
    return max(ttl // 3, SECOND // 3)
