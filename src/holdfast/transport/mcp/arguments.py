"""Translates the arguments of a tool call into an HTTP request to its operation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from holdfast.core.errors import Invalid
from holdfast.space import HOW_TO_SET, InvalidSpaceFile
from holdfast.transport.http.bodies.parsing import fold_name
from holdfast.transport.http.request import Header, encode
from holdfast.transport.mcp.in_process import ToolRequest
from holdfast.transport.mcp.tool import ACTION, Call, Tool
from holdfast.transport.mcp.tool_schema import (
    AGENT_DEFAULTS,
    BODY,
    HEADER,
    LEASE_ID,
    MILLISECONDS,
    PATH,
    QUERY,
    SPACE,
    Field,
)

ACCEPT: Header = (b"accept", b"application/json")
JSON: Header = (b"content-type", b"application/json")
FindSpace = Callable[[], str | None]
Fields = Mapping[str, tuple[Field, ...]]
"""The arguments of a tool, by operation."""


def choose_call(tool: Tool, fields: Fields, arguments: Mapping[str, Any]) -> tuple[Call, dict[str, Any]]:
    """The operation that the arguments choose, and those of them that it takes, by their names in the schema.

    camelCase and snake_case are both accepted, and so is the HTTP API's own name, which a model may have read in its
    documentation. Unknown arguments are passed on: the handler answers with a warning.
    """
    everything = [field for call in tool.calls for field in fields[call.operation]]
    known = {fold_name(field.argument): field.argument for field in everything} | {ACTION: ACTION}
    named = {known.get(fold_name(name), name): value for name, value in arguments.items() if value is not None}
    call = tool.chosen(named)
    if call is None:
        raise _invalid(ACTION, f"`{ACTION}` must be one of: {', '.join(tool.actions)}")
    if tool.actions:
        del named[ACTION]
    # What the schema requires for the usual operation is not sent to another one that does not take it.
    taken = {field.argument for field in fields[call.operation]} | set(call.first.values())
    usual = () if tool.default is None else fields[tool.default.operation]
    unused = {field.argument for field in usual if field.required or field.wire in AGENT_DEFAULTS} - taken
    return call, {name: value for name, value in named.items() if name not in unused}


def request_for_call(call: Call, fields: tuple[Field, ...], arguments: Mapping[str, Any]) -> ToolRequest:
    """The request for a call. The handler validates values; only durations and what cannot be encoded are checked here.

    The handler knows durations in seconds, so its message would name another field and other bounds.
    """
    operation = call.target
    values = _sort_arguments(call, fields, arguments, rest=QUERY if operation.method == "GET" else BODY)
    path, subject = operation.path, ""
    for field in fields:
        if field.if_omitted is not None:
            values[field.location].setdefault(field.wire, field.if_omitted)
        if field.wire == LEASE_ID and field.required and not values[BODY].get(LEASE_ID):
            raise _missing(field)
        if field.location == PATH:
            subject = values[PATH].get(field.wire, "")
            path = re.sub(r"{\w+(\.\.\.)?}", _path_segment(field, subject), path, count=1)
    headers = [ACCEPT, *(_header(name, value) for name, value in values[HEADER].items())]
    if operation.method == "GET":
        query = {name: _query_text(value) for name, value in values[QUERY].items()}
        text = _encode_or_refuse(urlencode, query)
        return ToolRequest(operation.method, path, text, tuple(headers), b"", operation.name, subject)
    body = _encode_or_refuse(encode, values[BODY])
    return ToolRequest(operation.method, path, "", (*headers, JSON), body, operation.name, subject)


def with_space(
    fields: tuple[Field, ...], arguments: Mapping[str, Any], find_space: FindSpace | None
) -> Mapping[str, Any]:
    """The arguments, with the space of the repository that this program runs in if the operation takes one."""
    field = next((field for field in fields if field.wire == SPACE), None)
    if find_space is None or field is None or arguments.get(SPACE) is not None:
        return arguments
    try:
        space, problem = find_space(), f"`space` is required: no repository was found here. {HOW_TO_SET}"
    except InvalidSpaceFile as error:
        space, problem = None, str(error)
    if space is not None:
        return {**arguments, SPACE: space}
    if field.required:
        raise _invalid(SPACE, problem, "missing")
    return arguments


def _sort_arguments(
    call: Call, fields: tuple[Field, ...], arguments: Mapping[str, Any], rest: str
) -> dict[str, dict[str, Any]]:
    """Values by their location in the request and by their name there."""
    by_argument = {field.argument: field for field in fields}
    by_wire = {fold_name(field.wire): field for field in fields}
    found: dict[str, dict[str, Any]] = {PATH: {}, QUERY: {}, BODY: dict(call.fixed), HEADER: {}}
    problems = []
    for name, value in arguments.items():
        field = by_argument.get(name)
        in_seconds = field is None
        field = field or by_wire.get(fold_name(name))
        if field is None:
            if name not in call.first.values():
                found[rest].setdefault(name, value)
            continue
        if field.duration:
            problems += _duration_problems(field, value, MILLISECONDS if in_seconds else 1)
        found[field.location][field.wire] = _in_seconds(value) if field.duration and not in_seconds else value
    if problems:
        raise Invalid(problems[0]["message"], problems)
    for wire, name in call.first.items():
        if isinstance(found[BODY].get(wire), list):
            found[BODY][wire] = [arguments.get(name), *found[BODY][wire]]
    return found


def _duration_problems(field: Field, value: Any, factor: int) -> list[dict[str, str]]:
    """What is wrong with a number of milliseconds; whether it is a number at all, the handler checks."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    least, most = field.schema.get("minimum", 0), field.schema.get("maximum")
    too_large = most is not None and value * factor > most
    if not too_large and value * factor >= least and not (field.whole_seconds and value * factor % MILLISECONDS):
        return []
    bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"
    whole = f" and a multiple of {MILLISECONDS}" if field.whole_seconds else ""
    message = f"`{field.argument}` must be a number of milliseconds {bounds}{whole}"
    return [{"pointer": f"/{field.argument}", "code": "invalid", "message": message}]


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
    return _invalid(field.argument, f"`{field.argument}` is required and must be a string", "missing")


def _invalid(argument: str, message: str, code: str = "invalid") -> Invalid:
    return Invalid(message, [{"pointer": f"/{argument}", "code": code, "message": message}])


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
