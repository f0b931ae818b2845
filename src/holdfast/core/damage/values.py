"""Damage of single values: a wrong type, nothing where a value is needed, a time outside 1970 to 9999."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, get_type_hints

import msgspec

from holdfast.decoding import convert

_POSITION = re.compile(r"(.*?) - at `\$\[(\d+)\]`")


def damage_of_values(record_type: type[msgspec.Struct], values: tuple[Any, ...]) -> str | None:
    """Which of a record's values is unusable, and why; None if all have the types of their columns.

    Text that is not UTF-8 comes as bytes.
    """
    try:
        convert(values, _shape(record_type))
    except msgspec.ValidationError as error:
        found = _POSITION.fullmatch(str(error))
        if found is None:
            return str(error)
        column = record_type.__struct_fields__[int(found[2])]
        if isinstance(values[int(found[2])], bytes):
            return f"{column} is not valid UTF-8"
        return f"{column}: {found[1][0].lower()}{found[1][1:].replace('`', '')}"
    return None


@cache
def _shape(record_type: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """The same columns as an array, which is how a database returns them."""
    hints = get_type_hints(record_type, include_extras=True)
    columns = [(name, hints[name]) for name in record_type.__struct_fields__]
    return msgspec.defstruct(f"{record_type.__name__}Values", columns, array_like=True, gc=False)
