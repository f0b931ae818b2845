"""One batch on the file: load what it needs, save what it did. The file's write lock is held throughout."""

from __future__ import annotations

from itertools import count
from typing import Any

import apsw
from msgspec.structs import astuple

from holdfast.core.lease import Lease
from holdfast.core.row import Instant, Row
from holdfast.core.session import Session
from holdfast.store.contract import Clock
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import queries
from holdfast.store.view import ROW_TYPES, AllNeeds, Answer, Changes, View

ROW_TYPE = {row.table: row for row in ROW_TYPES}
_EPHEMERAL = Lease.__struct_fields__.index("ephemeral")


class SqliteTransaction:
    """Between BEGIN IMMEDIATE and COMMIT."""

    def __init__(self, connection: apsw.Connection, clock: Clock | None) -> None:
        self._execute = connection.execute
        self._executemany = connection.executemany
        state: Any = self._execute(queries.STATE).fetchone()
        self._token: int
        self._token, now, boot_id, boot_at = state
        self._reading = clocks.read()
        self.now: Instant = now_by(clock, clocks.Mark(now, boot_id, boot_at), self._reading)
        self.saved = False

    def load(self, needs: AllNeeds) -> View:
        """Everything the batch needs."""
        rows: dict[tuple[str, str, str], Row] = {}
        for key in needs.rows:
            found = self._execute(queries.ROW_BY_KEY[key[0]], key[1:]).fetchone()
            if found is not None:
                rows[key] = from_columns(ROW_TYPE[key[0]], found)
        for owner in needs.session_leases:
            for found in self._execute(queries.LEASES_OF_SESSION, owner):
                lease = from_columns(Lease, found)
                rows[lease.key] = lease
        for row in [row for row in rows.values() if isinstance(row, Lease) and row.session is not None]:
            key = (Session.table, row.account, row.session or "")
            if key not in rows and (found := self._execute(queries.SESSION_BY_KEY, key[1:]).fetchone()):
                rows[key] = Session(*found)
        return View(
            self.now,
            rows.values(),
            locks_of={owner: self._value(queries.LIVE_LOCKS, (*owner, self.now)) for owner in needs.locks_of},
            rooms={account: self._value(queries.LIVE_ROOMS, (account, self.now)) for account in needs.rooms},
            answers=[Answer(*found) for key in needs.answers for found in self._execute(queries.ANSWER, key)],
        )

    def draw(self, count: int) -> list[int]:
        """Fencing tokens; the counter is saved with the state row."""
        first = self._token + 1
        self._token += count
        return list(range(first, first + count))

    def save(self, changes: Changes) -> None:
        """All rows that changed, their events and the remembered answers."""
        for table, rows in changes.inserts.items():
            self._executemany(queries.INSERT_ROW[table], map(astuple, rows))
        for table, rows in changes.updates.items():
            self._executemany(queries.UPDATE_ROW[table], map(astuple, rows))
        self._executemany(queries.INSERT_ANSWER, map(astuple, changes.answers))
        self._save_events(changes)
        self._save_state()

    def beat(self, *, clean: bool) -> None:
        """Write down that the file is served."""
        self._execute(queries.BEAT, (self.now, clean))
        self._save_state()

    def forget_answers(self, before: Instant) -> None:
        """Drop old answers."""
        self._execute(queries.FORGET_ANSWERS, (before,))
        self._save_state()

    def _save_events(self, changes: Changes) -> None:
        totals: dict[str, int] = {}
        for event in changes.events:
            totals[event.account] = totals.get(event.account, 0) + 1
        following = {
            account: count(self._value(queries.COUNT_EVENTS, (account, total)) - total + 1)
            for account, total in totals.items()
        }
        self._executemany(
            queries.INSERT_EVENT, ((*astuple(event)[:-1], next(following[event.account])) for event in changes.events)
        )

    def _save_state(self) -> None:
        self._execute(queries.SAVE_STATE, (self._token, self.now, self._reading.boot_id, self._reading.boot_at))
        self.saved = True

    def _value(self, query: str, arguments: tuple[Any, ...]) -> int:
        row: Any = self._execute(query, arguments).fetchone()
        return int(row[0])


def now_by(clock: Clock | None, mark: clocks.Mark, reading: clocks.Reading) -> Instant:
    """The file's time: by its own clock, or by one given from outside; never before the last commit."""
    return clocks.advance(mark, reading) if clock is None else max(clock(), mark.now)


def from_columns(row_type: type[Any], columns: tuple[Any, ...]) -> Any:
    """A row as SQLite gives it, which has no booleans of its own."""
    if row_type is Lease:
        columns = (*columns[:_EPHEMERAL], bool(columns[_EPHEMERAL]), *columns[_EPHEMERAL + 1 :])
    return row_type(*columns)
