"""`holdfast migrate`: everything that a store holds, into another database, exactly as it is.

A file is written under a temporary name and renamed when it is complete. PostgreSQL: migrate_to_postgres.py.
"""

from __future__ import annotations

from contextlib import closing

from holdfast.backup.backup import check_sound
from holdfast.backup.copy import compare, shared_tables
from holdfast.backup.endpoint import CopyRefused, Tell
from holdfast.backup.files import placed
from holdfast.backup.source import source_of
from holdfast.backup.sqlite import SqliteEndpoint, seal
from holdfast.settings import Settings, sqlite_path
from holdfast.store.sqlite.store import connect as connect_file


def migrate(settings: Settings, to: Settings, tell: Tell, *, check: bool = True) -> dict[str, int]:
    """Copy a store that nobody serves; how many records each table has now on both sides."""
    if "memory:" in {settings.store, to.store}:
        raise CopyRefused("a store in memory is gone with its process: it cannot be migrated")
    with source_of(settings, alone=True) as source:
        if not to.store.startswith("sqlite:///"):
            if not settings.store.startswith("sqlite:///"):
                raise CopyRefused("both are PostgreSQL: pg_dump and pg_restore do that, with every server stopped")
            from holdfast.backup.migrate_to_postgres import copy_into_database

            return copy_into_database(source.side, to, tell, check=check)
        with placed(sqlite_path(to.store), replace=False) as partial:
            source.write(partial, tell)
            with closing(connect_file(partial)) as connection:
                side = SqliteEndpoint(connection)
                counts = compare(source.side, side, shared_tables(side, source.side), tell)
            if check:
                check_sound(partial, tell)
            with closing(connect_file(partial)) as connection:
                seal(connection)
        return counts
