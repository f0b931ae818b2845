"""One batch on the file: load what it needs, save what it did. The file's write lock is held throughout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count
from typing import Any

import apsw
import msgspec
from msgspec.structs import astuple, replace

from holdfast.core.errors import OutcomeUnknown
from holdfast.core.lease import Lease
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.store.contract import Clock
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import queries
from holdfast.store.view import ROW_TYPES, AllNeeds, Answer, Changes, View

MOST_AT_ONCE = 64

_encode = msgspec.json.Encoder().encode
_DECODERS: dict[type[Row], Any] = {row: msgspec.json.Decoder(list[row]).decode for row in ROW_TYPES}  # type: ignore[valid-type]
_EPHEMERAL = Lease.__struct_fields__.index("ephemeral")


class SqliteTransaction:
    """Between BEGIN IMMEDIATE and COMMIT."""

    def __init__(self, connection: apsw.Connection, clock: Clock | None) -> None:
        self._execute = connection.execute
        state: Any = self._execute(queries.STATE).fetchone()
        self._token: int
        self._token, now, boot_id, boot_at = state
        self._reading = clocks.read()
        self.now: Instant = now_by(clock, clocks.Mark(now, boot_id, boot_at), self._reading)
        self._saved = False

    def load(self, needs: AllNeeds) -> View:
        """Everything the batch needs."""
        rows: dict[Key, Row] = {}
        for row_type in ROW_TYPES:
            keys = [key[1:] for key in needs.rows if key[0] == row_type.table]
            self._add(rows, row_type, queries.ROW_BY_KEY[row_type.table], keys)
        self._add(rows, Lease, queries.LEASES_OF_SESSION, needs.session_leases)
        carried = {(row.account, row.session) for row in rows.values() if isinstance(row, Lease) and row.session}
        self._add(rows, Session, queries.ROW_BY_KEY[Session.table], list(carried))
        return View(
            self.now,
            rows.values(),
            locks_of={owner: self._value(queries.LIVE_LOCKS, (*owner, self.now)) for owner in needs.locks_of},
            rooms={account: self._value(queries.LIVE_ROOMS, (account, self.now)) for account in needs.rooms},
            answers=[Answer(*found) for key in needs.answers for found in self._execute(queries.ANSWER, key)],
        )

    def _add(self, rows: dict[Key, Row], row_type: type[Row], query: str, keys: list[Any]) -> None:
        """Add the rows that a list of keys finds, all in one call."""
        if keys:
            found: Any = self._execute(query, (_encode(keys).decode(),)).fetchone()
            rows.update((row.key, row) for row in _DECODERS[row_type](found[0]))

    def draw(self, count: int) -> list[int]:
        """Fencing tokens; the counter is saved with the state row."""
        first = self._token + 1
        self._token += count
        return list(range(first, first + count))

    def save(self, changes: Changes) -> None:
        """All rows that changed, their events and the remembered answers."""
        for row_type in ROW_TYPES:
            self._write(partial(queries.insert_row, row_type), changes.inserts.get(row_type.table, []))
            self._write(partial(queries.update_row, row_type), changes.updates.get(row_type.table, []))
        self._write(queries.insert_answer, changes.answers)
        self._save_events(changes)
        self._save_state()

    def commit(self) -> None:
        """COMMIT, which flushes; what saved nothing leaves no trace."""
        if not self._saved:
            self._execute("ROLLBACK")
            return
        try:
            self._execute("COMMIT")
        except apsw.IOError as error:  # the log may hold the batch, flushed or not
            raise OutcomeUnknown("the disk failed while the change was being committed") from error

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
        numbered = [replace(event, seq=next(following[event.account])) for event in changes.events]
        self._write(queries.insert_event, numbered)

    def _write(self, statement: Callable[[int], str], records: Sequence[Any]) -> None:
        """All records in few statements, of sizes that come again, so that SQLite need not parse them anew."""
        place, size = 0, MOST_AT_ONCE
        while place < len(records):
            while size > len(records) - place:
                size //= 2
            self._execute(statement(size), [*chain.from_iterable(map(astuple, records[place : place + size]))])
            place += size

    def _save_state(self) -> None:
        self._execute(queries.SAVE_STATE, (self._token, self.now, self._reading.boot_id, self._reading.boot_at))
        self._saved = True

    def _value(self, query: str, arguments: tuple[Any, ...]) -> int:
        row: Any = self._execute(query, arguments).fetchone()
        return int(row[0])


def sync_failed(error: apsw.IOError) -> bool:
    """Whether the disk could not flush, after which nothing it says can be trusted."""
    return getattr(error, "extendedresult", 0) in {apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC}


def now_by(clock: Clock | None, mark: clocks.Mark, reading: clocks.Reading) -> Instant:
    """The file's time: by its own clock, or by one given from outside; never before the last commit."""
    return clocks.advance(mark, reading) if clock is None else max(clock(), mark.now)


def from_columns(row_type: type[Any], columns: tuple[Any, ...]) -> Any:
    """A row as SQLite gives it, which has no booleans of its own."""
    if row_type is Lease:
        columns = (*columns[:_EPHEMERAL], bool(columns[_EPHEMERAL]), *columns[_EPHEMERAL + 1 :])
    return row_type(*columns)
