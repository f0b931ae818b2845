"""Translates the arguments of a tool call into an HTTP request to its operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from holdfast.core.errors import Invalid
from holdfast.operations.operation import Operation
from holdfast.space import HOW_TO_SET, InvalidSpaceFile
from holdfast.transport.http.bodies.parsing import fold_name
from holdfast.transport.http.request import Header, encode
from holdfast.transport.mcp.in_process import ToolRequest
from holdfast.transport.mcp.tool_schema import BODY, HEADER, LEASE_ID, MILLISECONDS, PATH, QUERY, SPACE, Field

ACCEPT: Header = (b"accept", b"application/json")
JSON: Header = (b"content-type", b"application/json")
FindSpace = Callable[[], str | None]


def request_for_call(operation: Operation, fields: tuple[Field, ...], arguments: Mapping[str, Any]) -> ToolRequest:
    """The request for a tool call. The handler validates values; only what cannot be encoded is refused here."""
    values = _sort_arguments(fields, arguments, rest=QUERY if operation.method == "GET" else BODY)
    path = operation.path
    for field in fields:
        if field.if_omitted is not None:
            values[field.location].setdefault(field.wire, field.if_omitted)
        if field.wire == LEASE_ID and field.required and not values[BODY].get(LEASE_ID):
            raise _missing(field)
        if field.location == PATH:
            path = re.sub(r"{\w+(\.\.\.)?}", _path_segment(field, values[PATH].get(field.wire)), path, count=1)
    headers = [ACCEPT, *(_header(name, value) for name, value in values[HEADER].items())]
    if operation.method == "GET":
        query = {name: _query_text(value) for name, value in values[QUERY].items()}
        text = _encode_or_refuse(urlencode, query)
        return ToolRequest(operation.method, path, text, tuple(headers), operation=operation.name)
    body = _encode_or_refuse(encode, values[BODY])
    return ToolRequest(operation.method, path, "", (*headers, JSON), body, operation.name)


def with_space(
    fields: tuple[Field, ...], arguments: Mapping[str, Any], find_space: FindSpace | None
) -> Mapping[str, Any]:
    """The arguments, with the space of the repository that this program runs in if the tool needs one."""
    if find_space is None or arguments.get(SPACE) is not None or SPACE not in {field.wire for field in fields}:
        return arguments
    try:
        space, problem = find_space(), f"`space` is required: no repository was found here. {HOW_TO_SET}"
    except InvalidSpaceFile as error:
        space, problem = None, str(error)
    if space is None:
        raise Invalid(problem, [{"pointer": f"/{SPACE}", "code": "missing", "message": problem}])
    return {**arguments, SPACE: space}


def _sort_arguments(fields: tuple[Field, ...], arguments: Mapping[str, Any], rest: str) -> dict[str, dict[str, Any]]:
    """Values by their location in the request and by their name there.

    camelCase and snake_case are both accepted, and so is a duration in seconds under the HTTP API's own name, which a
    model may have read in its documentation. Unknown arguments are passed on: the handler answers with a warning.
    """
    by_argument = {fold_name(field.argument): field for field in fields}
    by_wire = {fold_name(field.wire): field for field in fields if field.duration}
    found: dict[str, dict[str, Any]] = {PATH: {}, QUERY: {}, BODY: {}, HEADER: {}}
    for name, value in arguments.items():
        if value is None:
            continue
        field = by_argument.get(fold_name(name))
        if field is not None:
            found[field.location][field.wire] = _in_seconds(value) if field.duration else value
            continue
        field = by_wire.get(fold_name(name))
        if field is None:
            found[rest].setdefault(name, value)
        else:
            found[field.location].setdefault(field.wire, value)
    return found


def _in_seconds(value: Any) -> Any:
    """Milliseconds as seconds; a value that is not a number is passed on for the handler to refuse."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return value // MILLISECONDS if value % MILLISECONDS == 0 else value / MILLISECONDS


def _path_segment(field: Field, value: Any) -> str:
    """One segment of a path. Dots are encoded too, so that a name such as `..` cannot change the path."""
    if not isinstance(value, str) or not value:
        raise _missing(field)
    segment: str = _encode_or_refuse(quote, value, "")
    return segment.replace(".", "%2E")


def _missing(field: Field) -> Invalid:
    message = f"`{field.argument}` is required and must be a string"
    return Invalid(message, [{"pointer": f"/{field.argument}", "code": "missing", "message": message}])


def _header(name: str, value: Any) -> Header:
    # Headers carry printable ASCII only: other characters become 0x7F, which the handler refuses.
    return name.lower().encode(), re.sub(r"[^ -~]", "\x7f", _query_text(value)).encode()


def _query_text(value: Any) -> str:
    return value if isinstance(value, str) else str(_encode_or_refuse(encode, value), "ascii")


def _encode_or_refuse(encoder: Any, *values: Any) -> Any:
    try:
        return encoder(*values)
    except (UnicodeEncodeError, OverflowError, RecursionError) as error:
        message = "an argument cannot be encoded: a number is too large, a character invalid, or it is nested too deep"
        raise Invalid(message, [{"pointer": "", "code": "invalid", "message": str(error)}]) from None
