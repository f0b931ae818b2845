"""OpenAPI description of one operation: request body, query, responses, errors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.core.task.capabilities import WORD
from holdfast.operations.bound_kinds import Bound, Count, JsonSize, Length, Range
from holdfast.operations.bounds import QUERY_TEXT

JSON = "application/json"

Token = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
"""A fencing token."""
Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its offset; the server always sends UTC."""
QueryText = Annotated[str, msgspec.Meta(max_length=QUERY_TEXT.most, pattern="^[^\\u0000]*$")]
"""A string in a query."""
Seconds = Annotated[int, msgspec.Meta(ge=0)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0)]


class OperationSchema(msgspec.Struct, frozen=True):
    """Request, responses and errors of one operation, in addition to its row in the table of operations."""

    answers: Mapping[int, Any]
    """The body's type for each success status; a tuple for one of several types, None for no body."""
    body: type[msgspec.Struct] | None = None
    """The request body; see `request_body`."""
    query: type[msgspec.Struct] | None = None
    """The query string: one field for each parameter."""
    refusals: tuple[type[HoldfastError], ...] = ()
    """Errors of its own, beyond the common ones in `refusals.py`."""
    takes_idempotency_key: bool = False
    takes_session_secret: bool = False
    uses_store: bool = True
    """False if it can be answered without the store."""
    media: str = JSON
    """Media type of a success."""
    text_media: tuple[str, ...] = ()
    """Further media types of a success, chosen by the Accept header; all of them text."""


def request_body(
    name: str, body: type[msgspec.Struct], bounds: Mapping[str, Bound], /, **more: Any
) -> type[msgspec.Struct]:
    """A handler's body type under its schema name, with the bounds that the handler checks after decoding.

    Handlers report a value out of bounds together with every other error, so the types they decode have no bounds.
    `bounds` are those of the operation in `operations/bounds.py`; `more` are further JSON Schema keywords, or a type
    more precise than the handler's, by field. Unknown fields are ignored, so the schema does not forbid them.
    """
    fields = msgspec.structs.fields(body)
    missing = (set(more) - {field.name for field in fields}) | (set(bounds) - {field.encode_name for field in fields})
    assert not missing, f"{body.__name__} has no field {missing}"
    config = body.__struct_config__
    return msgspec.defstruct(
        name,
        [_described(field, bounds.get(field.encode_name), more.get(field.name, {})) for field in fields],
        namespace={"__doc__": body.__doc__},
        rename={field.name: field.encode_name for field in fields},
        tag_field=config.tag_field,
        tag=config.tag,
        kw_only=True,
    )


def _described(field: msgspec.structs.FieldInfo, bound: Bound | None, more: Any) -> tuple[str, Any, Any]:
    if not isinstance(more, dict):
        kind = more
    else:
        kind = Any if field.type is msgspec.Raw else field.type
        keywords = ({} if bound is None else schema_of(bound)) | more
        if keywords:
            kind = Annotated[kind, msgspec.Meta(extra_json_schema=keywords)]
    if field.required:
        return field.name, kind, msgspec.field()
    if field.default_factory is not msgspec.NODEFAULT:
        return field.name, kind, msgspec.field(default_factory=field.default_factory)
    default = msgspec.UNSET if isinstance(field.default, msgspec.Raw) else field.default
    return field.name, kind, msgspec.field(default=default)


def schema_of(bound: Bound) -> dict[str, Any]:
    """A bound as JSON Schema. Sizes in bytes cannot be expressed there and are only described."""
    match bound:
        case Range():
            return {"minimum": bound.least, "maximum": bound.most}
        case Length():
            # No store can save U+0000.
            return {"minLength": bound.least, "maxLength": bound.most, "pattern": "^[^\\u0000]*$"}
        case Count():
            return {"minItems": bound.least, "maxItems": bound.most}
        case JsonSize():
            return {}


def words(bound: Count) -> Any:
    """A list of capabilities."""
    word = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^{WORD.pattern}$"})]
    return Annotated[list[word], msgspec.Meta(max_length=bound.most)] | None


def within(bound: Range) -> msgspec.Meta:
    """The bound of a number in a query string."""
    return msgspec.Meta(ge=bound.least, le=bound.most)
