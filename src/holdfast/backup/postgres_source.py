"""A PostgreSQL database as the source of a copy: one snapshot, while servers may write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from holdfast.backup.copy import copy, shared_tables
from holdfast.backup.endpoint import OnProgress
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.source import check_schema
from holdfast.backup.sqlite import SqliteEndpoint
from holdfast.settings import Settings
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection, connect
from holdfast.store.postgres.errors import translate_errors
from holdfast.store.sql import migrations
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.store import connect as connect_file

POSTGRES = "holdfast.store.postgres"


class PostgresSource:
    """A PostgreSQL database."""

    def __init__(self, connection: Connection) -> None:
        tables = {str(name) for (name,) in connection.execute(queries.TABLES)}
        migrations.check_is_store(tables)
        schema = 0
        if "schema_version" in tables:
            row = connection.execute("SELECT coalesce(max(number), 0) FROM schema_version").fetchone()
            schema = int(row[0]) if row else 0
        check_schema(schema, POSTGRES, "the database")
        self.endpoint = PostgresEndpoint(connection)
        self.endpoint.disable_timeouts()

    def write(self, path: Path, report: OnProgress) -> list[str]:
        """Copy table by table into a new store file."""
        empty = SqliteStore(path)
        empty.open()
        empty.close()
        with closing(connect_file(path)) as connection:
            connection.pragma("ignore_check_constraints", 1)  # a state that does not exist is copied as it is
            connection.execute("BEGIN IMMEDIATE")
            file = SqliteEndpoint(connection)
            copy(self.endpoint, file, shared_tables(file, self.endpoint), report)
            connection.execute("COMMIT")
            return file.left_out


@contextmanager
def open_postgres_source(settings: Settings, *, exclusive: bool) -> Iterator[PostgresSource]:
    """The database that an address names; `exclusive` locks its log and refuses it while a server uses it."""
    with translate_errors(), connect(settings.store, pooled=settings.postgres_pooled) as connection:
        connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ {'READ WRITE' if exclusive else 'READ ONLY'}")
        if exclusive:
            # The snapshot is taken after this, so nothing is written to the log that it does not have.
            connection.execute("LOCK TABLE events, event_counters IN SHARE MODE")
        source = PostgresSource(connection)
        if exclusive:
            source.endpoint.refuse_other_connections()
        yield source
        connection.execute("ROLLBACK")
