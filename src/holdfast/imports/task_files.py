"""Reads tasks from JSON lines or CSV: one item of `POST /v1/tasks/batch` for each line, with its line number."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

CSV, JSON_LINES = "csv", "jsonl"
PAYLOAD, IN_PAYLOAD = "payload", "payload."
"""The column with the payload as JSON, and the prefix of columns that are single fields of it."""
NUMBERS = ("priority", "maxAttempts", "leaseDurationSeconds")
DOCUMENTS = (PAYLOAD, "backoff")
TEXTS = ("type", "scheduledAt", "uniqueKey", "onDuplicate", "tag", "createdBy", "reviewedBy", "source")


class Line(msgspec.Struct, frozen=True):
    """One task of a file, or why its line is refused."""

    number: int
    """The line on which it begins."""
    fields: dict[str, Any] = {}
    problem: str = ""


class UnreadableTasks(Exception):
    """The file as a whole cannot be read as tasks."""


def format_of(name: str) -> str:
    """The format that the name of a file suggests."""
    return CSV if name.lower().endswith(".csv") else JSON_LINES


def read_lines(text: Iterable[str], kind: str) -> Iterator[Line]:
    """The tasks of a file; empty lines are passed over."""
    return _read_csv(text) if kind == CSV else _read_json_lines(text)


def _read_json_lines(text: Iterable[str]) -> Iterator[Line]:
    for number, line in enumerate(text, 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            yield Line(number, problem=f"it is not JSON: {error}")
            continue
        if isinstance(fields, dict):
            yield Line(number, fields)
        else:
            yield Line(number, problem="it must be a JSON object with the fields of a task")


def _read_csv(text: Iterable[str]) -> Iterator[Line]:
    reader = csv.reader(text, strict=True)
    try:
        columns = [name.strip().removeprefix("\ufeff") for name in next(reader, [])]
        _check_columns(columns)
        begins = reader.line_num + 1
        for cells in reader:
            if any(cells):
                yield _csv_line(begins, columns, cells)
            begins = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableTasks(f"line {reader.line_num}: it is not CSV: {error}") from error


def _check_columns(columns: list[str]) -> None:
    known = {*TEXTS, *NUMBERS, *DOCUMENTS}
    unknown = [name for name in columns if name not in known and not name.startswith(IN_PAYLOAD)]
    if unknown or not columns:
        expected = f"{', '.join(sorted(known))} or {IN_PAYLOAD}NAME"
        raise UnreadableTasks(f"line 1: unknown columns: {', '.join(unknown) or 'none at all'}; expected {expected}")
    if len(columns) != len(set(columns)):
        raise UnreadableTasks("line 1: a column is there twice")


def _csv_line(number: int, columns: list[str], cells: list[str]) -> Line:
    if len(cells) != len(columns):
        return Line(number, problem=f"it has {len(cells)} cells, the first line has {len(columns)}")
    fields: dict[str, Any] = {}
    parts: dict[str, str] = {}
    for name, cell in zip(columns, cells, strict=True):
        if cell == "":
            continue
        try:
            if name.startswith(IN_PAYLOAD):
                parts[name.removeprefix(IN_PAYLOAD)] = cell
            else:
                fields[name] = _cell(name, cell)
        except (ValueError, RecursionError):
            expected = "a whole number" if name in NUMBERS else "JSON"
            return Line(number, problem=f"the column {name} must be {expected}")
    if parts:
        payload = fields.get(PAYLOAD, {})
        if not isinstance(payload, dict):
            return Line(number, problem="the column payload must be a JSON object")
        fields[PAYLOAD] = payload | parts
    return Line(number, fields)


def _cell(name: str, cell: str) -> Any:
    if name in NUMBERS:
        return int(cell)
    return json.loads(cell) if name in DOCUMENTS else cell
