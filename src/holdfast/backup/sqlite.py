"""An SQLite file as one side of a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from holdfast.backup.endpoint import NOT_COPIED, CopyRefused, Record, Table, Tell
from holdfast.backup.files import SIDE_FILES, remove
from holdfast.store.sqlite import queries
from holdfast.store.sqlite.fair_lock import FairLock
from holdfast.store.sqlite.store import BUSY_MILLISECONDS

PAGES_AT_ONCE = 256
_COLUMNS = (
    "SELECT tables.name, columns.name, columns.pk FROM sqlite_schema AS tables,"
    " pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite\\_%'"
    " ESCAPE '\\' ORDER BY 1, 2"
)
_OWN = frozenset({"id", "boot_id", "boot_at"})
"""Columns of the state row that mean something on one machine only."""


class SqliteEndpoint:
    """Reads and writes through a connection; whoever opened it says when a transaction begins and ends."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._execute = connection.execute
        found: dict[str, list[tuple[str, int]]] = {}
        for table, column, place in self._execute(_COLUMNS):
            found.setdefault(str(table), []).append((str(column), int(place)))
        self.tables = {
            name: Table(
                name,
                tuple(column for column, _ in columns),
                tuple(column for _, column in sorted((place, column) for column, place in columns if place)),
            )
            for name, columns in found.items()
            if name not in NOT_COPIED
        }

    def page(self, table: Table, after: Record | None, limit: int) -> list[Record]:
        """Records after a key."""
        where = f" WHERE ({table.ordered}) > ({', '.join('?' * len(table.key))})" if after else ""
        query = f'SELECT {table.listed} FROM "{table.name}"{where} ORDER BY {table.ordered} LIMIT ?'  # noqa: S608 - its own names
        return list(self._execute(query, (*(after or ()), limit)))

    def put(self, table: Table, records: list[Record]) -> None:
        """Add records."""
        places = ", ".join("?" * len(table.columns))
        self.connection.executemany(f'INSERT INTO "{table.name}" ({table.listed}) VALUES ({places})', records)  # noqa: S608 - its own names

    def count(self, table: Table) -> int:
        """How many records there are."""
        return int(self._value(f'SELECT count(*) FROM "{table.name}"'))  # noqa: S608 - its own names

    def state(self) -> dict[str, Any]:
        """The state row, without what means something on one machine only."""
        cursor = self._execute("SELECT * FROM state")
        columns = [name for name, _ in cursor.get_description()]
        row: Any = cursor.fetchone()
        return {name: value for name, value in zip(columns, row, strict=True) if name not in _OWN}

    def put_state(self, state: dict[str, Any]) -> None:
        """Take a state row over, on a boot of which nothing is known."""
        known = {name: value for name, value in state.items() if name in self.state()}
        settings = ", ".join(f'"{name}" = ?' for name in known)
        self._execute(f"UPDATE state SET {settings}, boot_id = '', boot_at = 0", [*known.values()])  # noqa: S608 - its own names

    def logs(self) -> dict[str, int]:
        """The last event of every account."""
        return dict(self._execute("SELECT account, seq FROM event_counters"))

    def _value(self, query: str) -> Any:
        row: Any = self._execute(query).fetchone()
        return row[0]


def open_file(path: Path, *, read_only: bool = False) -> apsw.Connection:
    """A file that is there, as it is."""
    if not path.exists():
        raise CopyRefused(f"there is no file {path}")
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def tables_of(connection: apsw.Connection, path: Path) -> set[str]:
    """Which tables a file has; CopyRefused if it is something else than SQLite wrote."""
    try:
        return {str(name) for (name,) in connection.execute(queries.TABLES)}
    except apsw.NotADBError as error:
        raise CopyRefused(f"{path} is no SQLite file") from error


@contextmanager
def alone_with(path: Path) -> Iterator[apsw.Connection]:
    """A store that nobody has open, and that nobody can open meanwhile."""
    turn = FairLock(path)
    try:
        # Whoever opens a store passes here first: they wait until we are done, and then find what we left.
        with turn.take(), closing(open_file(path)) as connection:
            connection.set_busy_timeout(0)
            tables_of(connection, path)
            try:
                # Every connection keeps a shared lock on a file in WAL mode; leaving that mode needs all of them gone.
                connection.pragma("locking_mode", "exclusive")
                mode = connection.pragma("journal_mode", "delete")
                connection.execute("BEGIN")
                tables_of(connection, path)
            except apsw.BusyError:
                mode = "wal"
            if mode != "delete":
                raise CopyRefused(f"{path} is in use: stop its server, and programs that have it open, first")
            yield connection
    finally:
        turn.close()


def remove_left_over(path: Path) -> None:
    """Remove the log of a file that is gone, while nobody can make the file anew."""
    if not any(path.with_name(path.name + ending).exists() for ending in SIDE_FILES):
        return
    turn = FairLock(path)
    try:
        with turn.take():
            if not path.exists():
                remove(path, SIDE_FILES)
    finally:
        turn.close()


def copy_pages(source: apsw.Connection, path: Path, tell: Tell) -> None:
    """The whole file as it is at this moment, page by page.

    A look that is open on the source keeps the moment: without one every commit of a writer would start the copy anew.
    """
    with closing(apsw.Connection(str(path))) as target, target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(PAGES_AT_ONCE)
            tell("copied", copying.page_count - copying.remaining, copying.page_count)


@contextmanager
def looking(path: Path) -> Iterator[apsw.Connection]:
    """A file as it is at this moment, whoever writes to it meanwhile."""
    with closing(open_file(path)) as connection:
        tables_of(connection, path)
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield connection


def seal(connection: apsw.Connection) -> None:
    """One file with nothing beside it, so that it can be carried away."""
    connection.pragma("journal_mode", "delete")
