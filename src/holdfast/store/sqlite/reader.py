"""A look at the file: one snapshot, beside the writer and never in its way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import apsw

from holdfast.core.row import Instant, Row
from holdfast.store.contract import Clock
from holdfast.store.sql_reader import SqlReader
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import queries
from holdfast.store.sqlite.transaction import from_columns, now_by

R = TypeVar("R", bound=Row)


class SqliteReader(SqlReader):
    """Between BEGIN and the end of the look."""

    queries = queries

    def __init__(self, connection: apsw.Connection, clock: Clock | None) -> None:
        self._execute = connection.execute
        state: Any = self._execute(queries.STATE).fetchone()
        self._token: int
        self._token, now, boot_id, boot_at = state
        self.now: Instant = now_by(clock, clocks.Mark(now, boot_id, boot_at), clocks.read())

    def look(self, query: str, *arguments: Any) -> Iterable[tuple[Any, ...]]:
        """Say one statement."""
        return self._execute(query, arguments)

    def rows(self, row_type: type[R], query: str, *arguments: Any) -> list[R]:
        """Its answer as rows; SQLite has no booleans of its own."""
        return [from_columns(row_type, columns) for columns in self._execute(query, arguments)]

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return self._token + 1
