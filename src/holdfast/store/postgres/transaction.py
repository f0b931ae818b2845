"""One batch on PostgreSQL, in two round trips: lock and load, then save and COMMIT.

READ COMMITTED with explicit row locks. The order of locks is the same in every batch: sessions, leases,
principals (each by account and id, bytewise), then a principal's right to count, then the event counters.
Rows that do not exist cannot be locked, so inserts that meet one made meanwhile run the batch again.
"""

from __future__ import annotations

from typing import Any

import msgspec
import psycopg
from msgspec.structs import replace

from holdfast.core.errors import OutcomeUnknown
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.store.contract import Clock
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection, is_broken, meaning
from holdfast.store.view import ROW_TYPES, AllNeeds, Answer, Changes, View

Cursor = psycopg.Cursor[tuple[Any, ...]]

_encode = msgspec.json.Encoder().encode
_DECODERS: dict[type[Row], Any] = {row: msgspec.json.Decoder(list[row]).decode for row in ROW_TYPES}  # type: ignore[valid-type]


class PostgresTransaction:
    """Between BEGIN and COMMIT on one connection."""

    def __init__(self, connection: Connection, clock: Clock | None) -> None:
        self._connection = connection
        self._clock = clock
        self._begun = False
        self._unconfirmed = False
        self._changes: Changes | None = None

    def load(self, needs: AllNeeds) -> View:
        """Lock and read everything in one round trip; the clock is read after the last lock is granted."""
        execute = self._connection.execute
        given = None if self._clock is None else self._clock()
        self._begun = True
        with self._connection.pipeline():
            execute(queries.BEGIN)
            found = self._lock_rows(needs)
            locks = [self._count_locks(owner, given) for owner in needs.locks_of]
            rooms = [execute(queries.LIVE_ROOMS, (account, given)) for account in needs.rooms]
            answers = execute(queries.ANSWER, _pairs(needs.answers)) if needs.answers else None
            clock = None if found and not locks else execute(queries.NOW, (given,))
        rows: dict[Key, Row] = {}
        now = self._gather(rows, found)
        carried = {(row.account, row.session) for row in rows.values() if isinstance(row, Lease) and row.session}
        if carried:
            pairs = _pairs(sorted(carried))
            now = self._gather(rows, [(Session, execute(queries.SESSIONS_OF_LEASES, pairs))])
        if clock is not None:  # read after the wait for the right to count
            now = max(now, _value(clock))
        return View(
            max([given or now, *(row.changed_at for row in rows.values())]),
            rows.values(),
            locks_of=dict(zip(needs.locks_of, map(_value, locks), strict=True)),
            rooms=dict(zip(needs.rooms, map(_value, rooms), strict=True)),
            answers=[Answer(*columns) for columns in answers or ()],
        )

    def _lock_rows(self, needs: AllNeeds) -> list[tuple[type[Row], Cursor]]:
        execute = self._connection.execute
        found: list[tuple[type[Row], Cursor]] = []
        for row_type in ROW_TYPES:
            keys = _pairs([key[1:] for key in needs.rows if key[0] == row_type.table])
            if row_type is Lease and needs.session_leases:
                found.append((Lease, execute(queries.LEASES_OF_SESSION, (*keys, *_pairs(needs.session_leases)))))
            elif keys[0]:
                found.append((row_type, execute(queries.ROW_BY_KEY[row_type.table], keys)))
        return found

    def _gather(self, rows: dict[Key, Row], found: list[tuple[type[Row], Cursor]]) -> Instant:
        """Add the rows that were found; the time at which the last of them was read."""
        now = 0
        for row_type, cursor in found:
            document, now = _first(cursor)
            rows.update((row.key, row) for row in _DECODERS[row_type](document))
        return now

    def _count_locks(self, owner: tuple[str, str], given: int | None) -> Cursor:
        self._connection.execute(queries.COUNT_ALONE, ("\x1f".join(owner),))
        return self._connection.execute(queries.LIVE_LOCKS, (*owner, given))

    def draw(self, count: int) -> list[int]:
        """Fencing tokens from the sequence, exactly as many as are granted."""
        return [token for (token,) in self._connection.execute(queries.DRAW, (count,))]

    def save(self, changes: Changes) -> None:
        """Kept aside: it travels together with COMMIT."""
        self._changes = changes

    def commit(self) -> None:
        """Save and COMMIT in one round trip."""
        if self._changes is None:
            if self._begun:
                self._connection.execute("ROLLBACK")
            return
        self._connection.add_notice_handler(self._heed)
        try:
            with self._connection.pipeline(), self._connection.cursor() as cursor:
                self._send(self._changes, cursor)
                cursor.execute("COMMIT")
        except psycopg.Error as error:
            if is_broken(self._connection):
                raise OutcomeUnknown("the connection broke while the change was being committed") from error
            raise meaning(error) from error
        finally:
            self._connection.remove_notice_handler(self._heed)
        if self._unconfirmed:
            raise OutcomeUnknown("the change is committed here, but no standby has confirmed it")

    def _heed(self, notice: psycopg.errors.Diagnostic) -> None:
        if "synchronous replication" in (notice.message_primary or ""):
            self._unconfirmed = True

    def _send(self, changes: Changes, cursor: Cursor) -> None:
        execute = cursor.execute
        for row_type in ROW_TYPES:
            if inserted := changes.inserts.get(row_type.table):
                execute(queries.INSERT_ROW[row_type.table], (_document(inserted), len(inserted)))
            if updated := changes.updates.get(row_type.table):
                versions = [changes.loaded[row.key] for row in updated]
                execute(queries.UPDATE_ROW[row_type.table], (_document(updated), versions, len(updated)))
        if changes.answers:
            execute(queries.INSERT_ANSWER, (_document(changes.answers), len(changes.answers)))
        if changes.events:
            execute(queries.INSERT_EVENT, (_document(_placed(changes.events)),))


def _placed(events: list[Event]) -> list[Event]:
    """Each event with its place among those of its account in this batch."""
    places: dict[str, int] = {}
    placed = []
    for event in events:
        places[event.account] = place = places.get(event.account, 0) + 1
        placed.append(replace(event, seq=place))
    return placed


def _document(records: list[Any]) -> str:
    return _encode(records).decode()


def _pairs(keys: list[Any]) -> tuple[list[str], list[str]]:
    return [key[0] for key in keys], [key[1] for key in keys]


def _first(cursor: Cursor) -> tuple[Any, ...]:
    row = cursor.fetchone()
    assert row is not None
    return row


def _value(cursor: Cursor) -> int:
    value: int = _first(cursor)[0]
    return value
