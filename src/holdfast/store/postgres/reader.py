"""Reads of PostgreSQL, always on the primary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import psycopg

from holdfast.core.row import Instant
from holdfast.store.contract import Clock
from holdfast.store.damaged_rows import DamagedRows
from holdfast.store.postgres import queries
from holdfast.store.postgres.clock_watch import ClockReading, own_time
from holdfast.store.postgres.connection import Connection, is_broken
from holdfast.store.postgres.durability import check_durable, durable_transaction
from holdfast.store.sql.reader import SqlReader


class PostgresReader(SqlReader):
    """Reads with single statements; each sees everything committed before it. A `snapshot` is of one moment."""

    def __init__(self, connection: Connection, clock: Clock | None, damaged_rows: DamagedRows) -> None:
        self._connection = connection
        self.damaged_rows = damaged_rows
        asked_at = own_time()
        self.now: Instant = self.value(queries.NOW, None if clock is None else clock())
        self.clock_reading = ClockReading(self.now, asked_at, own_time())
        self.wall = self.now

    def execute(self, query: str, *arguments: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        """Execute one statement."""
        return self._connection.execute(render(query), arguments)

    def fetch(self, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
        """Execute one statement and fetch its result, if it has one."""
        cursor = self.execute(query, *arguments)
        return [] if cursor.description is None else cursor.fetchall()

    def transaction(self) -> AbstractContextManager[None]:
        """Statements executed inside are one transaction."""
        return durable_transaction(self._connection)

    def check_durable(self, *, require_standby: bool = False, durable_storage: bool = False) -> None:
        """Raise NotDurable if the settings of the database make commits unsafe."""
        check_durable(self._connection, require_standby=require_standby, durable_storage=durable_storage)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Statements executed inside see one state."""
        self.execute(queries.BEGIN_SNAPSHOT)
        try:
            yield
        finally:
            if not is_broken(self._connection):
                self.execute(queries.ROLLBACK)

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return int(self.value(queries.NEXT_TOKEN))


@cache
def render(statement: str) -> str:
    """A statement of `store/sql` with psycopg's placeholder and PostgreSQL's function to unpack a JSON array."""
    return statement.replace("json_each(?)", "json_array_elements(?::json)").replace("?", "%s")
