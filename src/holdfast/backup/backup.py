"""`holdfast backup`: one moment of a store as one file, taken while it is served."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from holdfast.backup import header as headers
from holdfast.backup.endpoint import CopyRefused, Tell
from holdfast.backup.files import placed
from holdfast.backup.header import Header
from holdfast.backup.source import source_of
from holdfast.backup.sqlite import SqliteEndpoint, seal
from holdfast.engine.verify import verify
from holdfast.settings import Settings
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.store import connect

SHOWN = 5


def backup(settings: Settings, path: Path, tell: Tell, *, replace: bool = False, check: bool = True) -> Header:
    """Write a backup. It has its name only when it is complete and, unless told otherwise, proved to be sound."""
    if replace:
        headers.refuse_store(path)
    with source_of(settings) as source, placed(path, replace=replace) as partial:
        taken_at = time.time_ns() // 1000
        source.write(partial, tell)
        if check:
            check_sound(partial, tell)
        with closing(connect(partial)) as connection:
            name = "sqlite" if settings.store.startswith("sqlite:") else "postgres"
            header = headers.describe(SqliteEndpoint(connection), taken_at=taken_at, source=name)
            headers.write(connection, header)
            seal(connection)
    return header


def check_sound(path: Path, tell: Tell) -> None:
    """Whether every page is whole and every row is the sum of its events; CopyRefused tells what is not."""
    with closing(connect(path)) as connection:
        damage = [str(line) for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
    store = SqliteStore(path)
    try:
        damage += verify(store, lambda what, how_many: tell(f"verified {what}", how_many, 0)).differences
    finally:
        store.close()
    refuse_differences(damage)


def refuse_differences(found: list[str]) -> None:
    """CopyRefused that tells the first few."""
    if found:
        more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise CopyRefused(f"the copy is not sound: {'; '.join(found[:SHOWN])}{more} (--no-verify keeps it as it is)")
