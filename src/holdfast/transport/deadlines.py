"""Effective deadlines of rows that were read from the store."""

from __future__ import annotations

from typing import TypeVar

from holdfast.core.deadlines import Held, session_of, with_effective_deadline
from holdfast.core.lease import Lease
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract import Reader

R = TypeVar("R", Lease, Task)


def read_one_effective(reader: Reader, row_type: type[R], account: str, row_id: str) -> R | None:
    """A row with the earlier of its own deadline and that of its session, both as they were at one moment."""
    found = reader.row(row_type, account, row_id)
    if found is None or session_of(found) is None:
        return found
    with reader.snapshot():  # the session may have changed since the row was read
        found = reader.row(row_type, account, row_id)
        return None if found is None else read_effective(reader, [found])[0]


def read_effective(reader: Reader, rows: list[Held]) -> list[Held]:
    """The rows, each with the earlier of its own deadline and that of the session it was claimed for."""
    found: dict[tuple[str, str], Session | None] = {}
    for row in rows:
        session_id = session_of(row)
        if session_id is not None and (row.account, session_id) not in found:
            found[row.account, session_id] = reader.row(Session, row.account, session_id)
    return [with_effective_deadline(row, found.get((row.account, session_of(row) or ""))) for row in rows]
