"""The OpenAPI 3.1 document, generated from the table of operations and their schemas."""

from __future__ import annotations

from copy import deepcopy
from http import HTTPStatus
from typing import Any

import msgspec

from holdfast import __version__
from holdfast.operations.operation import HOLDFAST_API, OCTOSTORE, ORCHESTRION, SYSTEM, Operation
from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.schemas import parameters
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.schemas.examples import Example, examples
from holdfast.transport.http.schemas.operation_schema import JSON, OperationSchema
from holdfast.transport.http.schemas.refusals import ENVELOPES, refusals_of

Node = dict[str, Any]

_SCHEMAS = "#/components/schemas/"
_FAMILIES = {
    HOLDFAST_API: "Holdfast's own routes. Errors are RFC 9457 problems.",
    ORCHESTRION: "Wire-compatible with Orchestrion V1.",
    OCTOSTORE: "Wire-compatible with OctoStore 0.14.",
    SYSTEM: "Health probes, metrics and documents.",
}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key of this server."},
    "adminKey": {"type": "apiKey", "in": "header", "name": "X-Admin-Key", "description": "The operator's key."},
}
_RETRY_AFTER = {409, 429, 503, 507}
"""Statuses whose responses may have a Retry-After header."""
_SERVER_RESPONSES = {408: "TooSlow", 414: "AddressTooLong", 431: "HeadTooLarge"}
"""Errors raised before an operation is known, the same on all paths: component name by status."""
_NO_EXAMPLE = Example(status=0, answer=None)
"""While a new operation has not been recorded."""


def openapi(address: str = "/") -> Node:
    """The whole document; operations without a schema are not in it.

    `address` is the server's. By default it is that from which a client reads the document.
    """
    operations = [
        (operation, OPERATION_SCHEMAS[operation.name])
        for operation in OPERATIONS
        if operation.name in OPERATION_SCHEMAS
    ]
    components = _Components([described for _, described in operations])
    responses: Node = {name: _server_error(status, components) for status, name in _SERVER_RESPONSES.items()}
    paths: Node = {}
    for operation, described in operations:
        path = paths.setdefault(operation.path.replace("...", ""), {})
        path[operation.method.lower()] = _operation(operation, described, components, responses)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": __version__,
            "summary": "Every piece of agent work has one live owner, a visible history and automatic recovery.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": address}],
        "tags": [{"name": name, "description": description} for name, description in _FAMILIES.items()],
        "paths": paths,
        "components": {
            "schemas": components.schemas,
            "responses": responses,
            "headers": parameters.HEADERS,
            "securitySchemes": _SECURITY,
        },
    }


class _Components:
    """JSON Schemas of all types, generated in one call so that shared types become one component."""

    def __init__(self, described: list[OperationSchema]) -> None:
        types: dict[Any, None] = dict.fromkeys(envelope for envelope, _, _ in ENVELOPES.values())
        for operation in described:
            types |= dict.fromkeys(kind for answer in operation.answers.values() for kind in _types(answer))
            if operation.body is not None:
                types[operation.body] = None
        found, self.schemas = msgspec.json.schema_components(types, ref_template=_SCHEMAS + "{name}")
        clashes = [name for name in self.schemas if "." in name]
        assert not clashes, f"two types have the same name: {clashes}"
        self._by_type = dict(zip(types, found, strict=True))

    def schema_of(self, answer: Any) -> Node:
        """The schema of a type, or of a tuple of alternatives."""
        found: list[Node] = [self._by_type[kind] for kind in _types(answer)]
        return found[0] if len(found) == 1 else {"anyOf": found}


def _types(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else () if answer is None else (answer,)


def _operation(operation: Operation, described: OperationSchema, components: _Components, responses: Node) -> Node:
    node: Node = {
        "operationId": camel(operation.name),
        "tags": [operation.family],
        "summary": operation.summary,
        "security": [{name: [operation.scope]} for name in _SECURITY] if operation.scope else [],
    }
    example = deepcopy(examples().get(operation.name, _NO_EXAMPLE))  # the caller may change its document
    found = parameters.request_parameters(operation, described)
    if found:
        node["parameters"] = [_with_example(parameter, example) for parameter in found]
    body = described.body
    if body is not None:
        required = operation.family == OCTOSTORE or any(field.required for field in msgspec.structs.fields(body))
        content: Node = {"schema": components.schema_of(body)}
        if example.body is not msgspec.UNSET:
            content["example"] = example.body
        node["requestBody"] = {"required": required, "content": {JSON: content}}
    node["responses"] = _responses(operation, described, components, responses)
    answer = node["responses"].get(str(example.status), {}).get("content", {})
    if described.media in answer:
        answer[described.media]["example"] = example.answer
    return node


def _with_example(parameter: Node, example: Example) -> Node:
    """The parameter with the value that the operation's example gives it."""
    name = parameter["name"]
    given: dict[str, dict[str, Any]] = {"path": example.path, "query": example.query, "header": example.headers}
    value = given[parameter["in"]].get(name.lower() if parameter["in"] == "header" else name)
    return parameter if value is None else {**parameter, "example": value}


def _responses(operation: Operation, described: OperationSchema, components: _Components, shared: Node) -> Node:
    """All responses of an operation; errors are added to the `shared` components and referred to."""
    found: dict[int, Node] = {
        status: {"$ref": f"#/components/responses/{name}"} for status, name in _SERVER_RESPONSES.items()
    }
    for status, codes in refusals_of(operation, described).items():
        error = _error(operation.error_family, status, codes, components)
        if status in described.answers:  # a status with both a documented answer and errors
            schema = error["content"][described.media]
            schema["schema"] = {"anyOf": [components.schema_of(described.answers[status]), schema["schema"]]}
            found[status] = error
            continue
        name = ".".join((operation.error_family, str(status), *codes))
        shared[name] = error
        found[status] = {"$ref": f"#/components/responses/{name}"}
    for status, answer in described.answers.items():
        found.setdefault(status, _success(status, answer, described, components))
    return {str(status): found[status] for status in sorted(found)}


def _success(status: int, answer: Any, described: OperationSchema, components: _Components) -> Node:
    node: Node = {"description": HTTPStatus(status).phrase, "headers": parameters.response_headers(described)}
    if answer is not None:
        node["content"] = {described.media: {"schema": components.schema_of(answer)}}
        node["content"] |= {media: {"schema": {"type": "string"}} for media in described.text_media}
    return node


def _error(family: str, status: int, codes: list[str], components: _Components) -> Node:
    envelope, media, field = ENVELOPES[family]
    schema = {"allOf": [components.schema_of(envelope), {"properties": {field: {"enum": codes}}}]}
    headers = parameters.error_headers(retry_after=status in _RETRY_AFTER)
    return {"description": HTTPStatus(status).phrase, "headers": headers, "content": {media: {"schema": schema}}}


def _server_error(status: int, components: _Components) -> Node:
    return _error(OCTOSTORE, status, ["invalid_input"], components)


def camel(name: str) -> str:
    """An operation's name in camelCase, as OpenAPI clients generate it."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
