"""What a verb is: one row of the tables that the parser, the help, the completion and the pages are made of.

Plain tuples and no imports to speak of: every start of the program reads all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Argument(NamedTuple):
    """One word or flag, and which field of the operation it fills."""

    flags: tuple[str, ...]
    """("NAME",) for a word in its place, ("-w", "--wait") for a flag."""
    field: str
    help: str
    value: str | None = None
    """What the value is called in the help; None for a switch."""
    kind: Callable[[str], Any] = str
    required: bool = False
    choices: tuple[str, ...] = ()
    many: bool = False
    """Words that fill a list, or a flag that may be given again."""

    @property
    def is_word(self) -> bool:
        return not self.flags[0].startswith("-")


class Verb(NamedTuple):
    """Something to say after `holdfast`."""

    name: str
    summary: str
    arguments: tuple[Argument, ...] = ()
    operation: str = ""
    """What the server is asked; empty for verbs that do more than ask."""
    module: str = "commands.call"
    """The module of `holdfast.transport.cli` whose function `run` does it."""
    rows: str = ""
    """Which field of the answer is a list to show as a table."""
    columns: tuple[str, ...] = ()
    claims: bool = False
    """Whether "somebody else has it" is the answer that the exit status tells."""
    asks: bool = True
    """Whether it speaks to a server, and takes the flags for that."""
    usage_status: int = 2
    """The exit status of wrong usage."""
    more: str = ""
    """What the help says below the flags."""


OUTPUTS = ("text", "wide", "json", "yaml")


def word(name: str, field: str, help: str, *, required: bool = True, many: bool = False) -> Argument:
    """A word in its place."""
    return Argument((name,), field, help, name, required=required, many=many)


def flag(
    flags: str,
    field: str,
    value: str,
    help: str,
    kind: Callable[[str], Any] = str,
    *,
    required: bool = False,
    choices: tuple[str, ...] = (),
    many: bool = False,
) -> Argument:
    """A flag with a value: `flag("-w --wait", "wait_seconds", "SECONDS", …)`."""
    return Argument(tuple(flags.split()), field, help, value, kind, required, choices, many)


def output(help: str) -> Argument:
    """How to answer: the same four ways everywhere."""
    return flag("-o --output", "output", "|".join(OUTPUTS), help, choices=OUTPUTS)


def switch(flags: str, field: str, help: str) -> Argument:
    """A flag that is there or not."""
    return Argument(tuple(flags.split()), field, help)


def json_text(text: str) -> Any:
    """JSON, or with `@file` the JSON in a file, `@-` on stdin."""
    import json  # noqa: PLC0415 - read by every start, needed by few

    if text.startswith("@"):
        import sys  # noqa: PLC0415 - the same
        from pathlib import Path  # noqa: PLC0415 - the same

        text = sys.stdin.read() if text == "@-" else Path(text[1:]).read_text("utf-8")
    return json.loads(text)


def json_or_text(text: str) -> Any:
    """A JSON object if it is one, else the text itself."""
    return json_text(text) if text.startswith(("{", "@")) else text
