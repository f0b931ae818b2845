"""Which columns a statement carries: not those that a batch left alone.

A heartbeat does not send a payload back and forth, a new task does not spell out thirty empty columns; and a database
does not touch an index whose columns it was not given. Parts keep the number of different statements small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, get_type_hints

from holdfast.core.row import Key, Row
from holdfast.core.task import LIVE_STATES, Task

Shape = tuple[str, ...]
"""Column names; the first two are the key."""

_SQL = {int: "bigint", int | None: "bigint", str: "text", str | None: "text", bool: "boolean"}


def by_shape(rows: list[Row], touched: dict[Key, tuple[str, ...]]) -> Iterator[tuple[Shape, list[Row]]]:
    """Rows that go in one statement each: with the parts that differ from what is stored, or from blank.

    Finished tasks come first: they give their unique keys up, which others may take in the same batch.
    """
    groups: dict[tuple[bool, Shape], list[Row]] = {}
    for row in rows:
        row_type = type(row)
        shape = _shape(row_type, touched[row.key]) if row_type.parts else row_type.__struct_fields__
        lives = not isinstance(row, Task) or row.state in LIVE_STATES
        groups.setdefault((lives, shape), []).append(row)
    return ((shape, groups[lives, shape]) for lives, shape in sorted(groups))


@cache
def values(shape: Shape) -> Callable[[Row], tuple[Any, ...]]:
    """What a row has in these columns."""
    return attrgetter(*shape)


@cache
def sql_types(row_type: type[Row]) -> dict[str, str]:
    """The PostgreSQL type of each column."""
    hints = get_type_hints(row_type)
    return {name: _SQL[hints[name]] for name in row_type.__struct_fields__}


@lru_cache(maxsize=10_000)
def _shape(row_type: type[Row], touched: tuple[str, ...]) -> Shape:
    """The key and what is in no part, then every part of which something was touched."""
    parted = {name for part in row_type.parts for name in part}
    always = [name for name in row_type.__struct_fields__ if name not in parted]
    return (*always, *(name for part in row_type.parts if not set(part).isdisjoint(touched) for name in part))
