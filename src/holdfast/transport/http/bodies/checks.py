"""Checks of field values: length, range, size and depth. All errors of a request are reported together."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from holdfast.core.errors import Invalid, TooLarge
from holdfast.core.names import is_storable
from holdfast.core.task.capabilities import WORD, join_words
from holdfast.operations.bound_kinds import Count, JsonSize, Length, Range
from holdfast.transport.http.bodies.json_text import LONGEST_ESCAPE, without_needless_escapes
from holdfast.transport.http.bodies.parsing import DECODE_ERRORS, field_error
from holdfast.transport.http.request import Request

NOTHING = msgspec.Raw(b"null")
"""Value of an omitted field that accepts any JSON."""

_KEY_NAMES = {"api_key", "apiKey", "apikey", "access_token", "authorization"}


class Checks:
    """Collects errors about the values of one request; `raise_errors` refuses with all of them."""

    def __init__(self) -> None:
        self.errors: list[dict[str, str]] = []

    def require(self, condition: bool, field: str, message: str) -> None:  # noqa: FBT001 - reads as a sentence
        """Add an error about a field unless the condition holds."""
        if not condition:
            self.add(field, message)

    def add(self, field: str, message: str) -> None:
        """Add an error about a field."""
        self.errors.append(field_error(f"/{field}", "out_of_range", message))

    def check_range(self, value: float | None, field: str, bound: Range) -> None:
        """Require a number within its range, if there is one."""
        if not bound.allows(value):
            self.add(field, f"`{field}` must be {bound}")

    def check_text(self, value: str | None, field: str, bound: Length) -> None:
        """Require a string that is not too long and that every store can save unchanged."""
        if value is None:
            return
        length, most = len(value), bound.most
        if length > most:
            self.add(field, f"`{field}` must have at most {most} characters; it has {length}")
        if not is_storable(value):
            self.add(field, f"`{field}` must not contain U+0000")

    def check_words(self, words: list[str] | None, field: str, bound: Count) -> str:
        """Require a list of few capabilities; returns them as they are stored."""
        given = words or []
        self.require(len(given) <= bound.most, field, f"`{field}` must have {bound}")
        rule = f"each of `{field}` must be 1 to 64 characters of A-Z a-z 0-9 . _ : / -"
        self.require(all(map(WORD.fullmatch, given)), field, rule)
        return join_words(given)

    def compact_json(self, raw: msgspec.Raw, field: str, bound: JsonSize) -> str | None:
        """Check a JSON value against its limits of size and depth; return it as compact text, or None for null.

        The size is that of compact UTF-8: white space and needless escapes of the caller do not count.
        """
        if raw == NOTHING:
            return None
        text = msgspec.json.format(bytes(raw), indent=-1)
        limit, depth = bound
        if len(text) > limit * LONGEST_ESCAPE:
            raise _too_large(field, len(text), limit)
        try:
            value = msgspec.json.decode(text)
        except DECODE_ERRORS as error:
            message = f"`{field}` is not JSON"
            raise Invalid(message, [field_error(f"/{field}", "malformed_json", str(error))]) from None
        # Every level needs an opening bracket: text with few of them cannot be too deep and is not walked.
        shallow = text.count(b"{") + text.count(b"[") <= depth or _depth(value, depth) <= depth
        self.require(shallow, field, f"`{field}` must not be nested deeper than {depth} levels")
        if shallow and b"\\u" in text:
            self.require(_is_storable(value), field, f"`{field}` must not contain U+0000")
        text = without_needless_escapes(text)
        if len(text) > limit:
            raise _too_large(field, len(text), limit)
        return text.decode()

    def compact_object(self, raw: msgspec.Raw, field: str, bound: JsonSize) -> str | None:
        """The same for a value that must be a JSON object."""
        text = self.compact_json(raw, field, bound)
        self.require(text is None or text.startswith("{"), field, f"`{field}` must be a JSON object")
        return text

    def raise_errors(self) -> None:
        """Refuse the request if any check failed."""
        if self.errors:
            raise Invalid("; ".join(error["message"] for error in self.errors), self.errors)


def _too_large(field: str, size: int, limit: int) -> TooLarge:
    rule = f"at most {limit} bytes of compact JSON in UTF-8"
    return TooLarge(f"`{field}` is {size} bytes, the limit is {limit}", [field_error(f"/{field}", "too_large", rule)])


def _depth(value: Any, limit: int, level: int = 1) -> int:
    """Levels of nesting; counting stops at `limit + 1`."""
    if level > limit:
        return level
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(
        (_depth(element, limit, level + 1) for element in inner),
        default=level - 1 if not isinstance(value, dict | list) else level,
    )


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return is_storable(value)
    if isinstance(value, dict):
        return all(is_storable(key) and _is_storable(element) for key, element in value.items())
    return all(map(_is_storable, value)) if isinstance(value, list) else True


def check_key_in_query(request: Request) -> None:
    """Refuse an API key in the query string: URLs end up in logs."""
    if not request.scope["query_string"]:
        return
    for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), errors="replace"):
        if name in _KEY_NAMES or value.startswith(("hf_live_", "hf_test_", "orch_live_")):
            message = "a key must not be part of the URL; send `Authorization: Bearer <key>`"
            raise Invalid(message, [field_error(f"/{name[:64]}", "key_in_query", message)])
