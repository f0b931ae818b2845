"""Shows answers: text for people, tabs for scripts, JSON or YAML for programs.

What agents wrote is hostile until it is escaped: a terminal would obey it.
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
"""What text leaves out: words for agents, and the second copy of a claimed task."""
WIDE = "wide"
_LONGEST = 60
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def show(answer: dict[str, Any], verb: Verb, output: str) -> None:
    """The answer to a verb, on stdout."""
    for warning in answer.get("warnings") or ():
        say(f"holdfast: {escape(str(warning))}")
    if is_document(output):
        document(answer, output)
    elif verb.rows:
        table(answer.get(verb.rows) or [], verb.columns, wide=output == WIDE)
        if answer.get("hasMore"):
            say(f"there are more: --cursor {answer.get('nextCursor')}")
    else:
        fields(answer, wide=output == WIDE)


def is_document(output: str) -> bool:
    """Whether a program reads it, which wants the whole answer."""
    return output in {"json", "yaml"}


def document(value: Any, output: str) -> None:
    """A value as it is: JSON on one line, or a YAML document."""
    print(as_json(value) if output == "json" else as_yaml(value), end="\n" if output == "json" else "", flush=True)


def fields(answer: dict[str, Any], *, wide: bool = False) -> None:
    """One field a line; what is null is left out, unless all is asked for."""
    shown = [(name, value) for name, value in answer.items() if wide or (value is not None and name not in HIDDEN)]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        if for_people():
            print(f"{bold(name)}{' ' * (width - len(name))}  {text_of(value)}")
        else:
            print(f"{name}\t{text_of(value)}")


def table(rows: Sequence[dict[str, Any]], columns: tuple[str, ...], *, wide: bool = False) -> None:
    """One row a line: columns under a header for people, tabs for scripts. Wide is every column, and nothing cut."""
    if wide:
        columns = tuple(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    cells = [[text_of(row.get(column)) for column in columns] for row in rows]
    if not for_people():
        for row in cells:
            print("\t".join(row))
        return
    if not wide:
        cells = [[cell if len(cell) <= _LONGEST else cell[: _LONGEST - 1] + "…" for cell in row] for row in cells]
    widths = [max(len(row[place]) for row in [list(columns), *cells]) for place in range(len(columns))]
    for number, row in enumerate([list(columns), *cells]):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(bold(line) if number == 0 else line)


def text_of(value: Any) -> str:
    """A value on one line: texts as they are, but escaped; anything else as JSON."""
    if value is None:
        return "-"
    return escape(value) if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    """JSON in plain ASCII on one line, so that nothing in it can move a cursor or turn text around."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def as_yaml(value: Any) -> str:
    """One YAML document in plain ASCII, with the mark that lets others follow it."""
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415 - few ask for it

    text: str = yaml.safe_dump(value, explicit_start=True, sort_keys=False, allow_unicode=False)
    return text


def escape(text: str) -> str:
    """Control, bidirectional and invisible characters as codes; a backslash doubled, so that nobody can fake one."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character == " " or unicodedata.category(character)[0] not in "CZ":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


def say(text: str) -> None:
    """Talk: on stderr, where it is in nobody's way."""
    print(text, file=sys.stderr, flush=True)


def for_people(stream: TextIO | None = None) -> bool:
    return (stream or sys.stdout).isatty()


def bold(text: str) -> str:
    """Bold on a terminal that likes it."""
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" or not for_people()
    return text if plain else f"{_BOLD}{text}{_PLAIN}"
