"""Path and query parameters and headers of operations, for OpenAPI."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from holdfast.operations.bounds import IDEMPOTENCY_KEY, JOB_ID, SESSION_SECRET, TASK_TYPE
from holdfast.operations.operation import HOLDFAST_API, ORCHESTRION, Operation
from holdfast.transport.http.schemas.operation_schema import OperationSchema, schema_of

Node = dict[str, Any]

_JOB_PART = r"[^/\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+"
JOB_ID_PATTERN = f"^{_JOB_PART}(/{_JOB_PART})*$"
"""What a regular expression without look-around can say; the description of the parameter has the rest."""
_UUID = {"type": "string", "format": "uuid"}
_PATH_PARAMETERS: dict[str, Node] = {
    "/v1/jobs": {
        "description": "The job's id: printable characters, also the path of a file. Its slashes may be sent as they "
        "are, or as `%2F`. No part between slashes is `..`, the last character is not `*`. Unicode is taken in any "
        "normal form and answered in form C.",
        "schema": {"type": "string", "maxLength": JOB_ID.most, "pattern": JOB_ID_PATTERN},
    },
    "/v1/tasks": {"description": "The task's id.", "schema": {"type": "string", "minLength": 1}},
    "/v1/queues": {
        "description": "The type of the queue's tasks.",
        "schema": {"type": "string", "pattern": f"^[A-Za-z0-9_-]{{{TASK_TYPE.least},{TASK_TYPE.most}}}$"},
    },
    "/v1/reservations": {"description": "The reservation's id.", "schema": _UUID},
    "/v1/sessions": {"description": "The session's id.", "schema": _UUID},
    "/sessions": {"description": "The session's id.", "schema": _UUID},
    "/webhooks": {"description": "The webhook's id.", "schema": _UUID},
    "/locks": {
        "description": "The lock's name. Its slashes are sent as `%2F`.",
        "schema": {"type": "string", "minLength": 1, "maxLength": JOB_ID.most},
    },
    "/elections": {
        "description": "The election's id.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,64}$"},
    },
}
"""Path parameters by the path's prefix; any other is a string."""

_KEY_PATTERNS = {HOLDFAST_API: "^[!-~]+$", ORCHESTRION: "^[ -~]*[!-~][ -~]*$"}
_REQUEST_ID = {
    "name": "X-Request-Id",
    "in": "header",
    "description": "Your id for this request, used in the response and in the log; an invalid one is replaced.",
    "schema": {"type": "string"},
}
_SESSION_SECRET = {
    "name": "Holdfast-Session-Secret",
    "in": "header",
    "description": "The `secret` of the session in `session_id`, which opening it returned.",
    "schema": {"type": "string", "minLength": 1, "maxLength": SESSION_SECRET.most, "pattern": "^[!-~]+$"},
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The `ETag` of the copy you already have.",
    "schema": {"type": "string"},
}

_REPEATABLE = "Makes the request safe to repeat: the same request with the same key takes effect once."

HEADERS: Node = {
    "X-Request-Id": {
        "description": "The id of this request, also in the log.",
        "required": True,
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the same request may succeed.",
        "schema": {"type": "integer", "minimum": 1},
    },
    "Idempotency-Replayed": {
        "description": "The stored response to an earlier request with the same Idempotency-Key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "ETag": {"description": "Identifies this version of the document.", "required": True, "schema": {"type": "string"}},
}


def request_parameters(operation: Operation, schema: OperationSchema) -> list[Node]:
    """All parameters of an operation besides its body."""
    found = [_path_parameter(name, operation) for name in re.findall(r"{(\w+)", operation.path)]
    if schema.query is not None:
        found += _query_parameters(schema.query)
    if operation.family in {HOLDFAST_API, ORCHESTRION}:
        found.append(_REQUEST_ID)
    if schema.takes_idempotency_key:
        found.append(_idempotency_key(operation))
    if schema.takes_session_secret:
        found.append(_SESSION_SECRET)
    if 304 in schema.answers:
        found.append(_IF_NONE_MATCH)
    return found


def response_headers(schema: OperationSchema) -> Node:
    """Headers of a success."""
    names = ["X-Request-Id"]
    if schema.takes_idempotency_key:
        names.append("Idempotency-Replayed")
    if 304 in schema.answers:
        names.append("ETag")
    return _header_references(names)


def error_headers(*, retry_after: bool) -> Node:
    """Headers of an error."""
    return _header_references(["X-Request-Id", *(["Retry-After"] if retry_after else [])])


def _header_references(names: list[str]) -> Node:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _idempotency_key(operation: Operation) -> Node:
    schema = {"type": "string", **schema_of(IDEMPOTENCY_KEY), "pattern": _KEY_PATTERNS[operation.family]}
    return {"name": "Idempotency-Key", "in": "header", "description": _REPEATABLE, "schema": schema}


def _path_parameter(name: str, operation: Operation) -> Node:
    known = next((node for start, node in _PATH_PARAMETERS.items() if operation.path.startswith(f"{start}/{{")), None)
    return {"name": name, "in": "path", "required": True, **(known or {"schema": {"type": "string", "minLength": 1}})}


def _query_parameters(query: type[msgspec.Struct]) -> list[Node]:
    _, components = msgspec.json.schema_components([query])
    (struct,) = components.values()
    found = []
    for name, schema in struct["properties"].items():
        node: Node = {"name": name, "in": "query", "schema": schema}
        if "description" in schema:
            node["description"] = schema.pop("description")
        found.append(node)
    return found
