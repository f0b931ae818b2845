"""An SQLite file as the source or target of a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from holdfast.backup.endpoint import NOT_COPIED, STATE_OF_ITS_OWN, CopyRefused, OnProgress, Record, Table, quote
from holdfast.backup.files import JOURNAL_FILES, remove
from holdfast.core.errors import StoreUnavailable
from holdfast.store.sqlite import queries
from holdfast.store.sqlite.fair_lock import FairLock
from holdfast.store.sqlite.results import fetch
from holdfast.store.sqlite.store import BUSY_MILLISECONDS

PAGES_AT_ONCE = 256
_COLUMNS = (
    "SELECT tables.name, columns.name, columns.pk FROM sqlite_schema AS tables,"
    " pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite\\_%'"
    " ESCAPE '\\' ORDER BY 1, 2"
)
_NOT_COPIED_STATE = STATE_OF_ITS_OWN | {"boot_id", "boot_at"}
"""Columns of the state row that are not copied; the boot clock is valid on one machine only."""


class SqliteEndpoint:
    """Reads and writes through a connection; the caller begins and ends transactions."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.left_out: list[str] = []
        """Records that the file cannot hold: table, key and the reason."""
        self._execute = connection.execute
        found: dict[str, list[tuple[str, int]]] = {}
        for table, column, position in self._execute(_COLUMNS):
            found.setdefault(str(table), []).append((str(column), int(position)))
        self.tables = {
            name: Table(
                name,
                tuple(column for column, _ in columns),
                tuple(column for _, column in sorted((at, column) for column, at in columns if at)),
            )
            for name, columns in found.items()
            if name not in NOT_COPIED
        }

    def page(self, table: Table, after: Record | None, limit: int) -> list[Record]:
        """Records after a key."""
        where = f" WHERE ({table.key_sql}) > ({', '.join('?' * len(table.key))})" if after else ""
        query = f"SELECT {table.columns_sql} FROM {table.name_sql}{where} ORDER BY {table.key_sql} LIMIT ?"
        return fetch(self._execute, query, (*(after or ()), limit))

    def put(self, table: Table, records: list[Record]) -> None:
        """Add records. Those that the file cannot hold, which are damaged in the source, are left out."""
        placeholders = ", ".join("?" * len(table.columns))
        statement = f"INSERT INTO {table.name_sql} ({table.columns_sql}) VALUES ({placeholders})"
        try:
            with self.connection:
                self.connection.executemany(statement, records)
        except (apsw.ConstraintError, apsw.MismatchError):
            for record in records:
                self._put_one(table, statement, record)

    def _put_one(self, table: Table, statement: str, record: Record) -> None:
        try:
            self._execute(statement, record)
        except (apsw.ConstraintError, apsw.MismatchError) as error:
            self.left_out.append(table.left_out(record, error))

    def count(self, table: Table) -> int:
        """How many records there are."""
        return int(self._value(f"SELECT count(*) FROM {table.name_sql}"))

    def state(self) -> dict[str, Any]:
        """The state row, without the columns that are not copied."""
        cursor = self._execute("SELECT * FROM state")
        columns = [name for name, _ in cursor.get_description()]
        row: Any = cursor.fetchone()
        return {name: value for name, value in zip(columns, row, strict=True) if name not in _NOT_COPIED_STATE}

    def put_state(self, state: dict[str, Any]) -> None:
        """Set the state row; the boot clock is unknown."""
        values = {name: value for name, value in state.items() if name in self.state()}
        assignments = ", ".join(f"{quote(name)} = ?" for name in values)
        self._execute(f"UPDATE state SET {assignments}, boot_id = '', boot_at = 0", [*values.values()])

    def logs(self) -> dict[str, int]:
        """The last event of every account."""
        return dict(self._execute("SELECT account, seq FROM event_counters"))

    def _value(self, query: str) -> Any:
        row: Any = self._execute(query).fetchone()
        return row[0]


def open_file(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """Open an existing file, without changing it."""
    if not path.exists():
        raise CopyRefused(f"{path} does not exist")
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def read_table_names(connection: apsw.Connection, path: Path) -> set[str]:
    """The tables of a file; CopyRefused if it is not an SQLite file."""
    try:
        return {str(name) for (name,) in connection.execute(queries.TABLES)}
    except apsw.NotADBError as error:
        raise CopyRefused(f"{path} is not an SQLite file") from error


@contextmanager
def open_exclusively(path: Path) -> Iterator[apsw.Connection]:
    """Open a store that no other process has open; others cannot open it meanwhile."""
    # A process that opens a store takes this lock first: it waits until we are done, and then opens the new file.
    with _take_fair_lock(path), closing(open_file(path)) as connection:
        connection.set_busy_timeout(0)
        read_table_names(connection, path)
        try:
            # A connection to a file in WAL mode holds a shared lock: leaving WAL mode fails while there are others.
            connection.pragma("locking_mode", "exclusive")
            mode = connection.pragma("journal_mode", "delete")
            connection.execute("BEGIN")
            read_table_names(connection, path)
        except apsw.BusyError:
            mode = "wal"
        if mode != "delete":
            raise CopyRefused(f"{path} is in use: stop its server, and other programs that have it open")
        yield connection


@contextmanager
def _take_fair_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a store's writers; CopyRefused if another program keeps it."""
    fair_lock = FairLock(path)
    try:
        with ExitStack() as stack:
            try:
                stack.enter_context(fair_lock.take())
            except StoreUnavailable as error:
                raise CopyRefused(error.message) from error
            yield
    finally:
        fair_lock.close()


def remove_stale_journals(path: Path) -> None:
    """Remove the journals of a file that no longer exists, while no process can create it again."""
    if not any(path.with_name(path.name + ending).exists() for ending in JOURNAL_FILES):
        return
    with _take_fair_lock(path):
        if not path.exists():
            remove(path, JOURNAL_FILES)


def copy_pages(source: apsw.Connection, path: Path, report: OnProgress) -> None:
    """Copy a whole file, page by page.

    The source must be in a read transaction: without one every commit of a writer would restart the copy.
    """
    with closing(apsw.Connection(str(path))) as target, target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(PAGES_AT_ONCE)
            report("copied", copying.page_count - copying.remaining, copying.page_count)


@contextmanager
def open_snapshot(path: Path) -> Iterator[apsw.Connection]:
    """Open a snapshot of a file, while others may write to it."""
    with closing(open_file(path)) as connection:
        read_table_names(connection, path)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield connection


def leave_wal_mode(connection: apsw.Connection) -> None:
    """Leave WAL mode, so that the store is one file without journals."""
    connection.pragma("journal_mode", "delete")
