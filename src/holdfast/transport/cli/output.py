"""Values as text, JSON and YAML, and messages.

Text that agents wrote is escaped: a terminal would obey control characters in it.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Any

WIDE = "wide"
_MAX_BYTE, _MAX_BMP = 0xFF, 0xFFFF


def is_document(output: str) -> bool:
    """Whether the output is a whole document, for programs."""
    return output in {"json", "yaml"}


def print_document(value: Any, output: str) -> None:
    """Print a value as JSON on one line, or as a YAML document."""
    print(as_json(value) if output == "json" else as_yaml(value), end="\n" if output == "json" else "", flush=True)


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


def is_terminal() -> bool:
    return sys.stdout.isatty()
