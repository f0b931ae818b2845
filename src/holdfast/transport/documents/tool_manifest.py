"""`/v1/tool`: every operation as a tool with its input schema, generated from the OpenAPI document."""

from __future__ import annotations

from typing import Any

from holdfast.operations.operation import SYSTEM, Operation
from holdfast.operations.table import OPERATIONS

Node = dict[str, Any]


def tool_manifest(openapi: Node) -> Node:
    """One tool for each operation; path, query and body are one flat object of arguments."""
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
        whole = _resolve(body, openapi)
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
    """A schema with all schemas that it refers to, under `$defs`."""
    found = _collect_references(schema, openapi, {})
    whole: Node = _with_local_references(schema) | ({"$defs": found} if found else {})
    return whole


def _resolve(node: Node, openapi: Node) -> Node:
    reference = node.get("$ref")
    found: Node = openapi["components"]["schemas"][reference.rsplit("/", 1)[1]] if reference else node
    return found


def _collect_references(node: Any, openapi: Node, found: Node) -> Node:
    """Collect all schemas that a node refers to, directly or not, with local references."""
    if isinstance(node, list):
        for element in node:
            _collect_references(element, openapi, found)
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "$ref" and value.startswith("#/components/schemas/"):
                target = value.rsplit("/", 1)[1]
                if target not in found:
                    found[target] = {}
                    found[target] = _with_local_references(openapi["components"]["schemas"][target])
                    _collect_references(openapi["components"]["schemas"][target], openapi, found)
            else:
                _collect_references(value, openapi, found)
    return found


def _with_local_references(node: Any) -> Any:
    """The same schema with references to `$defs`."""
    if isinstance(node, list):
        return [_with_local_references(element) for element in node]
    if isinstance(node, dict):
        return {
            name: value.replace("#/components/schemas/", "#/$defs/")
            if name == "$ref"
            else _with_local_references(value)
            for name, value in node.items()
        }
    return node
