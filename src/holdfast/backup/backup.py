"""`holdfast backup`: a snapshot of a store as one file, taken while the store is in use."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from holdfast.backup import header as headers
from holdfast.backup.endpoint import CopyRefused, OnProgress
from holdfast.backup.files import write_atomically
from holdfast.backup.header import Header
from holdfast.backup.source import open_source
from holdfast.backup.sqlite import SqliteEndpoint, leave_wal_mode
from holdfast.engine.verify import verify
from holdfast.settings import Settings
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.store import connect

MAX_SHOWN = 5
_ROW_DAMAGE = ("NULL value in ", "CHECK constraint failed in ", "non-INTEGER value in ", "non-TEXT value in ")
"""What SQLite reports of a single row that breaks a rule of its table."""


def backup(settings: Settings, path: Path, report: OnProgress, *, replace: bool = False, check: bool = True) -> Header:
    """Write a backup. The file gets its name only when it is complete and, with `check`, verified.

    Damaged rows are copied as they are and listed: they must not keep anybody from having a backup.
    """
    if replace:
        headers.refuse_store(path)
    with open_source(settings) as source, write_atomically(path, replace=replace) as partial:
        taken_at = time.time_ns() // 1000
        damaged = source.write(partial, report)
        if check:
            damaged += check_copy(partial, report, damaged)
        with closing(connect(partial)) as connection:
            name = "sqlite" if settings.store.startswith("sqlite:") else "postgres"
            header = headers.describe(SqliteEndpoint(connection), taken_at=taken_at, source=name, damaged=damaged)
            headers.write(connection, header)
            leave_wal_mode(connection)
    return header


def check_copy(path: Path, report: OnProgress, left_out: Sequence[str] = ()) -> list[str]:
    """Check that every page is intact and every row equals the fold of its events; CopyRefused lists the errors.

    Returns the damaged rows. Rows that were left out are missing by the log, which is then no error of the copy.
    """
    with closing(connect(path)) as connection:
        found = [str(line) for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
    store = SqliteStore(path)
    try:
        verified = verify(store, lambda step, count: report(f"verified {step}", count, 0))
    finally:
        store.close()
    errors = [line for line in found if not line.startswith(_ROW_DAMAGE)]
    refuse_differences(errors + ([] if left_out else verified.differences))
    return verified.damaged + (verified.differences if left_out else [])


def refuse_differences(found: list[str]) -> None:
    """Raise CopyRefused with the first few differences, if there are any."""
    if found:
        more = f", and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
        raise CopyRefused(f"the copy has errors: {'; '.join(found[:MAX_SHOWN])}{more} (--no-verify skips this check)")
