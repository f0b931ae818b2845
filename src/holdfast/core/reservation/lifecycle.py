"""Life cycle of a reservation: conflicts, waiting, granting, renewing, changing its paths, ending."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import offer as offers
from holdfast.core.errors import Invalid, LeaseLost, SpaceFull
from holdfast.core.lease import BY_HOLDER, EXPIRED, RESTORED, RESTORED_MESSAGE
from holdfast.core.limits import MAX_RESERVED_PATHS
from holdfast.core.reservation.conflicts import MAX_WORK, conflicts_with, near, work_of
from holdfast.core.reservation.patterns import Pattern, overlapping_pairs
from holdfast.core.reservation.row import (
    EXCLUSIVE,
    LEFT,
    MAX_BROAD,
    MAX_HELD,
    MAX_WAITING,
    WAIT_LIFETIME,
    Request,
    Reservation,
    SpaceUse,
    encode_paths,
    is_broad,
    is_waiting,
    paths_of,
    patterns_in,
)  # fmt: skip
from holdfast.core.row import Instant

NOBODY = "nobody"
"""The proof of a lease that no lease id has."""
MAX_OVERLAPS = 100
"""Pairs of patterns that an answer lists."""
MAX_COMPARED = 2_000
"""Pairs of patterns that are compared to find them: about 10 ms."""


class Conflict(msgspec.Struct, frozen=True):
    """A conflicting reservation, and which patterns overlap."""

    row: Reservation
    overlapping_pairs: tuple[tuple[str, str], ...]
    """(the caller's pattern, the other's pattern)."""


def conflicts(
    mine: Sequence[Pattern], mode: str, others: Iterable[Reservation], *, arrived_at: Instant | None, now: Instant
) -> list[Reservation]:
    """The conflicting reservations: live, with a pattern that overlaps one of `mine`, and one side exclusive.

    Those that wait conflict with whoever arrived later; `arrived_at` is None for a caller that arrives now.
    """
    candidates = {
        other.id: other
        for other in others
        if (leases.is_live(other, now) or _waits_before(other, arrived_at, now)) and EXCLUSIVE in (mode, other.mode)
    }
    patterns = {row_id: patterns_in(other.paths) for row_id, other in candidates.items()}
    if work_of(mine, patterns.values()) > MAX_WORK:
        patterns = near(mine, patterns)  # other requests of the batch may have loaded the rest
    if work_of(mine, patterns.values()) > MAX_WORK:
        raise SpaceFull(
            "the space has too many patterns to compare yours with: send fewer patterns with wildcards, or begin each"
            " with the name of a folder",
            retry_after=5,
        )
    return [candidates[row_id] for row_id in conflicts_with(mine, patterns.items())]


def _waits_before(other: Reservation, arrived_at: Instant | None, now: Instant) -> bool:
    return is_waiting(other, now) and (arrived_at is None or other.arrived_at < arrived_at)


def describe(mine: Sequence[Pattern], others: Iterable[Reservation]) -> tuple[Conflict, ...]:
    """Which patterns overlap, for an answer: at most MAX_OVERLAPS pairs in all, and one of each reservation.

    After MAX_COMPARED pairs nothing more is compared, and further reservations are listed without their patterns.
    """
    found, left, to_compare = [], MAX_OVERLAPS, MAX_COMPARED
    for other in others:
        theirs = patterns_in(other.paths)
        pairs = overlapping_pairs(mine, theirs)[: max(left, 1)] if to_compare > 0 else []
        to_compare -= len(mine) * len(theirs)
        left -= len(pairs)
        found.append(Conflict(other, tuple(pairs)))
    return tuple(found)


def check_room(use: SpaceUse, *, waits: bool) -> None:
    """Refuse one more reservation, or one more wait, in a space that has no room for it."""
    if waits and use.waiting >= MAX_WAITING:
        raise SpaceFull(f"the space already has {MAX_WAITING} waiting requests, the limit", retry_after=5)
    if not waits and use.held >= MAX_HELD:
        raise SpaceFull(f"the space already has {MAX_HELD} reservations, the limit", retry_after=5)


def check_broad(mine: Sequence[Pattern], others: Iterable[Reservation], now: Instant, *, waits: bool) -> None:
    """Refuse a pattern that begins with a wildcard in a space that has as many of those as it may have.

    Every path of the space is compared with each of them.
    """
    if not any(pattern.is_broad for pattern in mine):
        return
    counts = is_waiting if waits else leases.is_live
    if sum(counts(other, now) and is_broad(other) for other in others) >= MAX_BROAD:
        raise SpaceFull(
            f"the space already has {MAX_BROAD} reservations with a pattern that begins with a wildcard, the limit:"
            " begin your patterns with the name of a folder",
            retry_after=5,
        )


def wait(account: str, row_id: str, request: Request, others: Iterable[Reservation], now: Instant) -> Reservation:
    """A reservation that waits, behind all others that wait now."""
    last = max((other.arrived_at for other in others), default=0)
    return replace(_of(account, row_id, request), arrived_at=max(now, last + 1), waits_until=now + WAIT_LIFETIME)


def is_same_wait(row: Reservation | None, request: Request, now: Instant) -> bool:
    """Whether a row is the place that this caller kept for the same request."""
    return (
        row is not None
        and is_waiting(row, now)
        and (row.principal, row.space, row.mode, row.paths)
        == (request.principal, request.space, request.mode, encode_paths(request.paths))
    )


def grant(row: Reservation, request: Request, *, proof: str, token: int, now: Instant) -> Reservation:
    """Give the paths to the caller."""
    return replace(
        _of(row.account, row.id, request),
        version=row.version,
        arrived_at=row.arrived_at or now,
        proof=proof,
        token=token,
        claimed_at=now,
        expires_at=now + request.ttl,
    )


def _of(account: str, row_id: str, request: Request) -> Reservation:
    return Reservation(
        account,
        row_id,
        space=request.space,
        mode=request.mode,
        paths=encode_paths(request.paths),
        owner=request.owner,
        principal=request.principal,
        reason=request.reason,
        metadata=request.metadata,
        session=request.session,
        ttl=request.ttl,
    )


def renew(row: Reservation, *, ttl: Instant | None, now: Instant) -> Reservation:
    """Move the deadline to a full TTL from now; an offered reservation keeps a later one."""
    ttl = row.ttl if ttl is None else ttl
    return replace(row, ttl=ttl, expires_at=offers.renewed_until(row, now + ttl, now))


def add_paths(row: Reservation, paths: Iterable[str]) -> Reservation:
    """The reservation with more patterns, as many as a request may have in all."""
    found = tuple(dict.fromkeys((*paths_of(row), *paths)))
    if len(found) > MAX_RESERVED_PATHS:
        message = f"a reservation has at most {MAX_RESERVED_PATHS} patterns, and this one would have {len(found)}"
        raise Invalid(message, [{"pointer": "/paths", "code": "too_many", "message": message}])
    return replace(row, paths=encode_paths(found))


def remove_paths(row: Reservation, paths: Sequence[str]) -> Reservation:
    """The reservation without some of its patterns; each must be one of them, as it was written."""
    held = paths_of(row)
    unknown = [path for path in paths if path not in held]
    if unknown:
        message = f"{unknown[0]!r} is not one of the reserved patterns: {', '.join(held)}"
        raise Invalid(message, [{"pointer": "/paths", "code": "not_reserved", "message": message}])
    return replace(row, paths=encode_paths(tuple(path for path in held if path not in paths)))


def end(row: Reservation, how: str, *, now: Instant, by: str | None = None, reason: str | None = None) -> Reservation:
    """End a reservation, or its wait."""
    return replace(
        row,
        waits_until=None,
        proof=None,
        expires_at=None,
        offer=None,
        ended_at=now,
        ended_how=LEFT if row.proof is None else how,
        ended_proof=row.proof,
        ended_by=by,
        ended_reason=reason,
    )


def hand_over(
    row: Reservation,
    *,
    owner: str,
    principal: str,
    session: str | None,
    ttl: Instant,
    proof: str,
    token: int,
    now: Instant,
) -> Reservation:
    """Give an offered reservation to its taker: the same paths, note and checkpoint under another lease."""
    return replace(
        row,
        owner=owner,
        principal=principal,
        session=session,
        ttl=ttl,
        proof=proof,
        token=token,
        claimed_at=now,
        expires_at=now + ttl,
        offer=None,
        ended_how=offers.HANDED_OVER,
        ended_proof=row.proof,
        ended_by=owner,
    )


def end_by_restore(row: Reservation, now: Instant) -> Reservation:
    """End a reservation of a store that was restored from a backup; nobody can reserve its paths before its deadline.

    Its holder may have missed all of that, and may act as the holder until then; but its lease id must not work again,
    and its session, which has ended too, must not get it back.
    """
    if row.proof is None:
        return end(row, LEFT, now=now)
    return replace(
        row,
        session=None,
        proof=NOBODY,
        offer=None,
        ended_how=RESTORED,
        ended_proof=row.proof,
        ended_reason=RESTORED,
    )


def check_holder(row: Reservation, proof: str, now: Instant) -> None:
    """Only the live holder may act. Every write by a holder passes through here."""
    if row.proof != proof or not leases.is_live(row, now):
        raise lease_lost_error(row, proof, now)


def lease_lost_error(row: Reservation, proof: str, now: Instant) -> LeaseLost:
    """The error for a caller that does not hold it; a former holder learns how, by whom and why it ended."""
    facts: dict[str, object] = {"reservation_id": row.id}
    if row.ended_proof == proof:
        facts |= {
            "ended": row.ended_how,
            "ended_at": row.claimed_at if row.ended_how == offers.HANDED_OVER else row.ended_at,
            "ended_by": row.ended_by,
            "reason": row.ended_reason,
        }
    elif row.proof == proof and leases.is_due(row, now):
        facts |= {"ended": EXPIRED, "ended_at": row.expires_at}
    else:
        return LeaseLost("this is not a lease id of the reservation, or no longer", **facts)
    if facts["ended"] == offers.HANDED_OVER:
        return LeaseLost(f"{row.owner} accepted your offer and holds the files now", held_by=row.owner, **facts)
    if facts["ended"] == RESTORED:
        return LeaseLost(f"{RESTORED_MESSAGE}: reserve the paths again", **facts)
    if facts["ended"] in BY_HOLDER:
        return LeaseLost("you have already released this reservation", **facts)
    return LeaseLost("your reservation is over", **facts)
