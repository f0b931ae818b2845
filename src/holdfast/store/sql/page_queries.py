"""Queries of pages: a limited number of records in an order, and optionally of bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

from holdfast.core.browser_session import BrowserSession
from holdfast.core.event import Event
from holdfast.core.page import counted_columns
from holdfast.core.row import Row
from holdfast.core.webhooks.delivery import Delivery
from holdfast.store.changes import Answer
from holdfast.store.damaged_rows import TABLES


def columns(record: type[Row | Event | Answer | BrowserSession | Delivery], alias: str = "") -> str:
    """The columns of a record, in the order of its fields."""
    return ", ".join(f"{alias}{name}" for name in record.__struct_fields__)


class PageQuery(NamedTuple):
    """A query for one page, whose last argument is the most records; `within_bytes` takes the most bytes after it.

    It adds up bytes before anything large is fetched; `core.page.take_bytes` is the same rule.
    """

    plain: str
    within_bytes: str

    def call(self, size: tuple[int, int | None], *arguments: Any) -> tuple[Any, ...]:
        """The statement and its arguments; `size` is the most records, and the most bytes or None."""
        limit, max_bytes = size
        if max_bytes is None:
            return (self.plain, *arguments, limit)
        return (self.within_bytes, *arguments, limit, max_bytes)


def page_of(record: type[Row | Event | Delivery], where: str, *by: str, order: str = "ASC") -> PageQuery:
    """The query for a page in the order of the columns `by`."""
    table, key = TABLES[record]
    chosen = ", ".join(dict.fromkeys((*key, *by)))
    size = " + ".join(f"coalesce(octet_length({name}), 0)" for name in counted_columns(record))
    ordered = ", ".join(f"{name} {order}" for name in by)
    return PageQuery(
        f"SELECT {columns(record)} FROM {table} WHERE {where} ORDER BY {ordered} LIMIT ?",
        f"SELECT {columns(record, 'found.')} FROM"
        f" (SELECT {chosen}, sum(size) OVER (ORDER BY {ordered}) - size AS before FROM"
        f" (SELECT {chosen}, {size} AS size FROM {table} WHERE {where} ORDER BY {ordered} LIMIT ?) AS page) AS added"
        f" CROSS JOIN {table} AS found WHERE {' AND '.join(f'found.{name} = added.{name}' for name in key)}"
        f" AND before < ? ORDER BY {', '.join(f'added.{name} {order}' for name in by)}",
    )
