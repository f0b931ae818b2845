"""The header of a backup: one row that says what the file is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.backup.endpoint import CopyRefused
from holdfast.backup.sqlite import SqliteEndpoint, open_file, tables_of
from holdfast.core.row import Instant
from holdfast.store.sql.migrations import BACKUP

_CREATE = f"CREATE TABLE {BACKUP} (id INTEGER PRIMARY KEY CHECK (id = 1), header TEXT NOT NULL) STRICT"


class Header(msgspec.Struct, frozen=True):
    """When, from what, and how much."""

    taken_at: Instant
    """By the wall clock of the machine that took it."""
    source: str
    """sqlite or postgres."""
    schema: int
    token: int
    """The newest that was granted."""
    counts: dict[str, int]
    """Records a table."""
    logs: dict[str, int]
    """The last event of each account."""


def describe(side: SqliteEndpoint, *, taken_at: Instant, source: str) -> Header:
    """What a file holds."""
    return Header(
        taken_at=taken_at,
        source=source,
        schema=int(side.connection.pragma("user_version")),
        token=side.state()["token"],
        counts=count(side),
        logs=side.logs(),
    )


def count(side: SqliteEndpoint) -> dict[str, int]:
    """Records a table."""
    return {name: side.count(table) for name, table in sorted(side.tables.items())}


def write(connection: apsw.Connection, header: Header) -> None:
    """Make a file a backup."""
    connection.execute(_CREATE)
    connection.execute(f"INSERT INTO {BACKUP} VALUES (1, ?)", (msgspec.json.encode(header).decode(),))  # noqa: S608 - ours


def read(connection: apsw.Connection, path: Path) -> Header:
    """What a backup says of itself."""
    if BACKUP not in tables_of(connection, path):
        raise CopyRefused(f"{path} is no backup: `holdfast backup` makes them")
    row: Any = connection.execute(f"SELECT header FROM {BACKUP}").fetchone()  # noqa: S608 - ours
    return msgspec.json.decode(row[0], type=Header)


def refuse_store(path: Path) -> None:
    """A backup may take the place of another, or of any file, but not of a store."""
    if not path.exists():
        return
    with closing(open_file(path, read_only=True)) as connection:
        try:
            found = tables_of(connection, path)
        except CopyRefused:
            return  # no database at all
    if found and BACKUP not in found:
        raise CopyRefused(f"{path} is a store, or belongs to another program: a backup does not take its place")


def remove(connection: apsw.Connection) -> None:
    """Make it a store again."""
    connection.execute(f"DROP TABLE {BACKUP}")
