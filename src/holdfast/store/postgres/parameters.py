"""The parameters of a batch's statements: many records as one JSON document, many ids as one array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def document(records: Iterable[Any]) -> bytes:
    """Records as a JSON array of arrays."""
    return _encode(records)


def recordset(records: Sequence[tuple[Any, ...]]) -> bytes:
    """Records as a JSON array of objects with the keys c0, c1 and so on, for `json_to_recordset`.

    Nulls are left out. A struct with these fields is made and encoded in a third of the time that a dict takes.
    """
    make = _columns(len(records[0]))
    return _encode([make(*record) for record in records])


def text_array(texts: Iterable[str]) -> str:
    """Texts as an array literal of PostgreSQL."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return '{"' + '","'.join(quoted) + '"}'


@cache
def _columns(width: int) -> type[msgspec.Struct]:
    fields = [(f"c{position}", Any, None) for position in range(width)]
    return msgspec.defstruct("Columns", fields, omit_defaults=True, gc=False)
