"""A lease: one owner, one deadline, one token that only grows. Jobs, locks and elections are all leases."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from typing import ClassVar, Protocol

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import LeaseGone, LeaseLost, LeaseMismatch
from holdfast.core.row import SECOND, Instant, Row

JOB, LOCK, ELECTION = "job", "lock", "election"

RELEASED, EXPIRED, FORCED, SESSION_ENDED, UNDELIVERED = "released", "expired", "forced", "session_ended", "undelivered"


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the last ownership of a name came to its end."""

    owner: str | None
    how: str
    at: Instant
    kind: str
    proof: str
    claimed_at: Instant | None = None
    principal: str | None = None
    note: str | None = None
    context_from: str | None = None
    """Whose note and checkpoint these are: the last owner's who left any."""
    by: str | None = None
    reason: str | None = None


class Leased(Protocol):
    """Whatever can be held: a name, or a task."""

    @property
    def proof(self) -> str | None:
        """What is kept of the lease id, while it is held."""

    @property
    def expires_at(self) -> Instant | None:
        """When the holder's time runs out, while it is held."""


class Lease(Row, frozen=True):
    """The row behind a name. It is held while `proof` is set; what `ended` tells outlives the holder."""

    table: ClassVar[str] = "leases"
    noun: ClassVar[str] = "lease"
    hashed: ClassVar[frozenset[str]] = frozenset({"checkpoint", "ended_checkpoint"})
    json: ClassVar[frozenset[str]] = frozenset({"metadata", "progress", "acl", "ended"})
    booleans: ClassVar[frozenset[str]] = frozenset({"ephemeral"})

    kind: str | None = None
    holder: str | None = None
    """Who holds it, for the question "is this the same holder?"; an id, never shown as it is."""
    owner: str | None = None
    """The label the holder gave itself: shown, never proof."""
    principal: str | None = None
    """Whose credential claimed it, for limits and audit."""
    proof: str | None = None
    """SHA-256 of the lease id, which alone is authority."""
    token: int = 0
    """The newest token granted under this name; it stays when the lease ends."""
    ttl: Instant = 0
    claimed_at: Instant | None = None
    expires_at: Instant | None = None
    metadata: str | None = None
    session: str | None = None
    ephemeral: bool = False
    """Whether it was claimed for its session's life."""
    delay: Instant = 0
    """How long the name rests after this lease ends."""
    available_at: Instant | None = None
    """Until when the name rests."""
    note: str | None = None
    checkpoint: str | None = None
    progress: str | None = None
    acl: str | None = None
    ended: str | None = None
    ended_checkpoint: str | None = None


class Claim(msgspec.Struct, frozen=True):
    """What a claimer asks for."""

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
    """What is kept of a lease id: enough to recognise it, not enough to use it."""
    return hashlib.sha256(lease_id.encode()).hexdigest()


def derive_lease_id(secret: bytes, account: str, name: str, claimed_at: Instant) -> str:
    """A lease id that its holder's credential can make again, so that the same holder is shown the same id.

    Rows keep only its hash; without the credential nobody can tell it, not even with the whole database.
    """
    digest = hmac.digest(secret, f"{account}\x1f{name}\x1f{claimed_at}".encode(), "sha256")
    return str(uuid.UUID(bytes=digest[:16], version=4))


def is_held(lease: Leased) -> bool:
    """Somebody's lease is on the row, run out or not."""
    return lease.proof is not None


def is_live(lease: Leased, now: Instant) -> bool:
    """Held, and its time has not run out: at `expires_at` itself it has."""
    return lease.expires_at is not None and lease.expires_at > now


def is_due(lease: Leased, now: Instant) -> bool:
    """Held, and its time has run out: the sweep may take it."""
    return lease.expires_at is not None and lease.expires_at <= now


def is_delayed(lease: Lease, now: Instant) -> bool:
    """Free, but nobody may claim it yet."""
    return lease.available_at is not None and lease.available_at > now


def counts_toward_limit(lease: Lease, kind: str, now: Instant) -> bool:
    """It uses up a place in a limit on live leases of that kind."""
    return lease.kind == kind and is_live(lease, now)


def last_ending(lease: Lease) -> Ended | None:
    """How the last ownership ended, if there was one."""
    return None if lease.ended is None else msgspec.json.decode(lease.ended, type=Ended)


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
    """Free the name, remember how it went, and let it rest if its holder asked for that.

    What an earlier owner left stays for the next one if this owner was cut off and left nothing: a successor that
    dies before its first checkpoint does not wipe out the work before it.
    """
    assert lease.proof is not None
    assert lease.kind is not None
    if how == UNDELIVERED:
        return _clear_holder(lease, now)  # nobody ever heard that they had it, so there is no story to tell
    left = lease.note if note is None else note
    wrote = left is not None or lease.checkpoint is not None
    before = None if wrote or how == RELEASED else last_ending(lease)
    story = Ended(
        owner=lease.owner,
        how=how,
        at=now,
        kind=lease.kind,
        proof=lease.proof,
        claimed_at=lease.claimed_at,
        principal=lease.principal,
        note=before.note if before else left,
        context_from=before.context_from if before else lease.owner if wrote else None,
        by=by,
        reason=reason,
    )
    return replace(
        _clear_holder(lease, now),
        ended=msgspec.json.encode(story).decode(),
        ended_checkpoint=lease.ended_checkpoint if before else lease.checkpoint,
    )


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
        raise LeaseGone(f"the lease on {lease.id} has run out")


def lease_lost_error(lease: Lease, proof: str, now: Instant) -> LeaseLost:
    """Tell a former holder what became of its lease: who has it now, how it ended, by whom and why."""
    story = last_ending(lease)
    facts: dict[str, object] = {"job_id": lease.id}
    if story is not None and story.proof == proof:
        facts |= {"ended": story.how, "ended_at": story.at, "ended_by": story.by, "reason": story.reason}
    elif lease.proof == proof:
        facts |= {"ended": EXPIRED, "ended_at": lease.expires_at}
    if is_live(lease, now) and lease.proof != proof:
        facts |= {"held_by": lease.owner, "held_since": lease.claimed_at, "expires_at": lease.expires_at}
        return LeaseLost(f"{lease.id} is now held by another owner", **facts)
    if facts.get("ended") == RELEASED:
        return LeaseLost(f"you released {lease.id} already", **facts)
    return LeaseLost(f"your lease on {lease.id} is over and nobody holds it now", **facts)


def renewal_interval(ttl: Instant) -> Instant:
    """How often a holder should renew: two tries may fail before the third comes too late."""
    return max(ttl // 3, SECOND // 3)
