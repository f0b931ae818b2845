"""From the arguments of a tool call to the request of its operation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from holdfast.core.errors import Invalid
from holdfast.operations.table import Operation
from holdfast.transport.http.request import Header, encode
from holdfast.transport.mcp.in_process import Ask
from holdfast.transport.mcp.tool_schema import BODY, HEADER, MILLISECONDS, PATH, PROOF, QUERY, Field

ACCEPT: Header = (b"accept", b"application/json")
JSON: Header = (b"content-type", b"application/json")


def ask_of(operation: Operation, form: tuple[Field, ...], arguments: Mapping[str, Any]) -> Ask:
    """The request. Values are the handler's to judge; only what cannot be sent at all is refused here."""
    sorted_out = _sorted_out(form, arguments, rest=QUERY if operation.method == "GET" else BODY)
    path = operation.path
    for field in form:
        if field.wire == PROOF and not sorted_out[BODY].get(PROOF):
            raise _missing(field)
        if field.place == PATH:
            path = re.sub(r"{\w+(\.\.\.)?}", _segment(field, sorted_out[PATH].get(field.wire)), path, count=1)
    headers = [ACCEPT, *(_header(name, value) for name, value in sorted_out[HEADER].items())]
    if operation.method == "GET":
        query = {name: _text(value) for name, value in sorted_out[QUERY].items()}
        return Ask(operation.method, path, _sendable(urlencode, query), tuple(headers))
    return Ask(operation.method, path, "", (*headers, JSON), _sendable(encode, sorted_out[BODY]))


def _sorted_out(form: tuple[Field, ...], arguments: Mapping[str, Any], rest: str) -> dict[str, dict[str, Any]]:
    """Values by place and by their name there.

    Either spelling of a name will do, and so will a duration in seconds under the request's own name: a model may
    have read of it elsewhere. What no field knows goes along, for the handler to warn of.
    """
    by_argument = {_bare(field.argument): field for field in form}
    by_wire = {_bare(field.wire): field for field in form if field.duration}
    found: dict[str, dict[str, Any]] = {PATH: {}, QUERY: {}, BODY: {}, HEADER: {}}
    for name, value in arguments.items():
        if value is None:
            continue
        field = by_argument.get(_bare(name))
        if field is not None:
            found[field.place][field.wire] = _in_seconds(value) if field.duration else value
            continue
        field = by_wire.get(_bare(name))
        if field is None:
            found[rest].setdefault(name, value)
        else:
            found[field.place].setdefault(field.wire, value)
    return found


def _bare(name: str) -> str:
    return name.replace("_", "").lower()


def _in_seconds(value: Any) -> Any:
    """Milliseconds as seconds; anything else as it is, for the handler to refuse."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return value // MILLISECONDS if value % MILLISECONDS == 0 else value / MILLISECONDS


def _segment(field: Field, value: Any) -> str:
    """One segment of a path. Dots are encoded as well, so that no name can lead to another path."""
    if not isinstance(value, str) or not value:
        raise _missing(field)
    segment: str = _sendable(quote, value, "")
    return segment.replace(".", "%2E")


def _missing(field: Field) -> Invalid:
    message = f"`{field.argument}` is required and must be a text"
    return Invalid(message, [{"pointer": f"/{field.argument}", "code": "missing", "message": message}])


def _header(name: str, value: Any) -> Header:
    # A header has no room for other characters; the handler refuses the mark that takes their place.
    return name.lower().encode(), re.sub(r"[^ -~]", "\x7f", _text(value)).encode()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(_sendable(encode, value), "ascii")


def _sendable(write: Any, *values: Any) -> Any:
    try:
        return write(*values)
    except (UnicodeEncodeError, OverflowError, RecursionError) as error:
        message = "an argument has a number, a character or a depth that no request can carry"
        raise Invalid(message, [{"pointer": "", "code": "invalid", "message": str(error)}]) from None
