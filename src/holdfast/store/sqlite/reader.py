"""Reads of a SQLite file: from one snapshot, without waiting for the writer or delaying it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import apsw

from holdfast.core.row import Instant, Row
from holdfast.store.contract import Clock
from holdfast.store.sql.reader import SqlReader
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import queries
from holdfast.store.sqlite.transaction import current_time, from_columns, wall_time

R = TypeVar("R", bound=Row)


class SqliteReader(SqlReader):
    """Reads in one read transaction."""

    def __init__(self, connection: apsw.Connection, clock: Clock | None) -> None:
        self._execute = connection.execute
        state: Any = self._execute(queries.STATE).fetchone()
        self._token: int
        self._token, now, boot_id, boot_at = state
        reading = clocks.read()
        self.now: Instant = current_time(clock, clocks.Mark(now, boot_id, boot_at), reading)
        self.wall: Instant = wall_time(clock, reading)

    def execute(self, query: str, *arguments: Any) -> Iterable[tuple[Any, ...]]:
        """Execute one statement."""
        return self._execute(query, arguments)

    def rows(self, row_type: type[R], query: str, *arguments: Any) -> list[R]:
        """The result as rows; SQLite stores booleans as numbers."""
        return [from_columns(row_type, columns) for columns in self._execute(query, arguments)]

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return self._token + 1
