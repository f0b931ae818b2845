"""Effective deadlines of rows, and how often to renew them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from holdfast.core.deadlines import Held, heartbeat_interval, session_of, with_effective_deadline
from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row

R = TypeVar("R", Lease, Task, Reservation)


def read_one_effective(reader: Reader, row_type: type[R], account: str, row_id: str) -> R | None:
    """A row with the earlier of its own deadline and that of its session, both as they were at one moment."""
    found = reader.row(row_type, account, row_id)
    if found is None or session_of(found) is None:
        return found
    with reader.snapshot():  # the session may have changed since the row was read
        found = reader.row(row_type, account, row_id)
        return None if found is None else read_effective(reader, [found])[0]


class HoldingSessions:
    """The sessions that some rows were claimed for, each read once."""

    def __init__(self, reader: Reader, rows: Sequence[Lease | Task | Reservation]) -> None:
        self._found: dict[tuple[str, str], Session | None] = {}
        for row in rows:
            session_id = session_of(row)
            if session_id is not None and (row.account, session_id) not in self._found:
                self._found[row.account, session_id] = usable_row(reader, Session, row.account, session_id)

    def of(self, row: Lease | Task | Reservation) -> Session | None:
        """The session whose end frees the row, if there is one."""
        return self._found.get((row.account, session_of(row) or ""))


def read_effective(reader: Reader, rows: list[Held]) -> list[Held]:
    """The rows, each with the earlier of its own deadline and that of the session it was claimed for."""
    sessions = HoldingSessions(reader, rows)
    return [with_effective_deadline(row, sessions.of(row)) for row in rows]


def heartbeat_seconds(row: Lease | Task | Reservation, now: Instant) -> float:
    """How often the holder of a row with its effective deadline should renew: in whole seconds from one second on."""
    interval = heartbeat_interval(row, now)
    return interval // SECOND if interval >= SECOND else round(interval / SECOND, 3)
