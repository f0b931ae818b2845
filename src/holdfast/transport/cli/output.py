"""Prints answers: columns on a terminal, tabs for scripts, JSON or YAML for programs.

Text that agents wrote is escaped first: a terminal would obey control characters in it.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

from holdfast.transport.cli.verbs.verb import Verb

HIDDEN = ("agent_contract", "warnings", "task")
"""Fields left out of text output: advice for agents, and the second copy of a claimed task."""
WIDE = "wide"
_MAX_CELL = 60
_MAX_BYTE, _MAX_BMP = 0xFF, 0xFFFF
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def print_answer(answer: dict[str, Any], verb: Verb, output: str) -> None:
    """Print the answer to a verb on stdout, and its warnings on stderr."""
    for warning in answer.get("warnings") or ():
        print_message(f"holdfast: {escape(str(warning))}")
    if is_document(output):
        from holdfast.transport.cli.advice import in_commands  # reads the table of operations

        print_document(in_commands(answer, verb), output)
    elif verb.rows:
        print_table(answer.get(verb.rows) or [], verb.columns, wide=output == WIDE)
        if answer.get("hasMore"):
            print_message(f"there are more: --cursor {answer.get('nextCursor')}")
    else:
        print_fields(answer, wide=output == WIDE)


def is_document(output: str) -> bool:
    """Whether the output is a whole document, for programs."""
    return output in {"json", "yaml"}


def print_document(value: Any, output: str) -> None:
    """Print a value as JSON on one line, or as a YAML document."""
    print(as_json(value) if output == "json" else as_yaml(value), end="\n" if output == "json" else "", flush=True)


def print_fields(answer: dict[str, Any], *, wide: bool = False) -> None:
    """Print one field a line. Without `wide`, fields that are null or HIDDEN are left out."""
    visible = [(name, value) for name, value in answer.items() if wide or (value is not None and name not in HIDDEN)]
    width = max((len(name) for name, _ in visible), default=0)
    for name, value in visible:
        if is_terminal():
            print(f"{bold(name)}{' ' * (width - len(name))}  {text_of(value)}")
        else:
            print(f"{name}\t{text_of(value)}")


def print_table(rows: Sequence[dict[str, Any]], columns: tuple[str, ...], *, wide: bool = False) -> None:
    """Print one row a line: columns with a header on a terminal, tabs elsewhere. `wide`: all columns, nothing cut."""
    if wide:
        columns = tuple(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    cells = [[text_of(row.get(column)) for column in columns] for row in rows]
    if not is_terminal():
        for row in cells:
            print("\t".join(row))
        return
    if not wide:
        cells = [[cell if len(cell) <= _MAX_CELL else cell[: _MAX_CELL - 1] + "…" for cell in row] for row in cells]
    widths = [max(len(row[column]) for row in [list(columns), *cells]) for column in range(len(columns))]
    for number, row in enumerate([list(columns), *cells]):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(bold(line) if number == 0 else line)


def text_of(value: Any) -> str:
    """A value on one line: strings escaped, anything else as JSON."""
    if value is None:
        return "-"
    return escape(value) if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    """JSON in plain ASCII on one line, so that nothing in it can move the cursor or change the direction of text."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def as_yaml(value: Any) -> str:
    """One YAML document in plain ASCII, with a start marker so that several can follow one another."""
    import yaml  # type: ignore[import-untyped]

    text: str = yaml.safe_dump(value, explicit_start=True, sort_keys=False, allow_unicode=False)
    return text


def escape(text: str) -> str:
    """Text with control, bidirectional and invisible characters as codes, and backslashes doubled to be unambiguous."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return "".join(_escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character == " " or unicodedata.category(character)[0] not in "CZ":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code <= _MAX_BYTE else f"\\u{code:04x}" if code <= _MAX_BMP else f"\\U{code:08x}"


def print_message(text: str) -> None:
    """Print a message on stderr, so that stdout holds results only."""
    print(text, file=sys.stderr, flush=True)


def is_terminal(stream: TextIO | None = None) -> bool:
    return (stream or sys.stdout).isatty()


def bold(text: str) -> str:
    """Bold text on a terminal that supports it, unless NO_COLOR is set."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" or not is_terminal()
    return text if plain else f"{_BOLD}{text}{_PLAIN}"
