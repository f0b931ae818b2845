"""Results of SQLite as Python values. Text that is not UTF-8 comes as bytes, and the rest of the result as usual."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import apsw
import msgspec

from holdfast.core.row import Row

Values = tuple[Any, ...]


def fetch(execute: Callable[..., apsw.Cursor], statement: str, arguments: Iterable[Any]) -> list[Values]:
    """Execute a statement and fetch its result."""
    arguments = tuple(arguments)
    cursor = execute(statement, arguments)
    if not statement.startswith(("SELECT", "WITH")):
        return _readable(cursor)  # it writes, so it must not be executed again
    try:
        return cursor.fetchall()
    except UnicodeDecodeError:
        names = ", ".join(f"c{position}" for position in range(len(cursor.get_description())))
        texts = ", ".join(f"iif(typeof({name}) = 'text', CAST({name} AS blob), {name})" for name in names.split(", "))
        found = execute(f"WITH result({names}) AS ({statement}) SELECT {texts} FROM result", arguments)  # noqa: S608
        return [tuple(map(_text, values)) for values in found]


def with_booleans(record_type: type[msgspec.Struct], found: Iterable[Values]) -> Iterable[Values]:
    """The values of a record, its booleans as such: SQLite stores them as 0 and 1."""
    positions = _booleans(record_type)
    return (_with_booleans(values, positions) for values in found) if positions else found


def _with_booleans(values: Values, positions: list[int]) -> Values:
    changed = list(values)
    for position in positions:
        if changed[position] in (0, 1):
            changed[position] = bool(changed[position])
    return tuple(changed)


@cache
def _booleans(record_type: type[msgspec.Struct]) -> list[int]:
    if not issubclass(record_type, Row):
        return []
    return [record_type.__struct_fields__.index(name) for name in sorted(record_type.booleans)]


def _text(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _readable(cursor: apsw.Cursor) -> list[Values]:
    """A result without the rows that have unreadable text; the cursor goes on behind them."""
    found: list[Values] = []
    while True:
        try:
            found.append(next(cursor))
        except UnicodeDecodeError:
            continue
        except StopIteration:
            return found
