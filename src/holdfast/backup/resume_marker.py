"""How far a copy into PostgreSQL has come: a table that is there until the end, and that keeps every server out."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.backup.database import our_tables
from holdfast.backup.endpoint import CopyRefused, Record, Table
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection
from holdfast.store.postgres.store import MIGRATION_LOCK, migrate_schema
from holdfast.store.sql.migrations import COPY

_CREATE = f"CREATE TABLE {COPY} (id integer PRIMARY KEY CHECK (id = 1), stamp text NOT NULL, place text NOT NULL)"
_INSERT = f"INSERT INTO {COPY} VALUES (1, %s, %s)"  # noqa: S608 - our own name
_LOOK = f"SELECT stamp, place FROM {COPY} FOR UPDATE"  # noqa: S608 - our own name
_NOTE = f"UPDATE {COPY} SET stamp = %s, place = %s"  # noqa: S608 - our own name


class Place(msgspec.Struct, frozen=True):
    """The last record that was copied; at the beginning there is none."""

    table: str = ""
    key: list[Any] = []
    done: int = 0


class ResumeMarker:
    """A copy under way. `stamp` names the moment of the source: another one means to begin again."""

    def __init__(self, connection: Connection, stamp: str) -> None:
        self._connection = connection
        self._stamp = stamp
        self.place = Place()

    def begin(self) -> None:
        """Make the schema and the mark in one transaction, or find how far an earlier run has come."""
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            if COPY in {name for (name,) in self._connection.execute(queries.TABLES)}:
                self._go_on()
                return
            migrate_schema(self._connection)
            side = PostgresEndpoint(self._connection)
            if side.holds_anything(our_tables(side)):
                raise CopyRefused("the database holds a store already: a store is migrated into an empty one")
            self._connection.execute(_CREATE)
            self._connection.execute(_INSERT, (self._stamp, _text(self.place)))

    def _go_on(self) -> None:
        stamp, place = next(iter(self._connection.execute(_LOOK)))
        if stamp == self._stamp:
            self.place = msgspec.json.decode(place, type=Place)
            return
        side = PostgresEndpoint(self._connection)
        side.be_patient()
        side.clear(our_tables(side))
        self._connection.execute(_NOTE, (self._stamp, _text(self.place)))

    def put(self, side: PostgresEndpoint, table: Table, records: list[Record]) -> None:
        """One page and how far it brings us: both, or neither."""
        place = Place(table.name, list(table.key_of(records[-1])), self.place.done + len(records))
        with self._connection.transaction():
            found = next(iter(self._connection.execute(_LOOK)), None)
            if found != (self._stamp, _text(self.place)):
                raise CopyRefused("somebody else is copying into this database just now")
            side.put(table, records)
            self._connection.execute(_NOTE, (self._stamp, _text(place)))
        self.place = place

    def spoil(self) -> None:
        """What was copied cannot be trusted: the next run begins again."""
        self._connection.execute(_NOTE, ("", _text(Place())))

    def finish(self, side: PostgresEndpoint, state: dict[str, Any]) -> None:
        """From here on it is a store."""
        with self._connection.transaction():
            side.put_state(state)
            self._connection.execute(f"DROP TABLE {COPY}")


def _text(place: Place) -> str:
    return msgspec.json.encode(place).decode()
