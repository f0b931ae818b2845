"""Types of the verb tables: the parser, the help, shell completion and docs/reference/cli.md are all made from them.

Plain tuples with few imports, because every start of the program reads all tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.operations.bound_kinds import Range
from holdfast.operations.bounds import OFFER_LIFETIME
from holdfast.transport.cli.durations import parse_whole_seconds


class Argument(NamedTuple):
    """A positional argument or flag, and the field of the operation that it fills."""

    flags: tuple[str, ...]
    """("NAME",) for a positional argument, ("-w", "--wait") for a flag."""
    field: str
    help: str
    value: str | None = None
    """Name of the value in the help; None for a switch."""
    kind: Callable[[str], Any] = str
    required: bool = False
    choices: tuple[str, ...] = ()
    many: bool = False
    """Whether a positional argument takes several values, or a flag may be repeated."""

    @property
    def is_positional(self) -> bool:
        return not self.flags[0].startswith("-")


class Verb(NamedTuple):
    """One command of the program, such as `claim` or `task create`."""

    name: str
    summary: str
    arguments: tuple[Argument, ...] = ()
    operation: str = ""
    """Operation that the verb calls on the server; empty for verbs that call several, or none."""
    command: str = "commands.call:call"
    """Module below `holdfast.transport.cli` and function in it: imported only when the verb runs."""
    rows: str = ""
    """Field of the answer that holds the list to print as a table."""
    columns: tuple[str, ...] = ()
    is_claim: bool = False
    """Whether the answer may be "another holder has it", which sets the exit status."""
    calls_server: bool = True
    """Whether it calls a server, and so takes the flags --output, --url and --key-file."""
    usage_status: int = 2
    """Exit status for wrong usage."""
    more: str = ""
    """Text below the flags in the help."""
    for_people: bool = True
    """Whether people type it; programs start the others, which the overview leaves out."""


class Invocation(NamedTuple):
    """A verb with its parsed arguments: what every implementation is called with."""

    verb: Verb
    arguments: dict[str, Any]
    output: str = "text"
    conflict_status: int | None = None
    """Value of -E."""
    fields: tuple[str, ...] = ()
    """Value of --fields: what to print of the answer."""

    def held_status(self, default: int) -> int:
        """Exit status when another holder has it: -E if given."""
        return default if self.conflict_status is None else self.conflict_status


class WrongUsage(Exception):
    """An argument, or what it names, cannot be used; the message says which and why."""


OUTPUTS = ("text", "wide", "json", "yaml")
DURATION = "DURATION"


def positional(
    name: str,
    field: str,
    help: str,
    *,
    required: bool = True,
    many: bool = False,
    choices: tuple[str, ...] = (),
) -> Argument:
    """A positional argument."""
    return Argument((name,), field, help, name, required=required, many=many, choices=choices)


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
    """A flag with a value: `flag("--token", "token", "NUMBER", …)`."""
    return Argument(tuple(flags.split()), field, help, value, kind, required, choices, many)


def duration(flags: str, field: str, help: str, kind: Callable[[str], Any] = parse_whole_seconds) -> Argument:
    """A flag with a number of seconds, such as 90, 90s or 5m."""
    return flag(flags, field, DURATION, help, kind)


def switch(flags: str, field: str, help: str) -> Argument:
    """A flag without a value."""
    return Argument(tuple(flags.split()), field, help)


OUTPUT = flag("-o --output", "output", "FORMAT", "text, wide, json or yaml (text)", choices=OUTPUTS)


def parse_json(text: str) -> Any:
    """JSON; `@file` reads it from a file, `@-` from stdin."""
    import json

    if text.startswith("@"):
        import sys
        from pathlib import Path

        text = sys.stdin.read() if text == "@-" else Path(text[1:]).read_text("utf-8")
    return json.loads(text)


def parse_json_or_text(text: str) -> Any:
    """A JSON object, or any other text as it is."""
    return parse_json(text) if text.startswith(("{", "@")) else text


def parse_fields(text: str) -> tuple[str, ...]:
    """Names, separated by commas."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError("expected names of fields, separated by commas")
    return names


OWNER = flag("--owner", "owner", "WHO", "your name, visible to others ($HOLDFAST_OWNER, or user@host)")
TOKEN = flag("--token", "token", "NUMBER", "the token from the claim, checked too", int)
SESSION_LEASE = flag("--session-lease", "session_lease_id", "ID", "the session's lease_id; needed once it was resumed")
OFFER = flag("--offer", "offer", "CODE", "take it over with the code of an offer")
OFFER_TERMS = (
    flag("--to", "to", "SESSION", "the name of the only session that may accept (anybody who has the code)"),
    duration("--expires", "expires_in_seconds", f"how long it can be accepted ({OFFER_LIFETIME.default})"),
    switch("--withdraw", "withdraw", "withdraw the offer: you stay the holder"),
)
CAPABILITIES = flag("--capability", "capabilities", "WORD", "what you can do; repeat it for more", many=True)
HELD_STATUS = flag("-E", "conflict_status", "NUMBER", "exit status when another holder has it (1)", int)
FIELDS = flag(
    "--fields", "fields", "NAMES", "print only these fields, separated by commas; a.b: b inside a", parse_fields
)
CURSOR = flag("--cursor", "cursor", "CURSOR", "continue after the previous page")


def limit(page: Range) -> Argument:
    """The flag for the size of a page."""
    return flag("--limit", "limit", "NUMBER", f"at most this many ({page.default})", int)
