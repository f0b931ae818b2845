"""Arguments of MCP tools and their location in the HTTP request, generated from the OpenAPI document.

Arguments are in camelCase; a duration is a whole number of milliseconds and its name ends in `Ms`.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.operations import bounds
from holdfast.operations.operation import Operation
from holdfast.transport import untrusted_text
from holdfast.transport.documents.tool_manifest import standalone
from holdfast.transport.http.system.openapi import camel

Node = dict[str, Any]

PATH, QUERY, BODY, HEADER = "path", "query", "body", "header"
IDEMPOTENCY_KEY, SESSION_SECRET = "Idempotency-Key", "Holdfast-Session-Secret"
MILLISECONDS = 1000
LEASE_ID, SPACE = "lease_id", "space"

CLAIM_SECONDS = bounds.CLAIMED_TASK_LEASE.most
_CLAIM_TIMES = {
    **dict.fromkeys(("claim_job", "claim_any_job"), "ttl_seconds"),
    **dict.fromkeys(("claim_task", "claim_task_by_id"), "lease_duration_seconds"),
}
"""Fields that say how long a claim lasts, beside those whose default is as long."""

_SECONDS = ("_seconds", "Seconds")
_BOUNDS = ("minimum", "maximum", "default")
_DESCRIPTIONS = {
    "jobId": "A name for the work that all agents would choose, such as `repo/issue-1842`.",
    "owner": "Your name, shown to others; it proves nothing.",
    "id": "The task's id.",
    "reservationId": "The `reservation_id` that reserve_files returned.",
    "leaseId": "The lease id that your claim returned: proof that you hold it.",
    "ttlMs": "How long the lease lasts without a heartbeat; a multiple of 1000.",
    "waitMs": "How long to wait.",
    "idempotencyKey": "A string you choose: a call that is repeated with the same key has one effect and one result.",
    "note": "A short text for the next holder.",
    "checkpoint": "Any JSON from which the next holder can continue.",
    "progress": "Any JSON that shows others your progress.",
    "metadata": "A JSON object or a string, visible to everyone.",
    "token": "Your fencing token, if you want it checked as well.",
    "fencingToken": "Your fencing token, if you want it checked as well.",
    "sessionId": "What you claim is released when this session ends.",
    "sessionLeaseId": "The lease id of the session.",
    "type": "The task type.",
    "types": "Further task types that you accept.",
    "workerId": "Your name, shown to others.",
    "limit": "The maximum number of results.",
    "cursor": "`nextCursor` of the previous page.",
    "payload": f"The input of the worker, a JSON object: {bounds.TASK_PAYLOAD}.",
    "uniqueKey": "At most one unfinished task has this key.",
    "result": "The result, a JSON object.",
    "reason": "What went wrong.",
    "retryAfterMs": "How long to wait before the next attempt.",
    "delayMs": "How long the task cannot be claimed.",
    "permanent": "Whether retrying is pointless.",
    "after": "`nextCursor` of the previous page, or the `seq` of the last event you have.",
    "requestId": "Only events of this request.",
    "name": "A name that stays the same across restarts.",
    "secret": "The secret that opening the session returned; required to resume it.",
    "context": "Any JSON that you need after a restart.",
}
"""Description of an argument, the same for every tool that has it, unless the next table has another."""

_DESCRIPTIONS_BY_OPERATION = {
    "claim_any_job": {"anyOf": "Names of jobs, in the order of your preference."},
    "reserve_files": {
        "space": "The repository: `space` in its `.holdfast.toml`, usually owner/name.",
        "paths": "Files and patterns, relative to the root of the repository: `README.md`, `src/auth/` for everything "
        "below, `src/*.py`, `**/test_*.py`.",
        "mode": "`exclusive` to change the files; `shared` to only rely on them, beside others that do.",
        "reason": "What you do with the files, for others to read.",
        "metadata": "A JSON object, visible to everyone.",
        "waitingId": "The `waiting_id` of the last answer, at most 10 s old: keeps your place among those who wait.",
    },
    "release_files": {"paths": "Only these of the reserved paths, as you wrote them; without it, all."},
    "list_mine": {
        "owner": "Only what was claimed under this name.",
        "sessionId": "Only what this session holds; with its `secret`, the answer has the lease ids.",
        "secret": "The secret that opening the session returned.",
    },
    "check_files": {
        "space": "The repository: `space` in its `.holdfast.toml`, usually owner/name.",
        "paths": "Files, relative to the root of the repository, without wildcards.",
        "leaseIds": "The lease ids of your own reservations.",
    },
}
_RESERVATION = "/v1/reservations/{id}"
_DEFAULT_SPACE = "By default that of the folder in which this program runs."
_AGENT_DEFAULTS = {
    LEASE_ID: "By default the one that this program remembers.",
    "owner": "By default the name of this agent.",
    "worker_id": "By default the name of this agent.",
}


class Field(msgspec.Struct, frozen=True):
    """One argument of a tool."""

    argument: str
    wire: str
    """Its name in the request."""
    location: str
    schema: Node
    required: bool
    duration: bool = False
    """Whether the request has it in seconds."""
    description: str | None = None
    if_omitted: int | None = None
    """What the request has if the call has no such argument."""


def fields_of(operation: Operation, openapi: Node) -> tuple[Field, ...]:
    """All arguments of an operation: path, query, body and idempotency key."""
    node = openapi["paths"][operation.path.replace("...", "")][operation.method.lower()]
    fields = [
        _field(parameter["name"], parameter["in"], parameter["schema"], required=parameter.get("required", False))
        for parameter in node.get("parameters", ())
        if parameter["in"] in {PATH, QUERY}
    ]
    body = node.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        whole = openapi["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]
        # Some routes accept requests of old clients without a lease id; a tool always requires it.
        needed = {*whole.get("required", []), LEASE_ID}
        fields += [_field(name, BODY, schema, required=name in needed) for name, schema in whole["properties"].items()]
    keys = [parameter for parameter in node.get("parameters", ()) if parameter["name"] == IDEMPOTENCY_KEY]
    if keys and not any(field.argument == "idempotencyKey" for field in fields):
        fields.append(Field("idempotencyKey", IDEMPOTENCY_KEY, HEADER, keys[0]["schema"], required=False))
    secrets = [parameter for parameter in node.get("parameters", ()) if parameter["name"] == SESSION_SECRET]
    fields += [Field("secret", SESSION_SECRET, HEADER, each["schema"], required=False) for each in secrets]
    return tuple(_named(field, operation) for field in fields)


def with_default_space(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The arguments where the program can find the `space` of a repository itself: it is optional."""
    return tuple(
        replace(field, required=False, description=f"{field.description} {_DEFAULT_SPACE}")
        if field.wire == SPACE
        else field
        for field in fields
    )


def with_agent_defaults(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The arguments where the program is one agent, which has a name and knows its lease ids: they are optional."""
    return tuple(
        replace(field, required=False, description=f"{field.description} {_AGENT_DEFAULTS[field.wire]}")
        if field.wire in _AGENT_DEFAULTS
        else field
        for field in fields
    )


def with_claim_time(operation: Operation, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The arguments of a claim by a model that renews by itself: it lasts longer, since models think for minutes."""
    wire = _CLAIM_TIMES.get(operation.name)
    return tuple(
        replace(field, if_omitted=CLAIM_SECONDS, schema=field.schema | {"default": CLAIM_SECONDS * MILLISECONDS})
        if field.wire == wire
        else field
        for field in fields
    )


def input_schema(fields: tuple[Field, ...], openapi: Node) -> Node:
    """All arguments as one flat object."""
    properties = {field.argument: _with_description(field) for field in fields}
    required = [field.argument for field in fields if field.required]
    schema: Node = _without_titles(
        standalone({"type": "object", "properties": properties, "required": required}, openapi)
    )
    return schema


def output_schema(operation: Operation, openapi: Node) -> Node:
    """The result of a tool: one of the operation's successes, or a refusal."""
    node = openapi["paths"][operation.path.replace("...", "")][operation.method.lower()]
    successes = [node["responses"][status] for status in sorted(node["responses"]) if status.startswith("2")]
    kinds: list[Node] = []
    for answer in successes:
        schema = answer["content"]["application/json"]["schema"]
        kinds += [kind for kind in schema.get("anyOf", [schema]) if kind not in kinds]
    refusal = {
        "description": "A refusal; `agent_contract` lists what to do next.",
        "type": "object",
        "properties": {
            "error": {"type": "string"},
            "message": {"type": "string"},
            "agent_contract": {"$ref": "#/components/schemas/AgentContract"},
        },
        "required": ["error", "message", "agent_contract"],
    }
    marks = {untrusted_text.KEY: {"type": "array", "items": {"type": "string"}, "description": untrusted_text.RULE}}
    result = {"type": "object", "properties": marks, "anyOf": [*kinds, refusal]}
    whole: Node = _without_titles(standalone(result, openapi))
    return whole


def _field(name: str, location: str, schema: Node, *, required: bool) -> Field:
    seconds = next((end for end in _SECONDS if name.endswith(end)), None)
    if seconds is None:
        return Field(camel(name), name, location, _without_null(schema), required)
    argument = f"{camel(name.removesuffix(seconds))}Ms"
    return Field(argument, name, location, _in_milliseconds(_without_null(schema)), required, duration=True)


def _without_null(schema: Node) -> Node:
    """Drop null from a schema: an optional argument is simply omitted, which is easier for a model."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf" and (name, value) != ("default", None)}
    if len(kinds) > 1:
        return {**rest, "anyOf": kinds}
    return {**rest, **kinds[0]} if kinds else rest


def _in_milliseconds(schema: Node) -> Node:
    bounds: Node = {name: int(schema[name] * MILLISECONDS) for name in _BOUNDS if name in schema}
    # Durations that the API takes in whole seconds: the schema requires whole seconds, because the handler does.
    whole = {"multipleOf": MILLISECONDS} if schema.get("type") == "integer" else {}
    return {"type": "integer", **bounds, **whole}


def _without_titles(node: Any) -> Any:
    """Drop the titles of types: they only cost the model tokens."""
    if isinstance(node, list):
        return [_without_titles(element) for element in node]
    if isinstance(node, dict):
        return {
            name: _without_titles(value) for name, value in node.items() if name != "title" or isinstance(value, dict)
        }
    return node


def _named(field: Field, operation: Operation) -> Field:
    """The argument with its description, and under the name that answers have for it."""
    if field.location == PATH and operation.path.startswith(_RESERVATION):
        field = replace(field, argument="reservationId")
    own = _DESCRIPTIONS_BY_OPERATION.get(operation.name, {})
    text = own.get(field.argument) or _DESCRIPTIONS.get(field.argument) or field.schema.get("description")
    return replace(field, description=text)


def _with_description(field: Field) -> Node:
    return field.schema | ({"description": field.description} if field.description else {})
