"""Template filters that make text written by agents safe to read.

The templates escape HTML themselves. These filters are for the reader: invisible characters, characters that change the
text direction and stacked accents would make one name look like another, so they are shown as their code points.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from urllib.parse import urlsplit

import msgspec
from markupsafe import Markup, escape

SHORT = 120
MAX_MARKS = 2
"""Accents on one letter; more of them can cover the text around it."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_BLANKS = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0}
_LINE_BREAKS = {ord("\n"): None, ord("\t"): None}
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))


def safe_line(value: object, limit: int = SHORT) -> Markup:
    """One line, cut at a limit."""
    text = "" if value is None else str(value)
    line = _mark_hidden(text[:limit], lines=False)
    return line + Markup('<span class="cut">…</span>') if len(text) > limit else line


def safe_label(value: object, limit: int = SHORT) -> str:
    """The same without markup, for attributes and tooltips."""
    return safe_line(value, limit).striptags()


def safe_block(value: object) -> Markup:
    """The whole text, with its line breaks."""
    return _mark_hidden("" if value is None else str(value), lines=True)


def safe_json(text: str | None) -> Markup:
    """Stored JSON, indented."""
    return safe_block(pretty(text))


def pretty(text: str | None) -> str:
    """JSON with indentation; anything else unchanged."""
    if text is None:
        return ""
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except msgspec.DecodeError:
        return text


def web_link(value: object) -> str | None:
    """The address if it may be a link: http or https, ASCII, without a user name."""
    text = str(value)
    if not text.isascii() or any(character <= " " for character in text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in {"http", "https"} and parts.hostname and not parts.username else None


def _mark_hidden(text: str, *, lines: bool) -> Markup:
    plain = text.translate(_LINE_BREAKS) if lines else text
    if plain.isascii() and plain.isprintable():
        return escape(text)
    pieces: list[Markup | str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character)[0] == "M" else 0
        if (lines and character in "\n\t") or not (marks > MAX_MARKS or _is_hidden(character)):
            pieces.append(escape(character))
        else:
            pieces.append(Markup('<span class="hidden-character">{}</span>').format(f"\\u{{{ord(character):x}}}"))
    return Markup("").join(pieces)


@lru_cache(maxsize=4096)
def _is_hidden(character: str) -> bool:
    """Whether a reader would not see the character, or would take it for another one."""
    point, category = ord(character), unicodedata.category(character)
    if character == " ":
        return False
    selects = any(first <= point <= last for first, last in _SELECTORS)
    return category in _HIDDEN or category == "Zs" or point in _BLANKS or selects
