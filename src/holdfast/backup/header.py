"""The header of a backup: one row that describes the file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from holdfast.backup.endpoint import CopyRefused
from holdfast.backup.schema_check import CREATE_HEADER, check_backup_schema
from holdfast.backup.sqlite import SqliteEndpoint, open_file, read_table_names
from holdfast.core.row import Instant
from holdfast.decoding import decode
from holdfast.store.sql.migrations import BACKUP


class Header(msgspec.Struct, frozen=True):
    """When a backup was taken, of which kind of store, and what it contains."""

    taken_at: Instant
    """By the wall clock of the machine that took it."""
    source: str
    """sqlite or postgres."""
    schema: int
    token: int
    """The newest token granted."""
    counts: dict[str, int]
    """Number of records by table."""
    logs: dict[str, int]
    """The last event of each account."""
    damaged: list[str] = []
    """Rows that cannot be used, and rows that could not be copied: table, key and what is wrong."""


def describe(endpoint: SqliteEndpoint, *, taken_at: Instant, source: str, damaged: list[str]) -> Header:
    """The header for a copied file."""
    return Header(
        taken_at=taken_at,
        source=source,
        schema=int(endpoint.connection.pragma("user_version")),
        token=endpoint.state()["token"],
        counts=count(endpoint),
        logs=endpoint.logs(),
        damaged=damaged,
    )


def count(endpoint: SqliteEndpoint) -> dict[str, int]:
    """Number of records by table."""
    return {name: endpoint.count(table) for name, table in sorted(endpoint.tables.items())}


def write(connection: apsw.Connection, header: Header) -> None:
    """Add the header, which makes the file a backup."""
    connection.execute(CREATE_HEADER)
    connection.execute(f"INSERT INTO {BACKUP} VALUES (1, ?)", (msgspec.json.encode(header).decode(),))


def read(connection: apsw.Connection, path: Path) -> Header:
    """The header of a backup."""
    if BACKUP not in read_table_names(connection, path):
        raise CopyRefused(f"{path} is not a backup made by `holdfast backup`")
    schema = check_backup_schema(connection, path)
    row: Any = connection.execute(f"SELECT header FROM {BACKUP}").fetchone()
    try:
        header = decode(row[0], Header)
    except (TypeError, msgspec.MsgspecError) as error:
        raise CopyRefused(f"{path} has no valid header: it is damaged") from error
    if header.schema != schema:
        raise CopyRefused(f"{path} does not match its header: it is damaged")
    return header


def refuse_store(path: Path) -> None:
    """Refuse to overwrite a store or another database; a backup, or a file that is no database, may be overwritten."""
    if not path.exists():
        return
    with closing(open_file(path, read_only=True)) as connection:
        try:
            found = read_table_names(connection, path)
        except CopyRefused:
            return  # not a database
    if found and BACKUP not in found:
        raise CopyRefused(f"{path} is a store, or belongs to another program: a backup never overwrites it")


def remove(connection: apsw.Connection) -> None:
    """Remove the header, which makes the file a store again."""
    connection.execute(f"DROP TABLE {BACKUP}")
