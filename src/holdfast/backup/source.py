"""Where copies come from, by the address of a store: one moment of it, whoever writes meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import apsw

from holdfast.backup.endpoint import CopyRefused, Endpoint, Tell
from holdfast.backup.sqlite import SqliteEndpoint, alone_with, copy_pages, looking, tables_of
from holdfast.settings import Settings, sqlite_path
from holdfast.store.sql import migrations

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
        migrations.check_is_store(tables_of(connection, path))
        check_schema(int(connection.pragma("user_version")), SQLITE, str(path))
        self.side = SqliteEndpoint(connection)

    def write(self, path: Path, tell: Tell) -> None:
        """Page by page."""
        copy_pages(self.side.connection, path, tell)


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
    from holdfast.backup.postgres_source import database_source

    with database_source(settings, alone=alone) as source:
        yield source
