"""Decodes results of statements into rows, pages and events; damaged records are set aside."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from holdfast.core.errors import DamagedRow
from holdfast.core.event import Event
from holdfast.core.row import Row
from holdfast.store.damaged_rows import DamagedRows
from holdfast.store.sql.page_queries import PageQuery

R = TypeVar("R", bound=Row)
T = TypeVar("T", bound=msgspec.Struct)
Size = tuple[int, int | None]
"""The most records of a page, and the most bytes."""


class SqlRecords(ABC):
    """Executes statements and decodes their results. Each dialect implements only the execution."""

    damaged_rows: DamagedRows

    @abstractmethod
    def execute(self, query: str, *arguments: Any) -> Iterable[tuple[Any, ...]]:
        """Execute one statement of `sql/queries.py`."""

    def records(self, record_type: type[T], query: str, *arguments: Any) -> list[T | DamagedRow]:
        """The result as records, with an error in the place of each damaged one."""
        return self.damaged_rows.decode(record_type, self.execute(query, *arguments))

    def rows(self, row_type: type[R], query: str, *arguments: Any) -> list[R]:
        """The result as rows, without damaged ones."""
        return [row for row in self.records(row_type, query, *arguments) if not isinstance(row, DamagedRow)]

    def page(self, record_type: type[T], query: PageQuery, size: Size, *arguments: Any) -> list[T]:
        """A page without damaged records: more are read in their place, so that only the last page is short."""
        limit, max_bytes = size
        extra, extra_bytes = 0, 0
        while True:
            wanted = (limit + extra, None if max_bytes is None else max_bytes + extra_bytes)
            found = self.records(record_type, *query.call(wanted, *arguments))
            damaged = [record for record in found if isinstance(record, DamagedRow)]
            if len(damaged) <= extra:
                return [record for record in found if not isinstance(record, DamagedRow)][:limit]
            texts = (value for record in damaged for value in record.columns.values() if isinstance(value, str | bytes))
            extra, extra_bytes = len(damaged), sum(len(os.fsencode(text)) for text in texts)

    def event_page(self, query: PageQuery, size: Size, *arguments: Any) -> list[Event]:
        """A page of events; each damaged one is replaced."""
        return self.damaged_rows.events(self.execute(*query.call(size, *arguments)))

    def value(self, query: str, *arguments: Any) -> Any:
        """The first column of the first row."""
        return next(iter(self.execute(query, *arguments)))[0]


def usable(record: T | DamagedRow) -> T:
    """The record; raises the error if it is damaged."""
    if isinstance(record, DamagedRow):
        raise record
    return record
