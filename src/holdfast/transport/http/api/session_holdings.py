"""What a session holds, page by page: jobs by id, then reservations by id, then tasks by id."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

from holdfast.core.deadlines import with_effective_deadline
from holdfast.core.event_filter import READ_SCOPES
from holdfast.core.lease import Lease
from holdfast.core.page import PAGE_BYTES, cut, record_size
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract import Reader
from holdfast.transport.http.api.cursors import check_known, invalid_cursor

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
    first, after = (Lease.table, "") if cursor is None else _parse_cursor(cursor)
    if after:
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
            return _page(found, _format_cursor(rows[-1]))
        left = max(left - sum(map(record_size, rows)), 1)
    return _page(found, None)


def _page(found: dict[str, tuple[Any, ...]], next_cursor: str | None) -> HoldingsPage:
    return HoldingsPage(found[Lease.table], found[Reservation.table], found[Task.table], next_cursor)


def _format_cursor(row: Row) -> str:
    return base64.urlsafe_b64encode(f"{row.table}\n{row.id}".encode()).decode().rstrip("=")


def _parse_cursor(text: str) -> tuple[str, str]:
    try:
        table, _, after = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition("\n")
    except ValueError:
        table = after = ""
    if table not in _TYPES or not after or "\0" in after:
        raise invalid_cursor()
    return table, after
