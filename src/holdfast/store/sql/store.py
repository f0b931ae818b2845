"""Housekeeping of the stores on SQLite and PostgreSQL: small writes outside of batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import msgspec
from msgspec.structs import astuple

from holdfast.core.browser_session import BrowserSession
from holdfast.core.budget import Budget, Terms, lend
from holdfast.core.row import Instant
from holdfast.store.contract import Rerun
from holdfast.store.contract.housekeeping import ERASED_AT_ONCE
from holdfast.store.damaged_rows import TABLES, DamagedRows
from holdfast.store.sql import migrations, queries
from holdfast.store.sql.deliveries import SqlDeliveries
from holdfast.store.sql.reader import SqlReader
from holdfast.store.sql.rollups import SqlRollups

CHECKED_AT_ONCE = 1_000
MAX_NUMBER = 2**62

Execute = Callable[..., list[tuple[Any, ...]]]
"""Execute a statement with its arguments and fetch the result."""


class SqlStore(ABC):
    """A store on a database."""

    dialect: ModuleType
    """The statements that only this database understands."""
    package: str
    """The package that has its migrations."""

    def __init__(self) -> None:
        self.damaged_rows = DamagedRows()
        self.deliveries = SqlDeliveries(self)
        self.rollups = SqlRollups(self)

    @abstractmethod
    def read(self) -> AbstractContextManager[SqlReader]:
        """Begin reading the committed state."""

    @abstractmethod
    def write(self) -> AbstractContextManager[tuple[Execute, Instant]]:
        """Begin a transaction outside of batches; yields (execute, time). It commits when left normally."""

    def beat(self) -> tuple[Instant | None, Instant]:
        """Record that a server uses the database now."""
        with self.write() as (execute, now):
            before = execute(queries.LAST_BEAT)
            execute(queries.BEAT, now)
        return (before[0][0] if before else None), now

    def last_beat(self) -> tuple[Instant, Instant] | None:
        """When a server last used this database, and now."""
        with self.read() as reader:
            (alive_at,) = next(iter(reader.execute(queries.LAST_BEAT)), (None,))
            return None if alive_at is None else (alive_at, reader.now)

    def check_minimum_schema(self) -> None:
        """Raise ServerOutdated if the store now needs a newer Holdfast than this one."""
        with self.read() as reader:
            ((minimum,),) = reader.execute(queries.MINIMUM_SCHEMA)
        migrations.check_minimum(self.package, minimum)

    def close_outage(self, last_beat: Instant) -> None:
        """Record that grace was given after this beat."""
        with self.write() as (execute, _):
            execute(queries.CLOSE_OUTAGE, last_beat)

    def check_other_records(self) -> None:
        """Read all answers, deliveries and browser sessions, page by page."""
        for record_type, query in queries.ALL_AFTER.items():
            _, key = TABLES[record_type]
            positions = [record_type.__struct_fields__.index(column) for column in key]
            after: tuple[Any, ...] | None = tuple(-MAX_NUMBER if column == "seq" else "" for column in key)
            while after is not None:
                with self.read() as reader:
                    found = list(reader.execute(query, *after, CHECKED_AT_ONCE))
                self.damaged_rows.decode(record_type, found)
                last = found[-1] if len(found) == CHECKED_AT_ONCE else None
                after = None if last is None else tuple(last[position] for position in positions)

    def forget_answers(self, before: Instant, limit: int = 1_000) -> int:
        """Delete old answers."""
        old = self.dialect.first_rows("answers", queries.OLD_ANSWERS)
        with self.write() as (execute, _):
            return len(execute(f"DELETE FROM answers WHERE {old} RETURNING 1", before, limit))

    def forget_events(self, account: str, floor: int) -> None:
        """Delete the oldest events of an account, in slices.

        The counter, for which all writers of the account wait, is locked only before the first slice. If this is
        interrupted, the next call deletes what is left: readers begin at the floor already.
        """
        with self.write() as (execute, _):
            execute(queries.RAISE_FLOOR, floor, account, floor)
        first = self.dialect.first_rows("events", queries.FORGOTTEN_EVENTS, "account, seq")
        deleted = ERASED_AT_ONCE
        while deleted == ERASED_AT_ONCE:
            with self.write() as (execute, _):
                deleted = len(execute(f"DELETE FROM events WHERE {first} RETURNING 1", account, floor, ERASED_AT_ONCE))

    def erase(self, account: str, limit: int = ERASED_AT_ONCE) -> bool:
        """Delete the first records of an account, table by table."""
        try:
            with self.write() as (execute, _):
                return self._erase_slice(execute, account, limit)
        except Rerun:  # a batch of another server met these rows: nothing was deleted
            return True

    def _erase_slice(self, execute: Execute, account: str, limit: int) -> bool:
        execute(queries.ALLOW_ERASING_EVENTS, account)
        for table, key in queries.ERASED:
            first = self.dialect.first_rows(table, "subject = ?" if table == "budgets" else "account = ?", key)
            limit -= len(execute(f"DELETE FROM {table} WHERE {first} RETURNING 1", account, limit))
            if limit <= 0:
                return True
        return False

    def borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        """Borrow a slice of a shared budget."""
        with self.write() as (execute, now):
            ((started_at, used),) = execute(queries.OPEN_BUDGET, subject, limit_class, now)
            budget = lend(started_at, used, terms, now)
            execute(queries.SAVE_BUDGET, budget.started_at, budget.used, subject, limit_class)
            return budget

    def save_key_uses(self, uses: dict[tuple[str, str], Instant]) -> None:
        """Save when keys were last used."""
        with self.write() as (execute, _):
            execute(queries.SAVE_KEY_USES, msgspec.json.encode([(*key, at) for key, at in uses.items()]).decode())

    def save_browser_session(self, browser_session: BrowserSession) -> None:
        """Insert a browser session."""
        with self.write() as (execute, _):
            execute(queries.SAVE_BROWSER_SESSION, *astuple(browser_session))
            same = (browser_session.key_hash, browser_session.kind)
            execute(queries.DELETE_SURPLUS_BROWSER_SESSIONS, *same, *same)

    def update_browser_session(self, session_id: str, seen_at: Instant) -> None:
        """Save when a browser session was last seen."""
        with self.write() as (execute, _):
            execute(queries.UPDATE_BROWSER_SESSION, seen_at, session_id, seen_at)

    def take_browser_session(self, session_id: str) -> BrowserSession | None:
        """Delete a browser session and return it; the caller that deletes the row gets it."""
        with self.write() as (execute, _):
            found = execute(queries.TAKE_BROWSER_SESSION, session_id)
            usable = self.damaged_rows.usable(BrowserSession, found)
            return usable[0] if usable else None

    def forget_browser_sessions(self) -> int:
        """Delete expired browser sessions and sign-in links."""
        with self.write() as (execute, now):
            return len(execute(queries.FORGET_BROWSER_SESSIONS, now, now, now))
