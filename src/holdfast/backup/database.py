"""A PostgreSQL database that is filled with a whole store, in one transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import apsw

from holdfast.backup.copy import copy, shared_tables
from holdfast.backup.endpoint import CopyRefused, Table, Tell
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.revoked import keys_of
from holdfast.backup.sqlite import SqliteEndpoint
from holdfast.core.row import SECOND, Instant
from holdfast.settings import Settings
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres.connection import connect, translate_errors
from holdfast.store.sql import migrations

CLOCK_SLACK = 2 * SECOND


class Database:
    """A database with nobody in it but us, and nothing in it that would be missed."""

    def __init__(self, side: PostgresEndpoint) -> None:
        self._side = side
        self._tables = our_tables(side)
        state = side.state()
        self.token: int = state["token"]
        self.logs = side.logs()
        self.keys = keys_of(side)

    def make_room(self, *, replace: bool) -> None:
        """Lock everything; what is there goes, if that was asked for."""
        self._side.lock(self._tables)
        if self._side.holds_anything(self._tables):
            if not replace:
                raise CopyRefused("the database holds a store already: --replace takes its place")
            self._side.clear(self._tables)

    def fill(self, source: SqliteEndpoint, tell: Tell) -> None:
        """Copy everything into it."""
        wait_for_clock(self._side, source.state()["now"])
        copy(source, self._side, shared_tables(source, self._side), tell)


@contextmanager
def filling(settings: Settings, *, replace: bool) -> Iterator[Database]:
    """A database to fill; leaving normally commits, leaving in any other way leaves it as it was."""
    with translate_errors(), connect(settings.store, pooled=settings.postgres_pooled) as connection:
        if not settings.postgres_pooled:
            # A pooler keeps connections that nobody uses: behind one, stopping the servers is the operator's to know.
            PostgresEndpoint(connection).refuse_company()
        store = PostgresStore(settings.store, pooled=settings.postgres_pooled)
        store.open()
        store.close()
        with connection.transaction():
            side = PostgresEndpoint(connection)
            side.be_patient()
            database = Database(side)
            database.make_room(replace=replace)
            yield database


def our_tables(side: PostgresEndpoint) -> list[Table]:
    """The tables of a store in a database where others may have theirs as well."""
    with closing(apsw.Connection(":memory:")) as connection:
        for _, script in migrations.pending("holdfast.store.sqlite", 0):
            connection.execute(script)
        return shared_tables(SqliteEndpoint(connection), side)


def wait_for_clock(side: PostgresEndpoint, now: Instant) -> None:
    """The clock of a store never goes back: the database's must have reached the time at which the source stood."""
    behind = now - side.now()
    if behind > CLOCK_SLACK:
        raise CopyRefused(f"the database's clock is {behind // SECOND} s behind the store's: set it right first")
    time.sleep(max(behind, 0) / SECOND)
