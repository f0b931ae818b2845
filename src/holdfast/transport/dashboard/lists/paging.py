"""Sorted pages of a list in memory: the columns that a list can be sorted by, and the links that its page needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")

MAX_DIGITS = 6


class Column(msgspec.Struct, Generic[T], frozen=True):
    """A column that a list can be sorted by."""

    name: str
    """The value of the `sort` parameter; `-name` sorts the other way round."""
    label: str
    key: Callable[[T], Any]
    largest_first: bool = False
    """Whether `sort=name` begins with the largest."""


class Heading(msgspec.Struct, frozen=True):
    """The heading of a column that sorts the list."""

    label: str
    sorted: str
    """`ascending`, `descending`, or nothing: the value of `aria-sort`."""
    parameters: dict[str, str]
    """Query parameters that sort the list by this column, or turn it round if it is sorted by it."""


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """One page of a sorted list."""

    rows: list[T]
    headings: dict[str, Heading]
    """By the name of the column."""
    first: int
    """Number of the first row of the page, from 1."""
    count: int
    previous: dict[str, str] | None
    next: dict[str, str] | None
    """Query parameters of the pages before and after this one."""

    @property
    def last(self) -> int:
        """Number of the last row of the page."""
        return self.first + len(self.rows) - 1


def make_listing(
    found: Sequence[T], columns: Sequence[Column[T]], query: Mapping[str, str], parameters: dict[str, str], size: int
) -> Listing[T]:
    """The page that `sort` and `page` of the query name; by default sorted by the first column.

    `parameters` select the list; every link of the page has them.
    """
    wanted = query.get("sort", "")
    chosen = next((column for column in columns if column.name == wanted.removeprefix("-")), columns[0])
    is_turned = wanted == f"-{chosen.name}"
    is_descending = is_turned != chosen.largest_first
    rows = sorted(found, key=chosen.key, reverse=is_descending)
    own = parameters | ({"sort": wanted} if wanted.removeprefix("-") == chosen.name else {})
    pages = max(-(-len(rows) // size), 1)
    number = min(max(_parse_number(query.get("page", "")), 1), pages)
    headings = {
        column.name: Heading(
            column.label,
            ("descending" if is_descending else "ascending") if column is chosen else "",
            parameters | {"sort": f"-{column.name}" if column is chosen and not is_turned else column.name},
        )
        for column in columns
    }
    return Listing(
        rows=rows[(number - 1) * size : number * size],
        headings=headings,
        first=(number - 1) * size + 1,
        count=len(rows),
        previous=own | {"page": str(number - 1)} if number > 1 else None,
        next=own | {"page": str(number + 1)} if number < pages else None,
    )


def _parse_number(text: str) -> int:
    """A page number; 1 if the text is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else 1
