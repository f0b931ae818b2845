"""Effective deadlines of rows that were read from the store."""

from __future__ import annotations

from holdfast.core.deadlines import Held, session_of, with_effective_deadline
from holdfast.core.session import Session
from holdfast.store.contract import Reader


def read_effective(reader: Reader, rows: list[Held]) -> list[Held]:
    """The rows, each with the earlier of its own deadline and that of the session it was claimed for."""
    found: dict[tuple[str, str], Session | None] = {}
    for row in rows:
        session_id = session_of(row)
        if session_id is not None and (row.account, session_id) not in found:
            found[row.account, session_id] = reader.row(Session, row.account, session_id)
    return [with_effective_deadline(row, found.get((row.account, session_of(row) or ""))) for row in rows]
