"""Reads of a SQLite file: from one snapshot, without waiting for the writer or delaying it."""

from __future__ import annotations

from typing import Any, TypeVar

import apsw
import msgspec

from holdfast.core.errors import DamagedRow
from holdfast.core.row import Instant
from holdfast.store.contract import Clock
from holdfast.store.damaged_rows import DamagedRows
from holdfast.store.sql.reader import SqlReader
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import queries
from holdfast.store.sqlite.results import fetch, with_booleans
from holdfast.store.sqlite.transaction import current_time, wall_time

T = TypeVar("T", bound=msgspec.Struct)


class SqliteReader(SqlReader):
    """Reads in one read transaction."""

    def __init__(self, connection: apsw.Connection, clock: Clock | None, damaged_rows: DamagedRows) -> None:
        self._execute = connection.execute
        self.damaged_rows = damaged_rows
        state: Any = self._execute(queries.STATE).fetchone()
        self._token: int
        self._token, now, boot_id, boot_at = state
        reading = clocks.read()
        self.now: Instant = current_time(clock, clocks.Mark(now, boot_id, boot_at), reading)
        self.wall: Instant = wall_time(clock, reading)

    def execute(self, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
        """Execute one statement."""
        return fetch(self._execute, query, arguments)

    def records(self, record_type: type[T], query: str, *arguments: Any) -> list[T | DamagedRow]:
        """The result as records; SQLite stores booleans as numbers."""
        found = self.execute(query, *arguments)
        return self.damaged_rows.decode(record_type, with_booleans(record_type, found))

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return self._token + 1
