"""Checks that the schema of a backup is exactly that of a store, before anything of it is used.

A backup may come from anywhere. Names of tables and columns become parts of statements, and its triggers, views and
generated columns would run while the store is being built, so none is accepted that our migrations did not make.
"""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import apsw

from holdfast.backup.endpoint import CopyRefused
from holdfast.store.sql import migrations

SQLITE = "holdfast.store.sqlite"
CREATE_HEADER = f"CREATE TABLE {migrations.BACKUP} (id INTEGER PRIMARY KEY CHECK (id = 1), header TEXT NOT NULL) STRICT"
_DEFINITIONS = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"

Definition = tuple[str, str, str, str]


def check_backup_schema(backup: apsw.Connection, path: Path) -> int:
    """The schema's number; CopyRefused if the file has anything that a backup with this number does not have."""
    number = int(backup.pragma("user_version"))
    with closing(apsw.Connection(":memory:")) as expected:
        for each, script in migrations.pending(SQLITE, 0):
            if each <= number:
                expected.execute(script)
        expected.execute(CREATE_HEADER)
        different = sorted({name for _, name, _, _ in _definitions(backup) ^ _definitions(expected)})
    migrations.pending(SQLITE, number)  # refuses the schema of a newer Holdfast
    if different:
        shown = ", ".join(ascii(name)[:60] for name in different[:3])
        raise CopyRefused(f"{path} is not as `holdfast backup` wrote it: {shown} differs from the schema of a store")
    return number


def _definitions(connection: apsw.Connection) -> set[Definition]:
    """Every table, index, trigger and view, without the comments and line breaks of its definition."""
    return {
        (str(kind), str(name), str(table), " ".join(re.sub(r"--[^\n]*", "", str(text)).split()))
        for kind, name, table, text in connection.execute(_DEFINITIONS)
    }
