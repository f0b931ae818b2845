"""One operation as a request, and its answer as a document. Nothing here sends anything."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from holdfast.client.errors import Document, Invalid
from holdfast.client.tracing import outgoing
from holdfast.operations.table import OPERATIONS, Operation

_BY_NAME = {operation.name: operation for operation in OPERATIONS}
_PARAMETER = re.compile(r"{(\w+)(?:\.\.\.)?}")
_CAMEL = {"unique_key", "session_id", "created_after", "created_before", "updated_after", "updated_before"}
"""What stands in camelCase behind the question mark of a list; bodies may be spelled either way."""
_REPEATABLE = {
    "acquire_lock",
    "renew_lock",
    "keepalive_session",
    "heartbeat_session",
    "renew_leadership",
    "create_election",
    "recover",
    "verify_payment",
}
"""POSTs that take no Idempotency-Key, but change nothing more when they are sent twice."""


class Request(msgspec.Struct, frozen=True):
    """What goes out."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Answer(msgspec.Struct, frozen=True):
    """What came back; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Document:
        """The JSON object; a text is wrapped in one, and no content is an empty one."""
        kind = self.headers.get("content-type", "")
        if not self.body or self.body == b"null":
            return {}
        if "json" not in kind:
            return {"content_type": kind, "text": self.body.decode(errors="replace")}
        try:
            found = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return {"content_type": kind, "text": self.body.decode(errors="replace")}
        return found if isinstance(found, dict) else {"value": found}


def find(name: str) -> Operation:
    """The operation of this name."""
    if name not in _BY_NAME:
        raise ValueError(f"there is no operation {name}")
    return _BY_NAME[name]


def takes_key(operation: Operation) -> bool:
    """Whether the server answers a repetition under the same Idempotency-Key as it answered the first time."""
    return operation.method == "POST" and operation.path.startswith(("/v1/jobs/", "/v1/tasks"))


def is_safe(operation: Operation) -> bool:
    """Whether sending it again can never do it twice."""
    return operation.method != "POST" or takes_key(operation) or operation.name in _REPEATABLE


def request(operation: Operation, arguments: Mapping[str, Any], idempotency_key: str | None = None) -> Request:
    """The request of an operation. Arguments that are None are not sent."""
    given = {name: value for name, value in arguments.items() if value is not None}
    target = _PARAMETER.sub(lambda match: _segment(operation, match[1], given), operation.path)
    headers = {"accept": "application/json", **outgoing()}
    body = b""
    if operation.method == "GET":
        query = {_spelled(operation, name): _text(value) for name, value in given.items()}
        target += f"?{urlencode(query)}" if query else ""
    elif given or operation.method != "DELETE":
        body = msgspec.json.encode(given)
        headers["content-type"] = "application/json"
    if takes_key(operation):
        headers["idempotency-key"] = idempotency_key or str(uuid.uuid4())
    return Request(operation.method, target, headers, body)


def _segment(operation: Operation, name: str, given: dict[str, Any]) -> str:
    """A path parameter. One that would change which path is meant never leaves."""
    if name not in given:
        raise TypeError(f"{operation.name} needs {name}")
    value = str(given.pop(name))
    if value.strip(".") == "":
        raise Invalid(f"{name} must not be empty or made of dots")
    return quote(value, safe="")


def _spelled(operation: Operation, name: str) -> str:
    if operation.name != "list_tasks" or name not in _CAMEL:
        return name
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode().strip('"')
