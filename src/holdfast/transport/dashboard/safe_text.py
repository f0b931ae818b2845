"""Text that agents wrote, made harmless to read.

Escaping HTML is the templates' business. This is about people: characters that are invisible, turn text round or pile
up would let a name look like another one, so they are shown as what they are.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from urllib.parse import urlsplit

import msgspec
from markupsafe import Markup, escape

SHORT = 120
MANY_MARKS = 2
"""Accents on one letter; more are a way to scribble over the neighbours."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_BLANKS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0}
_LINE_ENDS = {ord("\n"): None, ord("\t"): None}
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))


def inert(value: object, limit: int = SHORT) -> Markup:
    """One line, cut at a limit; the whole is in the detail."""
    text = "" if value is None else str(value)
    shown = _marked(text[:limit], lines=False)
    return shown + Markup('<span class="cut">…</span>') if len(text) > limit else shown


def inert_block(value: object) -> Markup:
    """The whole text, with its line ends."""
    return _marked("" if value is None else str(value), lines=True)


def inert_json(text: str | None) -> Markup:
    """JSON as it was kept, set out for reading."""
    return inert_block(pretty(text))


def pretty(text: str | None) -> str:
    """JSON set out in lines; anything else as it is."""
    if text is None:
        return ""
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except msgspec.DecodeError:
        return text


def web_link(value: object) -> str | None:
    """The address if it is one that may be followed: http or https, nothing hidden in it."""
    text = str(value)
    if not text.isascii() or any(character <= " " for character in text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in {"http", "https"} and parts.hostname and not parts.username else None


def _marked(text: str, *, lines: bool) -> Markup:
    plain = text.translate(_LINE_ENDS) if lines else text
    if plain.isascii() and plain.isprintable():
        return escape(text)
    pieces: list[Markup | str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character)[0] == "M" else 0
        if (lines and character in "\n\t") or not (marks > MANY_MARKS or _is_hidden(character)):
            pieces.append(escape(character))
        else:
            pieces.append(Markup('<span class="hidden-character">{}</span>').format(f"\\u{{{ord(character):x}}}"))
    return Markup("").join(pieces)


@lru_cache(maxsize=4096)
def _is_hidden(character: str) -> bool:
    """Whether a reader would not see that it is there, or would see something else."""
    point, category = ord(character), unicodedata.category(character)
    if character == " ":
        return False
    selects = any(first <= point <= last for first, last in _SELECTORS)
    return category in _HIDDEN or category == "Zs" or point in _BLANKS or selects
