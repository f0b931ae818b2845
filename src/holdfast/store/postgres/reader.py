"""A look at PostgreSQL, always at the primary."""

from __future__ import annotations

from typing import Any

import psycopg

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.store.contract import Clock, Counts
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection
from holdfast.store.view import after_prefix


class PostgresReader:
    """Single statements; each sees all that was committed before it."""

    def __init__(self, connection: Connection, clock: Clock | None) -> None:
        self._connection = connection
        self.now: Instant = self._count(queries.NOW, None if clock is None else clock())

    def execute(self, query: str, arguments: tuple[Any, ...] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        """Say one statement."""
        return self._connection.execute(query, arguments)

    def _count(self, query: str, *arguments: Any) -> int:
        row = self.execute(query, arguments).fetchone()
        return 0 if row is None else int(row[0])

    def lease(self, account: str, name: str) -> Lease | None:
        """The row of a name."""
        row = self.execute(queries.LEASE_BY_KEY, (account, name)).fetchone()
        return None if row is None else Lease(*row)

    def session(self, account: str, session_id: str) -> Session | None:
        """The row of a session."""
        row = self.execute(queries.SESSION_BY_KEY, (account, session_id)).fetchone()
        return None if row is None else Session(*row)

    def leases(self, account: str, prefix: str, after: str, limit: int) -> list[Lease]:
        """Live leases by name."""
        end = after_prefix(prefix)
        found = self.execute(queries.LIST_LEASES, (account, after, prefix, end, end, self.now, limit))
        return [Lease(*row) for row in found]

    def count_of_session(self, account: str, session_id: str) -> int:
        """How many leases carry this session."""
        return self._count(queries.COUNT_OF_SESSION, account, session_id)

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return self._count(queries.NEXT_TOKEN)

    def counts(self, account: str) -> Counts:
        """Totals for the status page."""
        live = self._count(queries.COUNT_LIVE, account, self.now)
        return Counts(live, self._count(queries.COUNT_PRINCIPALS, account))

    def principal(self, key_hash: str) -> Principal | None:
        """Whom a credential stands for."""
        row = self.execute(queries.PRINCIPAL_BY_KEY, (key_hash,)).fetchone()
        return None if row is None else Principal(*row)

    def principals(self, account: str) -> list[Principal]:
        """Everybody with a credential."""
        return [Principal(*row) for row in self.execute(queries.LIST_PRINCIPALS, (account,))]

    def due(self, limit: int) -> list[Key]:
        """Rows whose time has run out."""
        found = self.execute(queries.DUE, (self.now, self.now, limit))
        return [(table, account, row_id) for table, account, row_id, _ in found]

    def next_deadline(self) -> Instant | None:
        """When the next row's time runs out."""
        row = self.execute(queries.NEXT_DEADLINE).fetchone()
        return None if row is None else row[0]

    def jobs_live_at(self, instant: Instant) -> list[Key]:
        """Jobs live at a moment."""
        return [(Lease.table, account, name) for account, name in self.execute(queries.JOBS_LIVE_AT, (instant,))]

    def events(self, account: str, after: int, limit: int) -> list[Event]:
        """The log from a cursor on."""
        return [Event(*row) for row in self.execute(queries.EVENTS, (account, after, limit))]

    def history(self, account: str, subject: str) -> list[Event]:
        """All events of one subject."""
        return [Event(*row) for row in self.execute(queries.HISTORY, (account, subject))]
