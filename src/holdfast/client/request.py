"""Builds the request of an operation and decodes its answer. Nothing here sends."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from holdfast.client.errors import Document, Invalid
from holdfast.client.tracing import trace_headers
from holdfast.operations.operation import Operation
from holdfast.operations.table import OPERATIONS

_BY_NAME = {operation.name: operation for operation in OPERATIONS}
_PARAMETER = re.compile(r"{(\w+)(?:\.\.\.)?}")
_CAMEL = {"unique_key", "session_id", "created_after", "created_before", "updated_after", "updated_before"}
"""Query parameters of `list_tasks` that are camelCase on the wire; bodies accept both spellings."""
_REPEATABLE = {
    "heartbeat_leases",
    "check_files",
    "acquire_lock",
    "renew_lock",
    "keepalive_session",
    "heartbeat_session",
    "renew_leadership",
    "create_election",
    "recover",
    "verify_payment",
}
"""POSTs without an Idempotency-Key that have no further effect when they are sent twice."""
_HEADERS = {"list_mine": {"session_secret": "holdfast-session-secret"}}
"""Arguments that are sent as headers: secrets, which a log of URLs must not have."""


FIELD_NAMES = {"ask_task": {"answer_by": "deadline"}}
"""Arguments with another name in the body: `deadline` of a call is how long it is tried."""


class Request(msgspec.Struct, frozen=True):
    """An HTTP request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Answer(msgspec.Struct, frozen=True):
    """An HTTP answer, with header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Document:
        """The body as a JSON object: text is wrapped in one, an empty body is an empty one."""
        kind = self.headers.get("content-type", "")
        if not self.body or self.body == b"null":
            return {}
        if "json" not in kind:
            return {"content_type": kind, "text": self.body.decode(errors="replace")}
        try:
            value = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return {"content_type": kind, "text": self.body.decode(errors="replace")}
        return value if isinstance(value, dict) else {"value": value}


def find_operation(name: str) -> Operation:
    """The operation with this name; ValueError if there is none."""
    if name not in _BY_NAME:
        raise ValueError(f"there is no operation {name}")
    return _BY_NAME[name]


def accepts_idempotency_key(operation: Operation) -> bool:
    """Whether the server answers a repeated Idempotency-Key with its first answer."""
    routes = ("/v1/jobs/", "/v1/tasks", "/v1/reservations")
    is_repeated = operation.name != "check_files" and not operation.name.startswith(
        "offer_"
    )  # their answers are not stored
    return operation.method == "POST" and operation.path.startswith(routes) and is_repeated


def is_repeatable(operation: Operation) -> bool:
    """Whether sending it twice cannot apply it twice."""
    return operation.method != "POST" or accepts_idempotency_key(operation) or operation.name in _REPEATABLE


def build_request(operation: Operation, arguments: Mapping[str, Any], idempotency_key: str | None = None) -> Request:
    """The request of an operation; arguments that are None are left out."""
    fields = {name: value for name, value in arguments.items() if value is not None}
    target = _PARAMETER.sub(lambda match: _path_segment(operation, match[1], fields), operation.path)
    headers = {"accept": "application/json", **trace_headers()}
    for name, header in _HEADERS.get(operation.name, {}).items():
        if name in fields:
            headers[header] = fields.pop(name)
    renamed = FIELD_NAMES.get(operation.name, {})
    fields = {renamed.get(name, name): value for name, value in fields.items()}
    body = b""
    if operation.method == "GET":
        query = {_query_name(operation, name): _query_value(value) for name, value in fields.items()}
        target += f"?{urlencode(query)}" if query else ""
    elif fields or operation.method != "DELETE":
        body = msgspec.json.encode(fields)
        headers["content-type"] = "application/json"
    if accepts_idempotency_key(operation):
        headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
    return Request(operation.method, target, headers, body)


def _path_segment(operation: Operation, name: str, fields: dict[str, Any]) -> str:
    """A path parameter, quoted. One that a server could resolve to another path (`..`) is refused."""
    if name not in fields:
        raise TypeError(f"{operation.name} requires the argument {name}")
    value = str(fields.pop(name))
    if value.strip(".") == "":
        raise Invalid(f"{name} must not be empty or consist of dots")
    return quote(value, safe="")


def _query_name(operation: Operation, name: str) -> str:
    if operation.name != "list_tasks" or name not in _CAMEL:
        return name
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _query_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode().strip('"')
