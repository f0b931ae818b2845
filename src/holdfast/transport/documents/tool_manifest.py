"""`/v1/tool`: every operation as a tool, with the schema of what it takes. Made from the OpenAPI document."""

from __future__ import annotations

from typing import Any

from holdfast.operations.table import OPERATIONS, SYSTEM, Operation

Node = dict[str, Any]


def tool_manifest(openapi: Node) -> Node:
    """One entry per operation that does something: path, query and body are one flat object of arguments."""
    return {"tools": [_tool(operation, openapi) for operation in OPERATIONS if operation.family != SYSTEM]}


def _tool(operation: Operation, openapi: Node) -> Node:
    path = operation.path.replace("...", "")
    described = openapi["paths"][path][operation.method.lower()]
    properties: Node = {}
    required: list[str] = []
    for parameter in described.get("parameters", ()):
        if parameter["in"] in {"path", "query"}:
            properties[parameter["name"]] = parameter["schema"] | {"description": parameter.get("description", "")}
            required += [parameter["name"]] if parameter.get("required") else []
    schema: Node = {"type": "object"}
    body = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        whole = _resolved(body, openapi)
        properties |= whole.get("properties", {})
        required += whole.get("required", [])
    schema |= {"properties": properties, "required": sorted(set(required))}
    return {
        "name": operation.name,
        "description": operation.summary,
        "method": operation.method,
        "endpoint": path,
        "inputSchema": standalone(schema, openapi),
    }


def standalone(schema: Node, openapi: Node) -> Node:
    """A schema that brings along everything it refers to, under `$defs`."""
    used = _used(schema, openapi, {})
    whole: Node = _local(schema) | ({"$defs": used} if used else {})
    return whole


def _resolved(node: Node, openapi: Node) -> Node:
    reference = node.get("$ref")
    found: Node = openapi["components"]["schemas"][reference.rsplit("/", 1)[1]] if reference else node
    return found


def _used(node: Any, openapi: Node, found: Node) -> Node:
    """Every schema that is referred to, under `$defs`; the references are made to point there."""
    if isinstance(node, list):
        for element in node:
            _used(element, openapi, found)
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "$ref" and value.startswith("#/components/schemas/"):
                target = value.rsplit("/", 1)[1]
                if target not in found:
                    found[target] = {}
                    found[target] = _local(openapi["components"]["schemas"][target])
                    _used(openapi["components"]["schemas"][target], openapi, found)
            else:
                _used(value, openapi, found)
    return found


def _local(node: Any) -> Any:
    """The same schema, with references that stay within the document."""
    if isinstance(node, list):
        return [_local(element) for element in node]
    if isinstance(node, dict):
        return {
            name: value.replace("#/components/schemas/", "#/$defs/") if name == "$ref" else _local(value)
            for name, value in node.items()
        }
    return node
