"""Arguments of MCP tools and their location in the HTTP request, generated from the OpenAPI document.

Arguments are in camelCase; a duration is a whole number of milliseconds and its name ends in `Ms`. Schemas use only
keywords that every host accepts: each argument has one type, and there are no references, alternatives or patterns.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.limits import NAME_LIMIT
from holdfast.operations.bounds import CLAIMED_TASK_LEASE, OFFER_CODE, QUERY_TEXT, TASK_LABEL, TOOL_WAIT
from holdfast.transport.http.system.openapi import camel
from holdfast.transport.lease_uses import HOLDERS
from holdfast.transport.mcp.argument_descriptions import describe
from holdfast.transport.mcp.tool import ACTION, Call, Tool

Node = dict[str, Any]

PATH, QUERY, BODY, HEADER = "path", "query", "body", "header"
IDEMPOTENCY_KEY, SESSION_SECRET = "Idempotency-Key", "Holdfast-Session-Secret"
MILLISECONDS = 1000
LEASE_ID, SPACE, WAIT = "lease_id", "space", "wait_seconds"

CLAIM_SECONDS = CLAIMED_TASK_LEASE.most
_CLAIM_TIMES = {
    **dict.fromkeys(("claim_job", "claim_any_job"), "ttl_seconds"),
    **dict.fromkeys(("claim_task", "claim_task_by_id"), "lease_duration_seconds"),
}
"""Fields that say how long a claim lasts, beside those whose default is as long."""

LEFT_OUT = {"create_task": {"createdBy", "reviewedBy", "source", "approval"}}
"""Fields that no tool has, by operation: what people need, which would make the list of tools too long."""

_SECONDS = ("_seconds", "Seconds")
_DURATION_BOUNDS = ("minimum", "maximum", "default")
_COMMON_KEYWORDS = (
    *("type", "enum", "items", "properties", "required", "default"),
    *("minimum", "maximum", "maxLength", "minItems", "maxItems"),
)
"""Keywords of JSON Schema that all hosts accept, besides `description`. Empty strings are refused by the handler."""
_LOWER_BOUNDS = {"minimum", "minItems"}
_LENGTHS_OF_NAMES = {OFFER_CODE.most, TASK_LABEL.most, NAME_LIMIT, QUERY_TEXT.most}
"""Limits of names, ids, keys and filters, which no model exceeds: the list of tools is shorter without them."""
_MOST_OF_ANY_FIELD = 2**53
_DEFAULT_SPACE = "By default that of the folder in which this program runs."
_SESSION_PROOF = {"session_id", "session_lease_id"}
AGENT_DEFAULTS = {
    LEASE_ID: "By default the one that this program remembers.",
    "owner": "By default the name of this agent.",
    "worker_id": "By default the name of this agent.",
}
"""Fields that a program that is one agent fills in itself."""


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
    whole_seconds: bool = False
    """Whether such a duration must be a multiple of 1000."""
    description: str = ""
    if_omitted: int | None = None
    """What the request has if the call has no such argument."""


def fields_of(call: Call, openapi: Node) -> tuple[Field, ...]:
    """All arguments of a call: path, query, body, idempotency key and secret of a session."""
    operation = call.target
    node = openapi["paths"][operation.path.replace("...", "")][operation.method.lower()]
    fields = [
        _field(call, parameter, parameter["in"], _common(parameter["schema"], openapi))
        for parameter in node.get("parameters", ())
        if parameter["in"] in {PATH, QUERY}
    ]
    body = node.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        whole = openapi["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]
        # Some routes accept requests of old clients without a lease id; a tool always requires it.
        needed = {*whole.get("required", []), LEASE_ID}
        for name, schema in whole["properties"].items():
            if name not in LEFT_OUT.get(operation.name, ()):
                fields.append(_field(call, {"name": name, "required": name in needed}, BODY, _common(schema, openapi)))
    keys = [parameter for parameter in node.get("parameters", ()) if parameter["name"] == IDEMPOTENCY_KEY]
    if keys and not any(field.argument == "idempotencyKey" for field in fields):
        fields.append(
            Field("idempotencyKey", IDEMPOTENCY_KEY, HEADER, _common(keys[0]["schema"], openapi), required=False)
        )
    fields += [
        Field("secret", SESSION_SECRET, HEADER, _common(parameter["schema"], openapi), required=False)
        for parameter in node.get("parameters", ())
        if parameter["name"] == SESSION_SECRET
    ]
    return tuple(replace(field, description=describe(operation.name, field.argument, field.schema)) for field in fields)


def with_default_space(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The arguments where the program can find the `space` of a repository itself: it is optional."""
    return tuple(
        replace(field, required=False, description=f"{field.description} {_DEFAULT_SPACE}")
        if field.wire == SPACE
        else field
        for field in fields
    )


def with_agent_defaults(operation: str, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The arguments where the program is one agent, which has a name and knows its lease ids: they are optional.

    It renews sessions by itself, so the writes of a holder need not name one.
    """
    return tuple(
        replace(field, required=False, description=f"{field.description} {AGENT_DEFAULTS[field.wire]}")
        if field.wire in AGENT_DEFAULTS and field.location == BODY
        else field
        for field in fields
        if operation not in HOLDERS or field.wire not in _SESSION_PROOF
    )


def with_claim_time(operation: str, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The arguments of a claim by a model that renews by itself: it lasts longer, since models think for minutes."""
    wire = _CLAIM_TIMES.get(operation)
    return tuple(
        replace(field, if_omitted=CLAIM_SECONDS, schema=field.schema | {"default": CLAIM_SECONDS * MILLISECONDS})
        if field.wire == wire
        else field
        for field in fields
    )


def _for_list(schema: Node) -> Node:
    """The schema as the list has it: without lower bounds that every sensible value keeps."""
    return {name: value for name, value in schema.items() if name not in _LOWER_BOUNDS or value > 0}


def input_schema(tool: Tool, fields: dict[str, tuple[Field, ...]]) -> Node:
    """All arguments of all operations of a tool as one flat object; required are those of its default call."""
    properties: Node = {}
    if tool.actions:
        properties[ACTION] = {
            "type": "string",
            "enum": tool.actions,
            "description": f"What to do with it. E.g. `{tool.actions[0]}`.",
        }
    for call in sorted(tool.calls, key=lambda call: not call.is_default):
        for field in fields[call.operation]:
            properties.setdefault(field.argument, _for_list(field.schema) | {"description": field.description})
    default = tool.default
    required = (
        [ACTION] if default is None else [field.argument for field in fields[default.operation] if field.required]
    )
    return {"type": "object", "properties": properties, "required": required}


def _field(call: Call, parameter: Node, location: str, schema: Node) -> Field:
    """An argument with the name and the schema that it has in the tool."""
    name, required = parameter["name"], parameter.get("required", False)
    if name in call.fixed:
        schema["default"] = call.fixed[name]
    if name in call.first:
        schema["maxItems"] -= 1
    seconds = next((end for end in _SECONDS if name.endswith(end)), None)
    argument = call.names.get(name) or (camel(name) if seconds is None else f"{camel(name.removesuffix(seconds))}Ms")
    if seconds is None:
        return Field(argument, name, location, schema, required)
    whole = schema.get("type") == "integer"
    return Field(argument, name, location, _in_milliseconds(name, schema), required, duration=True, whole_seconds=whole)


def _common(schema: Node, openapi: Node) -> Node:
    """The schema in the subset that every host accepts: with one type, and without what some hosts refuse."""
    if "$ref" in schema:
        schema = openapi["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if kinds:
        kinds.sort(key=lambda kind: kind.get("type") != "number")  # which an integer is as well
        schema = _common(kinds[0], openapi) | {name: value for name, value in schema.items() if name != "anyOf"}
    found = {name: schema[name] for name in _COMMON_KEYWORDS if schema.get(name) is not None}
    if isinstance(found.get("type"), list):
        found["type"] = found["type"][0]
    # A value that may be any JSON: an object is what agents send, and the handler takes the rest as well.
    found.setdefault("type", "string" if "enum" in found else "object")
    if found.get("maxLength") in _LENGTHS_OF_NAMES:
        del found["maxLength"]
    if found.get("maximum", 0) >= _MOST_OF_ANY_FIELD - 1:
        del found["maximum"]
    if "items" in found:
        found["items"] = _common(found["items"], openapi)
    if "properties" in found:
        found["properties"] = {
            name: _common(value, openapi) | {"description": describe("", name, value)}
            for name, value in found["properties"].items()
        }
    return found


def _in_milliseconds(name: str, schema: Node) -> Node:
    bounds: Node = {bound: int(schema[bound] * MILLISECONDS) for bound in _DURATION_BOUNDS if bound in schema}
    if name == WAIT:
        bounds["maximum"] = TOOL_WAIT.most * MILLISECONDS
    return {"type": "integer", **bounds}
