"""What a copy is made from and made into: tables, a page at a time, in the order of their keys.

Which tables there are, and with which columns, is asked of the database itself: one that a later migration adds is
copied without anybody having to think of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from holdfast.store.sql.migrations import BACKUP, COPY

STATE = "state"
NOT_COPIED = frozenset({STATE, "schema_version", BACKUP, COPY})
"""Tables that are no list of things: the databases keep them each in its own way."""
PAGE = 500

Record = tuple[Any, ...]
Tell = Callable[[str, int, int], None]
"""Hears (what is being done, how far it has come, how far it will go)."""


class CopyRefused(Exception):
    """It cannot be done like this, and nothing was changed. Its words say why, and what to do."""


class Table(msgspec.Struct, frozen=True):
    """A table as its database describes it."""

    name: str
    columns: tuple[str, ...]
    """By name."""
    key: tuple[str, ...]
    """In order; pages are read along it."""

    @property
    def listed(self) -> str:
        """The columns, for a statement."""
        return ", ".join(f'"{column}"' for column in self.columns)

    @property
    def ordered(self) -> str:
        """The key, for a statement."""
        return ", ".join(f'"{column}"' for column in self.key)

    def key_of(self, record: Record) -> Record:
        """Where a record stands."""
        return tuple(record[self.columns.index(column)] for column in self.key)


class Endpoint(Protocol):
    """One end of a copy. True and false are 1 and 0 on both."""

    tables: dict[str, Table]

    def page(self, table: Table, after: Record | None, limit: int) -> list[Record]:
        """Records after a key, in order."""

    def put(self, table: Table, records: list[Record]) -> None:
        """Add records that are not there yet."""

    def count(self, table: Table) -> int:
        """How many records there are."""

    def state(self) -> dict[str, Any]:
        """The newest token, the clock, and what else there is only one of."""

    def logs(self) -> dict[str, int]:
        """The last event of every account."""

    def put_state(self, state: dict[str, Any]) -> None:
        """Take all of that over; columns that only the other database has are left out."""


def pages(side: Endpoint, table: Table, after: Record | None = None) -> Iterator[list[Record]]:
    """All pages of a table."""
    while page := side.page(table, after, PAGE):
        yield page
        after = table.key_of(page[-1])
