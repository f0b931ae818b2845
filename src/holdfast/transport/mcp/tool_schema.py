"""What a tool takes, and where in a request each argument goes. Made from the OpenAPI document.

Arguments are in camelCase; a duration is a whole number of milliseconds and its name ends in `Ms`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.operations.table import Operation
from holdfast.transport.documents.tool_manifest import standalone
from holdfast.transport.http.system.openapi import camel

Node = dict[str, Any]

PATH, QUERY, BODY, HEADER = "path", "query", "body", "header"
IDEMPOTENCY_KEY = "Idempotency-Key"
MILLISECONDS = 1000
PROOF = "lease_id"

_SECONDS = ("_seconds", "Seconds")
_BOUNDS = ("minimum", "maximum", "default")
_WORDS = {
    "jobId": "What all agents would call this work, such as `repo/issue-1842`.",
    "owner": "Who you are, for others to read; it proves nothing.",
    "id": "The task's id.",
    "leaseId": "The proof that your claim answered.",
    "ttlMs": "How long it is yours without a heartbeat, in whole seconds.",
    "waitMs": "How long to wait for it.",
    "idempotencyKey": "A text of your own: the same call under the same key has one effect and one answer.",
    "note": "A few words for whoever comes after you.",
    "checkpoint": "Any JSON that lets the next one go on where you are.",
    "progress": "Any JSON that shows others how far you are.",
    "metadata": "A JSON object or a text, shown to everybody.",
    "token": "Your fencing token, if you want it checked as well.",
    "fencingToken": "Your fencing token, if you want it checked as well.",
    "sessionId": "What you claim is given back when this session ends.",
    "sessionLeaseId": "The session's own lease id.",
    "type": "Which kind of task.",
    "types": "More kinds of task that will do.",
    "workerId": "Who you are, for others to read.",
    "limit": "At most so many.",
    "cursor": "`nextCursor` of the page before.",
    "payload": "What the worker needs to know: at most 64 KB and 5 levels.",
    "uniqueKey": "At most one live task has this key.",
    "result": "What came of it.",
    "reason": "What went wrong.",
    "retryAfterMs": "How long to wait before the next attempt.",
    "delayMs": "How long nobody can claim it.",
    "permanent": "Trying again is pointless.",
    "after": "`nextCursor` of the page before, or the `seq` of the last event you have seen.",
    "requestId": "Only what this request did.",
    "name": "What you call yourself in every life.",
    "secret": "What the session's first life was given; needed to resume it.",
    "context": "Any JSON that your next life must know.",
}
"""What an argument means: the same with every tool that has it."""


class Field(msgspec.Struct, frozen=True):
    """One argument."""

    argument: str
    wire: str
    """Its name in the request."""
    place: str
    schema: Node
    required: bool
    duration: bool = False
    """The request has it in seconds."""


def form_of(operation: Operation, openapi: Node) -> tuple[Field, ...]:
    """Every argument of an operation: path, query, body, and the key that makes it safe to repeat."""
    node = openapi["paths"][operation.path.replace("...", "")][operation.method.lower()]
    fields = [
        _field(taken["name"], taken["in"], taken["schema"], required=taken.get("required", False))
        for taken in node.get("parameters", ())
        if taken["in"] in {PATH, QUERY}
    ]
    body = node.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        whole = openapi["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]
        # Some routes let old clients leave their proof out; a tool never does.
        needed = {*whole.get("required", []), PROOF}
        fields += [_field(name, BODY, schema, required=name in needed) for name, schema in whole["properties"].items()]
    keys = [taken for taken in node.get("parameters", ()) if taken["name"] == IDEMPOTENCY_KEY]
    if keys and not any(field.argument == "idempotencyKey" for field in fields):
        fields.append(Field("idempotencyKey", IDEMPOTENCY_KEY, HEADER, keys[0]["schema"], required=False))
    return tuple(fields)


def input_schema(form: tuple[Field, ...], openapi: Node) -> Node:
    """All arguments as one flat object."""
    properties = {field.argument: _described(field) for field in form}
    required = [field.argument for field in form if field.required]
    schema: Node = _untitled(standalone({"type": "object", "properties": properties, "required": required}, openapi))
    return schema


def output_schema(operation: Operation, openapi: Node) -> Node:
    """What a tool answers: one of the operation's successes, or a refusal."""
    node = openapi["paths"][operation.path.replace("...", "")][operation.method.lower()]
    told = [node["responses"][status] for status in sorted(node["responses"]) if status.startswith("2")]
    kinds: list[Node] = []
    for answer in told:
        schema = answer["content"]["application/json"]["schema"]
        kinds += [kind for kind in schema.get("anyOf", [schema]) if kind not in kinds]
    refusal = {
        "description": "A refusal; `agent_contract` says what to do next.",
        "type": "object",
        "properties": {
            "error": {"type": "string"},
            "message": {"type": "string"},
            "agent_contract": {"$ref": "#/components/schemas/AgentContract"},
        },
        "required": ["error", "message", "agent_contract"],
    }
    whole: Node = _untitled(standalone({"type": "object", "anyOf": [*kinds, refusal]}, openapi))
    return whole


def _field(name: str, place: str, schema: Node, *, required: bool) -> Field:
    seconds = next((end for end in _SECONDS if name.endswith(end)), None)
    if seconds is None:
        return Field(camel(name), name, place, _without_null(schema), required)
    argument = f"{camel(name.removesuffix(seconds))}Ms"
    return Field(argument, name, place, _in_milliseconds(_without_null(schema)), required, duration=True)


def _without_null(schema: Node) -> Node:
    """An argument that may be null may as well be left out; a model need not be told of both."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf" and (name, value) != ("default", None)}
    if len(kinds) > 1:
        return {**rest, "anyOf": kinds}
    return {**rest, **kinds[0]} if kinds else rest


def _in_milliseconds(schema: Node) -> Node:
    bounds: Node = {name: int(schema[name] * MILLISECONDS) for name in _BOUNDS if name in schema}
    # Some durations are kept in whole seconds: the schema says so rather than let a call fail.
    whole = {"multipleOf": MILLISECONDS} if schema.get("type") == "integer" else {}
    return {"type": "integer", **bounds, **whole}


def _untitled(node: Any) -> Any:
    """Without the names that types have among themselves: a model reads all of this."""
    if isinstance(node, list):
        return [_untitled(element) for element in node]
    if isinstance(node, dict):
        return {name: _untitled(value) for name, value in node.items() if name != "title" or isinstance(value, dict)}
    return node


def _described(field: Field) -> Node:
    words = field.schema.get("description") if field.argument not in _WORDS else _WORDS[field.argument]
    return field.schema | ({"description": words} if words else {})
