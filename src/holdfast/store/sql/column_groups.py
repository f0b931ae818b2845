"""Column subsets of an insert or update: groups of columns that the batch did not change are left out.

A heartbeat does not rewrite the payload, a new task does not list thirty empty columns, and the database does not
update indexes of columns that are not in the statement. Whole groups (`Row.column_groups`) keep the number of different
statements small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, get_type_hints

import msgspec

from holdfast.core.row import Key, Row
from holdfast.core.task import LIVE_STATES, Task

ColumnNames = tuple[str, ...]
"""Column names; the first two are the key."""

_SQL_TYPES = {int: "bigint", int | None: "bigint", str: "text", str | None: "text", bool: "boolean"}


def group_by_columns(rows: list[Row], touched: dict[Key, tuple[str, ...]]) -> Iterator[tuple[ColumnNames, list[Row]]]:
    """The rows, grouped by the columns that must be written: those that differ from what is stored, or from blank.

    Finished tasks come first: they give up their unique keys, which other tasks may take in the same batch.
    """
    groups: dict[tuple[bool, ColumnNames], list[Row]] = {}
    for row in rows:
        row_type = type(row)
        names = _columns_for(row_type, touched[row.key]) if row_type.column_groups else row_type.__struct_fields__
        is_live = not isinstance(row, Task) or row.state in LIVE_STATES
        groups.setdefault((is_live, names), []).append(row)
    return ((names, groups[is_live, names]) for is_live, names in sorted(groups))


@cache
def column_values(names: ColumnNames) -> Callable[[msgspec.Struct], tuple[Any, ...]]:
    """A function that returns a record's values in these columns."""
    return attrgetter(*names)


@cache
def sql_types(record_type: type[msgspec.Struct]) -> dict[str, str]:
    """The PostgreSQL type of each column."""
    hints = get_type_hints(record_type)
    return {name: _SQL_TYPES[hints[name]] for name in record_type.__struct_fields__}


@lru_cache(maxsize=10_000)
def _columns_for(row_type: type[Row], touched: tuple[str, ...]) -> ColumnNames:
    """The key, all columns in no group, and every group in which a column changed."""
    grouped = {name for group in row_type.column_groups for name in group}
    always = [name for name in row_type.__struct_fields__ if name not in grouped]
    return (
        *always,
        *(name for group in row_type.column_groups if not set(group).isdisjoint(touched) for name in group),
    )
