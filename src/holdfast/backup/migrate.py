"""`holdfast migrate`: copies a store into another database, unchanged.

A file is written under a temporary name and renamed when it is complete. The copy into PostgreSQL is in
`migrate_to_postgres.py`.
"""

from __future__ import annotations

from contextlib import closing

from holdfast.backup.backup import check_copy
from holdfast.backup.copy import compare, shared_tables
from holdfast.backup.endpoint import CopyRefused, OnProgress
from holdfast.backup.files import write_atomically
from holdfast.backup.source import open_source
from holdfast.backup.sqlite import SqliteEndpoint, leave_wal_mode
from holdfast.settings import Settings, sqlite_path
from holdfast.store.sqlite.store import connect as connect_file


def migrate(settings: Settings, to: Settings, report: OnProgress, *, check: bool = True) -> dict[str, int]:
    """Copy a store that no server uses; returns how many records each table has."""
    if "memory:" in {settings.store, to.store}:
        raise CopyRefused("an in-memory store ends with its process: it cannot be migrated")
    with open_source(settings, exclusive=True) as source:
        if not to.store.startswith("sqlite:///"):
            if not settings.store.startswith("sqlite:///"):
                raise CopyRefused("both stores are PostgreSQL: stop every server and use pg_dump and pg_restore")
            from holdfast.backup.migrate_to_postgres import copy_into_database

            return copy_into_database(source.endpoint, to, report, check=check)
        with write_atomically(sqlite_path(to.store), replace=False) as partial:
            source.write(partial, report)
            with closing(connect_file(partial)) as connection:
                endpoint = SqliteEndpoint(connection)
                counts = compare(source.endpoint, endpoint, shared_tables(endpoint, source.endpoint), report)
            if check:
                check_copy(partial, report)
            with closing(connect_file(partial)) as connection:
                leave_wal_mode(connection)
        return counts
