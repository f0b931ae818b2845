"""`holdfast backup`: a snapshot of a store as one file, taken while the store is in use."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from holdfast.backup import header as headers
from holdfast.backup.endpoint import LEFT_OUT, CopyRefused, OnProgress
from holdfast.backup.files import write_atomically
from holdfast.backup.header import Header
from holdfast.backup.source import open_source
from holdfast.backup.sqlite import SqliteEndpoint, leave_wal_mode
from holdfast.core.row import Key
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


def check_copy(path: Path, report: OnProgress, damaged: Sequence[str] = ()) -> list[str]:
    """Check that every page is intact and every row equals the fold of its events; CopyRefused lists the errors.

    `damaged` has the rows that are known to be damaged or left out. Returns the damaged rows that were found, and how
    the copy differs from the log because of `damaged`, which is no error of the copy.
    """
    with closing(connect(path)) as connection:
        found = [str(line) for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
    store = SqliteStore(path)
    try:
        verified = verify(store, lambda step, count: report(f"verified {step}", count, 0))
    finally:
        store.close()
    errors = [line for line in found if not line.startswith(_ROW_DAMAGE)]
    explained = [line for line in verified.differences if _is_explained(verified.subjects.get(line), damaged)]
    refuse_differences(errors + [line for line in verified.differences if line not in explained])
    return verified.damaged + explained


def _is_explained(subject: Key | None, damaged: Sequence[str]) -> bool:
    """Whether something differs from the log because of one of these rows."""
    if subject is None:
        return False
    table, account, row_id = subject
    left_out = [line for line in damaged if f": {LEFT_OUT}: " in line]
    if table == "task_counts":
        return any(line.startswith((f"tasks {account} ", f"{table} {account} ")) for line in left_out)
    if any(line.startswith(f"{table} {account} {row_id}: ") for line in damaged):
        return True
    # Nothing tells whose event was left out.
    return table != "events" and any(line.startswith(f"events {account} ") for line in left_out)


def refuse_differences(found: list[str]) -> None:
    """Raise CopyRefused with the first few differences, if there are any."""
    if found:
        more = f", and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
        raise CopyRefused(f"the copy has errors: {'; '.join(found[:MAX_SHOWN])}{more} (--no-verify skips this check)")
