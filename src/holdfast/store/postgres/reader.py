"""A look at PostgreSQL, always at the primary."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import psycopg

from holdfast.core.row import Instant
from holdfast.store.contract import Clock
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection
from holdfast.store.sql_reader import SqlReader


class PostgresReader(SqlReader):
    """Single statements; each sees all that was committed before it."""

    queries = queries

    def __init__(self, connection: Connection, clock: Clock | None) -> None:
        self._connection = connection
        self.now: Instant = self.value(queries.NOW, None if clock is None else clock())

    def look(self, query: str, *arguments: Any) -> psycopg.Cursor[tuple[Any, ...]]:
        """Say one statement."""
        return self._connection.execute(query, arguments)

    def together(self) -> AbstractContextManager[object]:
        """What is said inside is one transaction."""
        return self._connection.transaction()

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return int(self.value(queries.NEXT_TOKEN))
