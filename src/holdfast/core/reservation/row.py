"""The row of a reservation: patterns of paths in a space, held or waited for by one owner."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import ClassVar

import msgspec

from holdfast.core.reservation.patterns import Pattern, may_overlap, parse, problem
from holdfast.core.row import SECOND, Instant, Row
from holdfast.decoding import decoder

EXCLUSIVE, SHARED = "exclusive", "shared"
MODES = (EXCLUSIVE, SHARED)

LEFT = "left"
"""How the wait for a reservation ends without one; the other endings are those of leases."""

MAX_HELD, MAX_WAITING, MAX_BROAD = 500, 500, 50
"""Reservations of one space that are held, that wait, and of each kind with a pattern that begins with a wildcard."""
WAIT_LIFETIME = 6 * SECOND
"""How long a wait lasts after its server renewed it last."""
PLACE_LIFETIME = 10 * SECOND
"""How long the place of a caller is kept that waited for as long as it wanted to."""

_decode_paths = decoder(list[str])


class Reservation(Row, frozen=True):
    """The row of a reservation. It waits while `waits_until` is set, and is held while `proof` is set."""

    table: ClassVar[str] = "reservations"
    noun: ClassVar[str] = "reservation"
    hashed: ClassVar[frozenset[str]] = frozenset({"checkpoint"})
    json: ClassVar[frozenset[str]] = frozenset({"paths", "metadata", "offer"})
    unlogged: ClassVar[frozenset[str]] = frozenset({"waits_until"})

    space: str = ""
    """The repository, or whatever else its paths belong to."""
    mode: str = EXCLUSIVE
    paths: str = "[]"
    """A JSON array of patterns."""
    owner: str = ""
    principal: str = ""
    reason: str | None = None
    metadata: str | None = None
    session: str | None = None
    ttl: Instant = 0
    arrived_at: Instant = 0
    """Its place among those whose patterns overlap: earlier ones are served first."""
    waits_until: Instant | None = None
    """While it waits: when the wait ends unless its server renews it."""
    proof: str | None = None
    token: int = 0
    claimed_at: Instant | None = None
    expires_at: Instant | None = None
    note: str | None = None
    checkpoint: str | None = None
    offer: str | None = None
    """An Offer as JSON: the last one of the present holder."""
    ended_at: Instant | None = None
    ended_how: str | None = None
    ended_proof: str | None = None
    """SHA-256 of the last lease id, to tell its former holder what happened."""
    ended_by: str | None = None
    ended_reason: str | None = None


class Request(msgspec.Struct, frozen=True):
    """A request for a reservation."""

    space: str
    mode: str
    paths: tuple[str, ...]
    owner: str
    principal: str
    ttl: Instant
    reason: str | None = None
    metadata: str | None = None
    session: str | None = None


class SpaceUse(msgspec.Struct, frozen=True):
    """How many reservations of a space are held, and how many are waited for."""

    held: int = 0
    waiting: int = 0


def encode_paths(paths: tuple[str, ...]) -> str:
    """Patterns as the row keeps them."""
    return msgspec.json.encode(paths).decode()


@lru_cache(maxsize=4096)
def patterns_in(paths: str) -> tuple[Pattern, ...]:
    """The patterns in the column `paths`."""
    return tuple(map(parse, _decode_paths(paths)))


def paths_of(row: Reservation) -> tuple[str, ...]:
    """The patterns of a reservation as text."""
    return tuple(_decode_paths(row.paths))


def is_open(row: Reservation) -> bool:
    """Whether it is held or waits, expired or not."""
    return row.ended_at is None


def is_waiting(row: Reservation, now: Instant) -> bool:
    """Whether it waits, and its server renewed the wait in time."""
    return row.waits_until is not None and row.waits_until > now


def is_due(row: Reservation, now: Instant) -> bool:
    """Whether its lease has expired, or its wait was not renewed: the sweep may end it."""
    deadline = row.waits_until if row.expires_at is None else row.expires_at
    return deadline is not None and deadline <= now


def is_broad(row: Reservation) -> bool:
    """Whether one of its patterns begins with a wildcard."""
    return any(pattern.is_broad for pattern in patterns_in(row.paths))


def may_overlap_any(paths: object, patterns: Iterable[Pattern]) -> bool:
    """Whether what a damaged row has in the column `paths` may overlap one of these; so it may if it cannot be read."""
    try:
        theirs = _decode_paths(paths)  # type: ignore[arg-type]
    except (TypeError, msgspec.MsgspecError):
        return True
    if any(map(problem, theirs)):
        return True
    return any(may_overlap(parse(text), pattern) for text in theirs for pattern in patterns)


def indexed_prefixes(row: Reservation) -> frozenset[str]:
    """The prefixes under which stores find an open reservation; none for one that has ended."""
    return frozenset(pattern.prefix for pattern in patterns_in(row.paths)) if is_open(row) else frozenset()
