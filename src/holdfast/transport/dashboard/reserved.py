"""Open reservations that a key may see, by space, and who waits behind which of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.core import lease as leases
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.principal import Principal
from holdfast.core.reservation.conflicts import MAX_WORK, conflicts_with, work_of
from holdfast.core.reservation.row import EXCLUSIVE, MAX_HELD, MAX_WAITING, Reservation, is_waiting, patterns_in
from holdfast.core.row import Instant
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.held import LAST, cursor_before

READ_AT_ONCE = 200
MAX_PAIRS = 50_000
"""How many pairs are compared to find who waits for what, and at most MAX_WORK; others are listed without."""


class Space(msgspec.Struct):
    """The open reservations of one space."""

    name: str
    rows: list[Reservation]

    def held(self, now: Instant) -> list[Reservation]:
        """Those that are held."""
        return [row for row in self.rows if leases.is_live(row, now)]

    def waiting(self, now: Instant) -> list[Reservation]:
        """Those that wait, first come first."""
        return sorted((row for row in self.rows if is_waiting(row, now)), key=lambda row: row.arrived_at)


def open_reservations(reader: Reader, by: Principal, prefix: str, after: str) -> Iterator[Reservation]:
    """Open reservations in spaces with a prefix that the key covers, after a space, by space; read as they are used."""
    if not by.covers(prefix):
        own = by.name_prefix or ""
        if not own.startswith(prefix):
            return
        prefix = own
    place = max((after, LAST), (cursor_before(prefix), LAST)) if after else (cursor_before(prefix), "")
    while True:
        page = reader.reservations(by.account, None, place, READ_AT_ONCE, PAGE_BYTES)
        for row in page:
            if row.space.startswith(prefix):
                yield row
            elif row.space > prefix:
                return
        if not is_full(page, READ_AT_ONCE, PAGE_BYTES):
            return
        place = (page[-1].space, page[-1].id)


def read_spaces(reader: Reader, by: Principal, prefix: str, after: str, limit: int) -> tuple[list[Space], str]:
    """Whole spaces until they have `limit` reservations, and the cursor of the next page or ""."""
    found: list[Space] = []
    for count, row in enumerate(open_reservations(reader, by, prefix, after)):
        if not found or found[-1].name != row.space:
            if count >= limit:
                return found, found[-1].name
            found.append(Space(row.space, []))
        found[-1].rows.append(row)
    return found, ""


def read_space(reader: Reader, account: str, name: str) -> Space:
    """One space; it has at most as many reservations as may be held and may wait."""
    return Space(name, reader.reservations(account, name, (name, ""), MAX_HELD + MAX_WAITING, PAGE_BYTES))


def conflicts_of_waiting(waiting: Sequence[Reservation], held: Sequence[Reservation]) -> dict[str, list[Reservation]]:
    """The held reservations that each waiting one waits for, by the id of the waiting one.

    Comparing patterns costs time: when the bound is reached, the waiting ones that came last are left out.
    """
    found: dict[str, list[Reservation]] = {}
    patterns = {row.id: patterns_in(row.paths) for row in held}
    by_id = {row.id: row for row in held}
    count = sum(map(len, patterns.values()))
    work = pairs = 0
    for row in waiting:
        mine = patterns_in(row.paths)
        work += work_of(mine, patterns.values())
        pairs += len(mine) * count
        if work > MAX_WORK or pairs > MAX_PAIRS:
            break
        others = ((key, theirs) for key, theirs in patterns.items() if EXCLUSIVE in (row.mode, by_id[key].mode))
        found[row.id] = [by_id[key] for key in conflicts_with(mine, others)]
    return found
