"""Shortens results for a model's context: nothing is shown twice, and a page of a list has a limited size."""

from __future__ import annotations

from typing import Any

from holdfast.operations.bounds import TOOL_LIST_BYTES
from holdfast.transport.http.request import encode

LIMIT = "limit"
MOST_CHARACTERS = 512
"""Longer strings in the rows of a list are cut; names and paths are shorter."""
_OURS = "agent_contract"


def without(document: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """The answer without the fields of these names, at any depth."""
    return {
        name: value if name == _OURS else _strip(value, names) for name, value in document.items() if name not in names
    }


def summary(document: dict[str, Any], rows: str) -> dict[str, Any]:
    """The answer with the long strings in its rows cut."""
    if not isinstance(document.get(rows), list):
        return document
    return document | {rows: _cut(document[rows])}


def fitting_rows(document: dict[str, Any], rows: str) -> int | None:
    """How many of its rows make a page that is small enough; None if all of them do."""
    found = document.get(rows)
    if not isinstance(found, list) or len(found) <= 1:
        return None
    left = TOOL_LIST_BYTES - len(encode(document | {rows: []}))
    for number, row in enumerate(found):
        left -= len(encode(row)) + 1
        if left < 0:
            return max(number, 1)
    return None


def _strip(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_strip(each, names) for each in value]
    if isinstance(value, dict):
        return {name: _strip(each, names) for name, each in value.items() if name not in names}
    return value


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        return f"{value[:MOST_CHARACTERS]}… ({len(value)} characters)"
    if isinstance(value, list):
        return [_cut(each) for each in value]
    if isinstance(value, dict):
        return {name: _cut(each) for name, each in value.items()}
    return value
