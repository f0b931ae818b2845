"""JSON request bodies of the Holdfast and Orchestrion APIs: strict types, every error reported at once.

Unknown fields are ignored with a warning; camelCase and snake_case spellings of a field are both accepted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

import msgspec

from holdfast.core.errors import Invalid
from holdfast.decoding import convert, decode
from holdfast.operations.bounds import BODY_BYTES
from holdfast.transport.http.overload.large_work import LARGE_BYTES, run_sized
from holdfast.transport.http.request import HttpRefusal, Request, encode

B = TypeVar("B", bound=msgspec.Struct)

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that are not JSON, or are JSON of the wrong type."""

DETAILED_BYTES = 256 * 1024
"""In a larger body unknown or misspelled fields are refused, and only the first error is reported: each costs time."""
NAMED_FIELDS = 10
"""Unknown fields that are named in warnings; the others are only counted."""
COMPARED_NAMES = 20
"""Names that are compared with a missing field's to find a misspelling."""
NAME_LENGTH = 64
"""A longer name is shown shortened and is compared with no other."""


def field_error(pointer: str, code: str, message: str) -> dict[str, str]:
    """One entry of the `errors` list of a refusal; `pointer` is a JSON pointer into the body."""
    return {"pointer": pointer, "code": code, "message": message}


async def read_body(request: Request, body_type: type[B], limit: int = BODY_BYTES) -> tuple[B, list[str], bytes]:
    """Read the request body: (the body, warnings about unknown fields, the raw bytes). An empty body means {}."""
    media_type = request.headers.get(b"content-type", b"application/json").split(b";", 1)[0].strip().lower()
    raw = await request.body(limit)
    if raw and media_type != b"application/json":
        raise HttpRefusal(415, "the body must be application/json")
    raw = raw or b"{}"
    if len(raw) <= LARGE_BYTES:  # the usual case, without another coroutine
        return *parse_body(raw, body_type), raw
    return *await run_sized(len(raw), lambda: parse_body(raw, body_type)), raw


def parse_body(raw: bytes, body_type: type[B]) -> tuple[B, list[str]]:
    """Parse a JSON body: (the body, warnings about unknown fields)."""
    try:
        return decode(raw, body_type), []
    except msgspec.ValidationError as error:
        if len(raw) > DETAILED_BYTES:
            raise Invalid(f"the body is not valid: {error}", [field_error("", "invalid", str(error))]) from None
        return _parse_known_fields(raw, body_type)
    except DECODE_ERRORS as error:
        raise Invalid(f"the body is not JSON: {error}", [field_error("", "malformed_json", str(error))]) from None


def _parse_known_fields(raw: bytes, body_type: type[B]) -> tuple[B, list[str]]:
    """Parse again without unknown fields and with a warning for each, or refuse with every error."""
    try:
        body = _normalize_names(decode(raw, dict[str, msgspec.Raw]), body_type)
        known = {name: body[name] for name in body_type.__struct_encode_fields__ if name in body}
        return decode(encode(known), body_type), _unknown_field_warnings(body, body_type)
    except DECODE_ERRORS:
        raise Invalid("the body has missing or invalid fields", _find_errors(raw, body_type)) from None


def _normalize_names(body: dict[str, Any], body_type: type[msgspec.Struct]) -> dict[str, Any]:
    """Rename fields to their documented spelling. If both spellings were sent, the documented one counts."""
    documented = {fold_name(name): name for name in body_type.__struct_encode_fields__}
    normalized: dict[str, Any] = {}
    for name, value in body.items():
        known = documented.get(fold_name(name), name)
        if known == name or known not in body:
            normalized[known] = value
    return normalized


def fold_name(name: str) -> str:
    """A name without underscores and case: equal for its camelCase and snake_case spellings."""
    return name.replace("_", "").lower()


def _find_errors(raw: bytes, body_type: type[msgspec.Struct]) -> list[dict[str, str]]:
    """An error for every missing or invalid field, not only for the first."""
    try:
        document = msgspec.json.decode(raw)
    except DECODE_ERRORS as error:
        return [field_error("", "malformed_json", str(error))]
    if not isinstance(document, dict):
        return [field_error("", "wrong_type", "the body must be a JSON object")]
    document = _normalize_names(document, body_type)
    found = []
    for field in msgspec.structs.fields(body_type):
        name = field.encode_name
        if name not in document:
            if field.required:
                near = _closest(name, document)
                hint = f"; you sent `{near}`" if near else ""
                found.append(field_error(f"/{name}", "missing", f"`{name}` is required{hint}"))
            continue
        if field.type is msgspec.Raw:  # accepts any JSON value
            continue
        try:
            convert(document[name], field.type)
        except msgspec.ValidationError as error:
            found.append(field_error(f"/{name}", "invalid", str(error)))
    return found


def _unknown_field_warnings(body: dict[str, Any], body_type: type[msgspec.Struct]) -> list[str]:
    """A warning for each of the first unknown fields, and one with the number of the others."""
    known = body_type.__struct_encode_fields__
    unknown = [name for name in body if name not in known]
    warnings = []
    for name in unknown[:NAMED_FIELDS]:
        near = _closest(name, known) if len(name) <= NAME_LENGTH else None
        hint = f"; did you mean '{near}'?" if near else ""
        warnings.append(f"unknown field {name[:NAME_LENGTH]!r} was ignored{hint}")
    if len(unknown) > NAMED_FIELDS:
        warnings.append(f"{len(unknown) - NAMED_FIELDS} more unknown fields were ignored")
    return warnings


def _closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is spelled most like `name`. A comparison is slow, so few and short ones are compared."""
    short = islice((candidate for candidate in candidates if len(candidate) <= NAME_LENGTH), COMPARED_NAMES)
    near = difflib.get_close_matches(name, short, n=1)
    return near[0] if near else None
