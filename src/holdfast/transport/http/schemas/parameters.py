"""What stands in the address and in the headers."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from holdfast.core.names import NAME_LIMIT
from holdfast.operations.table import HOLDFAST_API, ORCHESTRION, Operation
from holdfast.transport.http.bodies.idempotency import MAX_KEY
from holdfast.transport.http.schemas.operation_schema import Shape

Node = dict[str, Any]

_JOB_PART = r"(?!\.\.(/|$))[A-Za-z0-9._:@-]+"
_UUID = {"type": "string", "format": "uuid"}
_IN_PATHS: dict[str, Node] = {
    "/v1/jobs": {
        "description": "The job's id. Its slashes may be sent as they are, or as `%2F`.",
        "schema": {"type": "string", "maxLength": NAME_LIMIT, "pattern": f"^{_JOB_PART}(/{_JOB_PART})*$"},
    },
    "/v1/tasks": {"description": "The task's id.", "schema": {"type": "string", "minLength": 1}},
    "/v1/sessions": {"description": "The session's id.", "schema": _UUID},
    "/sessions": {"description": "The session's id.", "schema": _UUID},
    "/webhooks": {"description": "The webhook's id.", "schema": _UUID},
    "/locks": {
        "description": "The lock's name. Its slashes are sent as `%2F`.",
        "schema": {"type": "string", "minLength": 1, "maxLength": NAME_LIMIT},
    },
    "/elections": {
        "description": "The room's id.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,64}$"},
    },
}
"""What may stand in a path, by how it begins; anything else is a text."""

_KEY_PATTERNS = {HOLDFAST_API: "^[!-~]+$", ORCHESTRION: "^[ -~]*[!-~][ -~]*$"}
_REQUEST_ID = {
    "name": "X-Request-Id",
    "in": "header",
    "description": "What to call this request in answers and in the log; one that does not fit is replaced.",
    "schema": {"type": "string"},
}
_KNOWN = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The `ETag` of the document you have.",
    "schema": {"type": "string"},
}

HEADERS: Node = {
    "X-Request-Id": {
        "description": "What the log calls this request.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the same request may succeed.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "Idempotency-Replayed": {
        "description": "This was answered before, under the same Idempotency-Key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "ETag": {"description": "Names these bytes.", "required": True, "schema": {"type": "string"}},
}


def of(operation: Operation, shape: Shape) -> list[Node]:
    """Everything an operation takes besides its body."""
    found = [_in_path(name, operation) for name in re.findall(r"{(\w+)", operation.path)]
    if shape.query is not None:
        found += _in_query(shape.query)
    if operation.family in {HOLDFAST_API, ORCHESTRION}:
        found.append(_REQUEST_ID)
    if shape.once:
        found.append(_key(operation))
    if 304 in shape.answers:  # noqa: PLR2004 - HTTP's own number
        found.append(_KNOWN)
    return found


def answered(shape: Shape) -> Node:
    """The headers of an answer."""
    names = ["X-Request-Id"]
    if shape.once:
        names.append("Idempotency-Replayed")
    if 304 in shape.answers:  # noqa: PLR2004 - HTTP's own number
        names.append("ETag")
    return _headers(names)


def refused(*, waiting: bool) -> Node:
    """The headers of a refusal."""
    return _headers(["X-Request-Id", *(["Retry-After"] if waiting else [])])


def _headers(names: list[str]) -> Node:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _key(operation: Operation) -> Node:
    schema = {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": _KEY_PATTERNS[operation.family]}
    told = "The same request under the same key has one effect and one answer."
    return {"name": "Idempotency-Key", "in": "header", "description": told, "schema": schema}


def _in_path(name: str, operation: Operation) -> Node:
    known = next((node for start, node in _IN_PATHS.items() if operation.path.startswith(f"{start}/{{")), None)
    return {"name": name, "in": "path", "required": True, **(known or {"schema": {"type": "string", "minLength": 1}})}


def _in_query(query: type[msgspec.Struct]) -> list[Node]:
    _, components = msgspec.json.schema_components([query])
    (struct,) = components.values()
    found = []
    for name, schema in struct["properties"].items():
        node: Node = {"name": name, "in": "query", "schema": schema}
        if "description" in schema:
            node["description"] = schema.pop("description")
        found.append(node)
    return found
