"""How one operation is described: what it takes, what it answers, what it may refuse."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.core.errors import HoldfastError

JSON = "application/json"

Token = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
"""A fencing token."""
Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its offset: ours is always UTC."""
Seconds = Annotated[int, msgspec.Meta(ge=0)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0)]


class Shape(msgspec.Struct, frozen=True):
    """One operation, beyond what the table of operations says of it."""

    answers: Mapping[int, Any]
    """The body's type for each status of a success; a tuple for one of several types, None for no body."""
    body: type[msgspec.Struct] | None = None
    """What it reads; see `described`."""
    query: type[msgspec.Struct] | None = None
    """What may stand behind the question mark: a field for each parameter."""
    refusals: tuple[type[HoldfastError], ...] = ()
    """What its rules may refuse, beyond what `refusals.py` knows of all operations."""
    once: bool = False
    """Whether it takes an Idempotency-Key."""
    store: bool = True
    """Whether it needs the store at all."""
    media: str = JSON
    """What kind of document a success is."""
    texts: tuple[str, ...] = ()
    """As what kinds of text it can be had as well."""


def described(name: str, body: type[msgspec.Struct], /, **bounds: Any) -> type[msgspec.Struct]:
    """A body as its handler reads it, under a name of its own and with the bounds that the handler checks by hand.

    Handlers tell a value out of bounds in their own words, together with every other mistake, so the bounds are not
    in the types they decode. A bound is some words of JSON Schema, or a type that says more than the handler's.
    Fields nobody knows are ignored, so the twin does not forbid them.
    """
    fields = msgspec.structs.fields(body)
    assert set(bounds) <= {field.name for field in fields}, f"{name} bounds what {body.__name__} does not have"
    config = body.__struct_config__
    return msgspec.defstruct(
        name,
        [_twin(field, bounds.get(field.name, {})) for field in fields],
        namespace={"__doc__": body.__doc__},
        rename={field.name: field.encode_name for field in fields},
        tag_field=config.tag_field,
        tag=config.tag,
        kw_only=True,
    )


def _twin(field: msgspec.structs.FieldInfo, bound: Any) -> tuple[str, Any, Any]:
    if not isinstance(bound, dict):
        kind = bound
    else:
        kind = Any if field.type is msgspec.Raw else field.type
        if bound:
            kind = Annotated[kind, msgspec.Meta(extra_json_schema=bound)]
    if field.required:
        return field.name, kind, msgspec.field()
    default = msgspec.UNSET if isinstance(field.default, msgspec.Raw) else field.default
    return field.name, kind, msgspec.field(default=default)


def text(most: int, *, least: int = 0) -> dict[str, Any]:
    """A text of so many characters; no store keeps U+0000."""
    return {"minLength": least, "maxLength": most, "pattern": "^[^\\u0000]*$"}


def number(least: int, most: int) -> dict[str, Any]:
    """A number within its bounds."""
    return {"minimum": least, "maximum": most}
