"""The source of a copy, by the address of a store: one snapshot, while servers may write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import apsw

from holdfast.backup.endpoint import CopyRefused, Endpoint, OnProgress
from holdfast.backup.sqlite import SqliteEndpoint, copy_pages, open_exclusively, open_snapshot, read_table_names
from holdfast.settings import Settings, sqlite_path
from holdfast.store.sql import migrations

SQLITE = "holdfast.store.sqlite"


class Source(Protocol):
    """A snapshot of a store."""

    @property
    def endpoint(self) -> Endpoint:
        """Its tables."""

    def write(self, path: Path, report: OnProgress) -> list[str]:
        """Copy everything into an empty file; returns the records that it cannot hold."""


class SqliteSource:
    """An SQLite file as the source of a copy."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        migrations.check_is_store(read_table_names(connection, path))
        check_schema(int(connection.pragma("user_version")), SQLITE, str(path))
        self.endpoint = SqliteEndpoint(connection)

    def write(self, path: Path, report: OnProgress) -> list[str]:
        """Copy page by page."""
        copy_pages(self.endpoint.connection, path, report)
        return []


def check_schema(schema: int, package: str, name: str) -> None:
    """Refuse a schema other than the newest: a copy has exactly the tables that this Holdfast knows."""
    if schema == 0:
        raise CopyRefused(f"{name} is not a store")
    if migrations.pending(package, schema):
        raise CopyRefused(f"{name} has the schema of an older Holdfast: run `holdfast verify` to update it")


@contextmanager
def open_source(settings: Settings, *, exclusive: bool = False) -> Iterator[Source]:
    """The store at an address. `exclusive` refuses a store in use, and keeps others from opening it meanwhile."""
    if settings.store == "memory:":
        raise CopyRefused("an in-memory store ends with its process: there is nothing to copy")
    if settings.store.startswith("sqlite:///"):
        path = sqlite_path(settings.store)
        with (open_exclusively if exclusive else open_snapshot)(path) as file:
            yield SqliteSource(file, path)
        return
    from holdfast.backup.postgres_source import open_postgres_source

    with open_postgres_source(settings, exclusive=exclusive) as source:
        yield source
