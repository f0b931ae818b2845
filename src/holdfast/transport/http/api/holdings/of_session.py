"""What a session holds, page by page: jobs by id, then reservations by id, then tasks by id."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.core.deadlines import with_effective_deadline
from holdfast.core.event_filter import READ_SCOPES
from holdfast.core.lease import Lease
from holdfast.core.page import PAGE_BYTES, cut, record_size
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract import Reader
from holdfast.transport.http.api.cursors import check_known, format_position, parse_position

LIMIT = 1_000
"""Rows of each kind on one page."""
_TYPES: dict[str, type[Any]] = {Lease.table: Lease, Reservation.table: Reservation, Task.table: Task}
_ORDER = tuple(_TYPES)


class HoldingsPage(NamedTuple):
    """Some of what a session holds, with effective deadlines."""

    jobs: tuple[Lease, ...]
    reservations: tuple[Reservation, ...]
    tasks: tuple[Task, ...]
    next_cursor: str | None
    """None if these are the last."""


def read_holdings(reader: Reader, session: Session, by: Principal, cursor: str | None) -> HoldingsPage:
    """The page after a cursor, of what the key may read, in about `PAGE_BYTES` bytes."""
    first, after = (Lease.table, "") if cursor is None else parse_position(cursor, _TYPES)
    if cursor is not None:
        check_known(reader, _TYPES[first], session.account, after)
    key, left = (session.account, session.id), PAGE_BYTES
    found: dict[str, tuple[Any, ...]] = dict.fromkeys(_TYPES, ())
    for table in _ORDER[_ORDER.index(first) :]:
        row_type = _TYPES[table]
        if not by.may(READ_SCOPES[row_type.noun]):
            continue
        rows, more = cut(reader.holdings(row_type, key, after if table == first else "", LIMIT + 1, left), LIMIT, left)
        found[table] = tuple(with_effective_deadline(row, session) for row in rows)
        if more:
            return _page(found, format_position(table, rows[-1].id))
        left = max(left - sum(map(record_size, rows)), 1)
    return _page(found, None)


def _page(found: dict[str, tuple[Any, ...]], next_cursor: str | None) -> HoldingsPage:
    return HoldingsPage(found[Lease.table], found[Reservation.table], found[Task.table], next_cursor)
