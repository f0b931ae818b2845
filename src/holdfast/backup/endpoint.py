"""The interface of a copy's source and target: tables, read and written a page at a time, in the order of their keys.

The tables and their columns are read from the database itself, so a table that a later migration adds is copied
without a change here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from holdfast.store.sql.migrations import BACKUP, COPY

STATE = "state"
NOT_COPIED = frozenset({STATE, "schema_version", BACKUP, COPY})
"""Tables that are not copied as records: each database keeps them in its own way."""
STATE_OF_ITS_OWN = frozenset({"id", "minimum_schema"})
"""Columns of the state row that are not copied: they belong to the schema of each database."""
PAGE = 500
LEFT_OUT = "it cannot be copied"
"""Part of what is reported about a record that the target refuses."""

Record = tuple[Any, ...]
OnProgress = Callable[[str, int, int], None]
"""Called with (the step, how much of it is done, the total)."""


class CopyRefused(Exception):
    """The copy cannot be made, and nothing was changed. The message contains the reason, and what to do."""


def quote(name: str) -> str:
    """The name of a table or column, quoted for a statement."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


class Table(msgspec.Struct, frozen=True):
    """A table as its database describes it."""

    name: str
    columns: tuple[str, ...]
    """Sorted by name."""
    key: tuple[str, ...]
    """The primary key, in order; pages are read along it."""

    @property
    def name_sql(self) -> str:
        """The name, quoted for a statement."""
        return quote(self.name)

    @property
    def columns_sql(self) -> str:
        """The columns, quoted for a statement."""
        return ", ".join(map(quote, self.columns))

    @property
    def key_sql(self) -> str:
        """The key, quoted for a statement."""
        return ", ".join(map(quote, self.key))

    def left_out(self, record: Record, reason: object) -> str:
        """The report of a record that the target refuses: table, key and the reason."""
        return f"{self.name} {' '.join(map(str, self.key_of(record)))}: {LEFT_OUT}: {reason}"

    def key_of(self, record: Record) -> Record:
        """The key of a record."""
        return tuple(record[self.columns.index(column)] for column in self.key)


class Endpoint(Protocol):
    """The source or the target of a copy. Booleans are 1 and 0 in both."""

    tables: dict[str, Table]

    def page(self, table: Table, after: Record | None, limit: int) -> list[Record]:
        """Records after a key, in order."""

    def put(self, table: Table, records: list[Record]) -> None:
        """Add records that are not there yet."""

    def count(self, table: Table) -> int:
        """How many records there are."""

    def state(self) -> dict[str, Any]:
        """The state row: the newest token, the clock, and other single values."""

    def logs(self) -> dict[str, int]:
        """The last event of every account."""

    def put_state(self, state: dict[str, Any]) -> None:
        """Set the state row; columns that only the other database has are left out."""


def pages(endpoint: Endpoint, table: Table, after: Record | None = None) -> Iterator[list[Record]]:
    """All pages of a table."""
    while page := endpoint.page(table, after, PAGE):
        yield page
        after = table.key_of(page[-1])
