"""The row of a name, and whether it is held, live, due, delayed or done."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from typing import ClassVar, Protocol

import msgspec

from holdfast.core import offer as offers
from holdfast.core.row import Instant, Row
from holdfast.decoding import decode

JOB, LOCK, ELECTION = "job", "lock", "election"

RELEASED, EXPIRED, FORCED, SESSION_ENDED, UNDELIVERED = "released", "expired", "forced", "session_ended", "undelivered"
RESTORED, DONE, FAILED, HANDED_OVER = "restored", "done", "failed", offers.HANDED_OVER
"""How a lease ends, also as the reason that its former holder gets."""
BY_HOLDER = frozenset({RELEASED, DONE, FAILED})
"""Endings by the holder itself: it has left what it wanted to leave."""
RESTORED_MESSAGE = "the store was restored from a backup, which ended every lease of before"


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the last lease on a name ended."""

    owner: str | None
    how: str
    at: Instant
    proof: str
    kind: str = JOB
    """Left out of the stored record for a job: a released row should need no more room than a held one."""
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
    hashed: ClassVar[frozenset[str]] = frozenset({"checkpoint", "ended_checkpoint", "result"})
    json: ClassVar[frozenset[str]] = frozenset({"metadata", "progress", "acl", "ended", "offer"})
    booleans: ClassVar[frozenset[str]] = frozenset({"ephemeral"})
    # A renewal changes none of these, so it updates no index but the one by deadline.
    column_groups: ClassVar[tuple[tuple[str, ...], ...]] = (
        (
            "kind", "holder", "owner", "principal", "proof", "claimed_at", "metadata", "session", "ephemeral", "delay",
            "available_at", "acl", "again_at", "offer",
        ),
        ("note", "checkpoint", "progress"),
        ("ended", "ended_checkpoint", "result", "done_at", "done_until"),
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
    result: str | None = None
    """What the last holder left as the result of the work."""
    done_at: Instant | None = None
    """When the last holder said that the work is done; None if it is not."""
    done_until: Instant | None = None
    """Until when the job counts as done; None means for good."""
    again_at: Instant | None = None
    """When it was claimed although it was done; None if it was not."""
    offer: str | None = None
    """An Offer as JSON: the last one of the present holder."""


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


def derive_lease_id(secret: bytes, account: str, name: str, *grant: Instant | str | None) -> str:
    """A lease id derived from a secret of the holder, so that the same holder gets the same id again.

    `grant` tells this grant from all others of the name. Rows keep only the hash of the id: without the secret it
    cannot be found, not even with the whole database.
    """
    digest = hmac.digest(secret, "\x1f".join((account, name, *map(str, grant))).encode(), "sha256")
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


def is_done(lease: Lease, now: Instant) -> bool:
    """Whether the work is done and nobody does it again."""
    return lease.done_at is not None and not is_held(lease) and (lease.done_until is None or lease.done_until > now)


def last_ending(lease: Lease) -> Ended | None:
    """How the last lease ended, if there was one."""
    return None if lease.ended is None else decode(lease.ended, Ended)
