"""A PostgreSQL database as the target of a restore: filled in one transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import apsw

from holdfast.backup.copy import copy, shared_tables
from holdfast.backup.endpoint import CopyRefused, OnProgress, Table
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.replaced_store import read_keys
from holdfast.backup.sqlite import SqliteEndpoint
from holdfast.core.row import SECOND, Instant
from holdfast.settings import Settings
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres.connection import connect
from holdfast.store.postgres.durability import durable_transaction
from holdfast.store.postgres.errors import translate_errors
from holdfast.store.sql import migrations

CLOCK_SLACK = 2 * SECOND


class PostgresTarget:
    """A locked database that no server uses, and the counters and keys of the store that it has now."""

    def __init__(self, endpoint: PostgresEndpoint, tables: list[Table]) -> None:
        self._endpoint = endpoint
        self._tables = tables
        state = endpoint.state()
        self.token: int = state["token"]
        self.logs = endpoint.logs()
        self.keys = read_keys(endpoint)

    def clear(self, *, replace: bool) -> None:
        """With `replace`, delete what is there; otherwise refuse if there is anything."""
        if self._endpoint.has_records(self._tables):
            if not replace:
                raise CopyRefused("the database already holds a store: use --replace to overwrite it")
            self._endpoint.clear(self._tables)

    def fill(self, source: SqliteEndpoint, report: OnProgress) -> list[str]:
        """Copy everything into it; returns the records that it refuses."""
        wait_for_clock(self._endpoint, source.state()["now"])
        copy(source, self._endpoint, shared_tables(source, self._endpoint), report)
        return self._endpoint.left_out


@contextmanager
def open_target(settings: Settings, *, replace: bool) -> Iterator[PostgresTarget]:
    """A database to fill; leaving normally commits, leaving in any other way changes nothing."""
    with translate_errors(), connect(settings.store, pooled=settings.postgres_pooled) as connection:
        if not settings.postgres_pooled:
            # A pooler keeps idle connections open: behind one, only the operator knows that the servers are stopped.
            PostgresEndpoint(connection).refuse_other_connections()
        pooled, durable_storage = settings.postgres_pooled, settings.postgres_durable_storage
        store = PostgresStore(settings.store, pooled=pooled, durable_storage=durable_storage)
        store.open()
        store.close()
        with durable_transaction(connection):
            endpoint = PostgresEndpoint(connection)
            endpoint.disable_timeouts()
            tables = store_tables(endpoint)
            endpoint.lock(tables)
            if not pooled:
                endpoint.refuse_other_connections()  # again: nobody who has connected since is granted anything now
            database = PostgresTarget(endpoint, tables)
            database.clear(replace=replace)
            yield database


def store_tables(endpoint: PostgresEndpoint) -> list[Table]:
    """The tables of a store, in a database that may have others as well."""
    with closing(apsw.Connection(":memory:")) as connection:
        for _, script in migrations.pending("holdfast.store.sqlite", 0):
            connection.execute(script)
        return shared_tables(SqliteEndpoint(connection), endpoint)


def wait_for_clock(endpoint: PostgresEndpoint, now: Instant) -> None:
    """Wait until the database's clock has reached the source's, because the clock of a store never goes back."""
    behind = now - endpoint.now()
    if behind > CLOCK_SLACK:
        raise CopyRefused(f"the database's clock is {behind // SECOND} s behind the store's: correct it first")
    time.sleep(max(behind, 0) / SECOND)
