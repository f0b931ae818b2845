"""The flag --fields: which fields of an answer are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def select(row: Row, fields: Sequence[str]) -> Row:
    """These fields of a row, in this order; None where it has no such field."""
    return {field: _find(row, field)[1] for field in fields}


def missing(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """The fields that none of the rows has."""
    return [field for field in fields if rows and not any(_find(row, field)[0] for row in rows)]


def _find(value: Any, field: str) -> tuple[bool, Any]:
    """Whether there is such a field, and its value: `payload.pr` is a field inside another, `paths.0` a first entry."""
    if isinstance(value, dict) and field in value:
        return True, value[field]
    first, dot, rest = field.partition(".")
    if isinstance(value, list) and first.isdecimal() and int(first) < len(value):
        return _find(value[int(first)], rest) if dot else (True, value[int(first)])
    if isinstance(value, dict) and dot and first in value:
        return _find(value[first], rest)
    return False, None
