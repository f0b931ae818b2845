"""Where copies come from, by the address of a store: one moment of it, whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import apsw

from holdfast.backup.copy import copy, shared_tables
from holdfast.backup.endpoint import CopyRefused, Endpoint, Tell
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.sqlite import SqliteEndpoint, alone_with, copy_pages, looking, tables_of
from holdfast.settings import Settings, sqlite_path
from holdfast.store import migrations
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection, connect, translated
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.store import connect as connect_file

POSTGRES = "holdfast.store.postgres"
SQLITE = "holdfast.store.sqlite"


class Source(Protocol):
    """One moment of a store."""

    @property
    def side(self) -> Endpoint:
        """Its tables."""

    def write(self, path: Path, tell: Tell) -> None:
        """Everything, into an empty file."""


class FileSource:
    """An SQLite file."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        migrations.refuse(tables_of(connection, path))
        check_schema(int(connection.pragma("user_version")), SQLITE, str(path))
        self.side = SqliteEndpoint(connection)

    def write(self, path: Path, tell: Tell) -> None:
        """Page by page."""
        copy_pages(self.side.connection, path, tell)


class DatabaseSource:
    """A PostgreSQL database."""

    def __init__(self, connection: Connection) -> None:
        tables = {str(name) for (name,) in connection.execute(queries.TABLES)}
        migrations.refuse(tables)
        schema = 0
        if "schema_version" in tables:
            row = connection.execute("SELECT coalesce(max(number), 0) FROM schema_version").fetchone()
            schema = int(row[0]) if row else 0
        check_schema(schema, POSTGRES, "the database")
        self.side = PostgresEndpoint(connection)
        self.side.be_patient()

    def write(self, path: Path, tell: Tell) -> None:
        """Table by table, into a file that is prepared like any other."""
        empty = SqliteStore(path)
        empty.open()
        empty.close()
        with closing(connect_file(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            file = SqliteEndpoint(connection)
            copy(self.side, file, shared_tables(file, self.side), tell)
            connection.execute("COMMIT")


def check_schema(schema: int, package: str, name: str) -> None:
    """A copy has the tables that this Holdfast knows: no others, and no fewer."""
    if schema == 0:
        raise CopyRefused(f"{name} holds no store")
    if migrations.pending(package, schema):
        raise CopyRefused(f"{name} has the schema of an older Holdfast: `holdfast verify` brings it up to date")


@contextmanager
def source_of(settings: Settings, *, alone: bool = False) -> Iterator[Source]:
    """What an address names. `alone` refuses a store that somebody serves, and keeps it closed meanwhile."""
    if settings.store == "memory:":
        raise CopyRefused("a store in memory is gone with its process: there is nothing to copy")
    if settings.store.startswith("sqlite:///"):
        path = sqlite_path(settings.store)
        with (alone_with if alone else looking)(path) as file:
            yield FileSource(file, path)
        return
    with translated(), connect(settings.store, pooled=settings.postgres_pooled) as connection:
        connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ {'READ WRITE' if alone else 'READ ONLY'}")
        if alone:
            # The snapshot is taken after this: nothing is written to the log behind its back.
            connection.execute("LOCK TABLE events, event_counters IN SHARE MODE")
        source = DatabaseSource(connection)
        if alone:
            source.side.refuse_company()
        yield source
        connection.execute("ROLLBACK")
