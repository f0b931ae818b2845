"""Removes needless escapes from a JSON text. Size limits are applied to the result, and it is stored."""

from __future__ import annotations

import re

import msgspec

LONGEST_ESCAPE = 6
"""Bytes of an escape such as `\\u00e9`, which can stand for a character of one byte."""

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair that stands for one character
    rb"|\\u[0-9a-fA-F]{4}|\\."
)


class _Spellings(dict[bytes, bytes]):
    """The shortest spelling of each escape, found once: a text may have thousands of the same."""

    LIMIT = 4096

    def __missing__(self, escape: bytes) -> bytes:
        if len(self) >= self.LIMIT:
            self.clear()
        spelling = escape
        if escape[1:2] in {b"u", b"/"}:
            spelling = msgspec.json.encode(msgspec.json.decode(b'"%b"' % escape))[1:-1]
        self[escape] = spelling
        return spelling


_spellings = _Spellings()


def without_needless_escapes(text: bytes) -> bytes:
    """Valid JSON with characters instead of escapes, wherever JSON allows the character itself.

    Numbers and the order of fields stay as they are: decoding and encoding the value would change them.
    """
    if b"\\u" not in text and b"\\/" not in text:
        return text
    return _ESCAPE.sub(lambda found: _spellings[found[0]], text)
