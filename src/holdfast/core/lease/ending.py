"""The end of a lease: by its holder, by its deadline, by force, by a restore; and what its former holder is told."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import LeaseLost
from holdfast.core.lease.row import (
    BY_HOLDER,
    DONE,
    EXPIRED,
    HANDED_OVER,
    JOB,
    RESTORED,
    RESTORED_MESSAGE,
    UNDELIVERED,
    Ended,
    Lease,
    is_live,
    last_ending,
)  # fmt: skip
from holdfast.core.row import Instant


def end(
    lease: Lease,
    how: str,
    *,
    now: Instant,
    by: str | None = None,
    reason: str | None = None,
    result: str | None = None,
) -> Lease:
    """Free the name, record how the lease ended, and start its delay if the holder asked for one.

    If this holder was cut off and left neither note nor checkpoint, those of the earlier holder stay: a successor that
    dies before its first checkpoint does not erase the work before it.
    """
    assert lease.proof is not None
    assert lease.kind is not None
    if how == UNDELIVERED:
        return _clear_holder(lease, now)  # the claim never reached its caller, so there is no ending to record
    left_context = lease.note is not None or lease.checkpoint is not None
    previous = None if left_context or how in BY_HOLDER else last_ending(lease)
    ending = Ended(
        owner=lease.owner,
        how=how,
        at=now,
        kind=JOB if lease.kind == JOB else lease.kind,  # msgspec leaves out the default itself, not what equals it
        proof=lease.proof,
        claimed_at=lease.claimed_at,
        principal=lease.principal,
        note=previous.note if previous else lease.note,
        context_from=previous.context_from if previous else lease.owner if left_context else None,
        by=by,
        reason=reason,
    )
    return replace(
        _clear_holder(lease, now),
        ended=msgspec.json.encode(ending).decode(),
        ended_checkpoint=lease.ended_checkpoint if previous else lease.checkpoint,
        result=result,
        done_at=None,
        done_until=None,
    )


def finish(lease: Lease, *, result: str | None, done_for: Instant | None, now: Instant) -> Lease:
    """End a lease because the work is done: for a while nobody does it again; for good if `done_for` is None."""
    ended = end(lease, DONE, now=now, result=result)
    return replace(ended, done_at=now, done_until=None if done_for is None else now + done_for)


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
        again_at=None,
        offer=None,
    )


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
        if facts.get("ended") == HANDED_OVER:
            return LeaseLost(f"{lease.owner} accepted your offer and holds {lease.id} now", **facts)
        return LeaseLost(f"{lease.id} is now held by another owner", **facts)
    if facts.get("ended") == RESTORED:
        return LeaseLost(f"{RESTORED_MESSAGE}: claim {lease.id} again", **facts)
    if facts.get("ended") in BY_HOLDER:
        return LeaseLost(f"you have already released {lease.id}", **facts)
    if "ended" not in facts:
        since = "nobody has claimed it yet" if not lease.token else "it has no holder now"
        return LeaseLost(f"this lease id does not hold {lease.id}: {since}", **facts)
    return LeaseLost(f"your lease on {lease.id} is over; it has no holder now", **facts)
