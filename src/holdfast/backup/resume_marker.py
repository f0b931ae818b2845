"""The progress of a copy into PostgreSQL: a table that exists until the copy is complete, and keeps servers out."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.backup.endpoint import CopyRefused, Record, Table
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.postgres_target import store_tables
from holdfast.decoding import decode
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection
from holdfast.store.postgres.durability import durable_transaction
from holdfast.store.postgres.store import MIGRATION_LOCK, migrate_schema
from holdfast.store.sql.migrations import COPY

_CREATE = f"CREATE TABLE {COPY} (id integer PRIMARY KEY CHECK (id = 1), stamp text NOT NULL, place text NOT NULL)"
_INSERT = f"INSERT INTO {COPY} VALUES (1, %s, %s)"
_SELECT = f"SELECT stamp, place FROM {COPY} FOR UPDATE"
_UPDATE = f"UPDATE {COPY} SET stamp = %s, place = %s"


class Position(msgspec.Struct, frozen=True):
    """The last record copied; empty at the beginning."""

    table: str = ""
    key: list[Any] = []
    done: int = 0


class ResumeMarker:
    """A copy under way. `stamp` identifies the state of the source; if it differs, the copy begins again."""

    def __init__(self, connection: Connection, stamp: str) -> None:
        self._connection = connection
        self._stamp = stamp
        self.position = Position()

    def begin(self) -> None:
        """Make the schema and the marker in one transaction, or read how far an earlier run has come."""
        with durable_transaction(self._connection):
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
            if COPY in {name for (name,) in self._connection.execute(queries.TABLES)}:
                self._resume()
                return
            migrate_schema(self._connection)
            endpoint = PostgresEndpoint(self._connection)
            if endpoint.has_records(store_tables(endpoint)):
                raise CopyRefused("the database already holds a store: migrate into an empty database")
            self._connection.execute(_CREATE)
            self._connection.execute(_INSERT, (self._stamp, _encode_position(self.position)))

    def _resume(self) -> None:
        stamp, position = next(iter(self._connection.execute(_SELECT)))
        if stamp == self._stamp:
            self.position = decode(position, Position)
            return
        endpoint = PostgresEndpoint(self._connection)
        endpoint.disable_timeouts()
        endpoint.clear(store_tables(endpoint))
        self._connection.execute(_UPDATE, (self._stamp, _encode_position(self.position)))

    def put(self, endpoint: PostgresEndpoint, table: Table, records: list[Record]) -> None:
        """Write one page and the progress in one transaction."""
        position = Position(table.name, list(table.key_of(records[-1])), self.position.done + len(records))
        with durable_transaction(self._connection):
            found = next(iter(self._connection.execute(_SELECT)), None)
            if found != (self._stamp, _encode_position(self.position)):
                raise CopyRefused("another process is copying into this database")
            endpoint.put(table, records)
            self._connection.execute(_UPDATE, (self._stamp, _encode_position(position)))
        self.position = position

    def discard(self) -> None:
        """Mark the copied records as wrong, so that the next run begins again."""
        self._connection.execute(_UPDATE, ("", _encode_position(Position())))

    def finish(self, endpoint: PostgresEndpoint, state: dict[str, Any]) -> None:
        """Set the state and drop the marker, which makes the database a store."""
        with durable_transaction(self._connection):
            endpoint.put_state(state)
            self._connection.execute(f"DROP TABLE {COPY}")


def _encode_position(position: Position) -> str:
    return msgspec.json.encode(position).decode()
