"""A look at the file: one snapshot, beside the writer and never in its way."""

from __future__ import annotations

from typing import Any

import apsw

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.store.contract import Clock, Counts
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import queries
from holdfast.store.sqlite.transaction import from_columns, now_by
from holdfast.store.view import after_prefix


class SqliteReader:
    """Between BEGIN and the end of the look."""

    def __init__(self, connection: apsw.Connection, clock: Clock | None) -> None:
        self._execute = connection.execute
        state: Any = self._execute(queries.STATE).fetchone()
        self._token: int
        self._token, now, boot_id, boot_at = state
        self.now: Instant = now_by(clock, clocks.Mark(now, boot_id, boot_at), clocks.read())

    def fetch(self, query: str, *arguments: Any) -> tuple[Any, ...] | None:
        """The first row of an answer."""
        row: tuple[Any, ...] | None = self._execute(query, arguments).fetchone()
        return row

    def _count(self, query: str, *arguments: Any) -> int:
        row: Any = self._execute(query, arguments).fetchone()
        return int(row[0])

    def lease(self, account: str, name: str) -> Lease | None:
        """The row of a name."""
        row = self.fetch(queries.LEASE_BY_KEY, account, name)
        return None if row is None else from_columns(Lease, row)

    def session(self, account: str, session_id: str) -> Session | None:
        """The row of a session."""
        row = self.fetch(queries.SESSION_BY_KEY, account, session_id)
        return None if row is None else Session(*row)

    def leases(self, account: str, prefix: str, after: str, limit: int) -> list[Lease]:
        """Live leases by name."""
        found = self._execute(queries.LIST_LEASES, (account, after, prefix, after_prefix(prefix), self.now, limit))
        return [from_columns(Lease, row) for row in found]

    def count_of_session(self, account: str, session_id: str) -> int:
        """How many leases carry this session."""
        return self._count(queries.COUNT_OF_SESSION, account, session_id)

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return self._token + 1

    def counts(self, account: str) -> Counts:
        """Totals for the status page."""
        live = self._count(queries.COUNT_LIVE, account, self.now)
        return Counts(live, self._count(queries.COUNT_PRINCIPALS, account))

    def principal(self, key_hash: str) -> Principal | None:
        """Whom a credential stands for."""
        row = self.fetch(queries.PRINCIPAL_BY_KEY, key_hash)
        return None if row is None else Principal(*row)

    def principals(self, account: str) -> list[Principal]:
        """Everybody with a credential."""
        return [Principal(*row) for row in self._execute(queries.LIST_PRINCIPALS, (account,))]

    def due(self, limit: int) -> list[Key]:
        """Rows whose time has run out."""
        return [(table, account, row_id) for table, account, row_id, _ in self._execute(queries.DUE, (self.now, limit))]

    def next_deadline(self) -> Instant | None:
        """When the next row's time runs out."""
        row = self.fetch(queries.NEXT_DEADLINE)
        return None if row is None else row[0]

    def jobs_live_at(self, instant: Instant) -> list[Key]:
        """Jobs live at a moment."""
        return [(Lease.table, account, name) for account, name in self._execute(queries.JOBS_LIVE_AT, (instant,))]

    def events(self, account: str, after: int, limit: int) -> list[Event]:
        """The log from a cursor on."""
        return [Event(*row) for row in self._execute(queries.EVENTS, (account, after, limit))]

    def history(self, account: str, subject: str) -> list[Event]:
        """All events of one subject."""
        return [Event(*row) for row in self._execute(queries.HISTORY, (account, subject))]
