"""The OpenAPI 3.1 document, made from the table of operations and their shapes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

from holdfast import __version__
from holdfast.operations.table import HOLDFAST_API, OCTOSTORE, OPERATIONS, ORCHESTRION, SYSTEM, Operation
from holdfast.transport.http.schemas import parameters
from holdfast.transport.http.schemas.all_operations import SHAPES
from holdfast.transport.http.schemas.operation_schema import JSON, Shape
from holdfast.transport.http.schemas.refusals import ENVELOPES, refusals_of

Node = dict[str, Any]

_SCHEMAS = "#/components/schemas/"
_FAMILIES = {
    HOLDFAST_API: "Our own routes. Refusals are RFC 9457 problems.",
    ORCHESTRION: "Wire-compatible with Orchestrion V1.",
    OCTOSTORE: "Wire-compatible with OctoStore 0.14.",
    SYSTEM: "Probes and documents about the server.",
}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key that this server issued."},
    "adminKey": {"type": "apiKey", "in": "header", "name": "X-Admin-Key", "description": "The operator's key."},
}
_WAITING = {409, 429, 503, 507}
_BY_THE_SERVER = {408: "TooSlow", 414: "AddressTooLong", 431: "HeadTooLarge"}
"""Refusals that come before any operation is known, in one form everywhere."""


def openapi() -> Node:
    """The whole document. Operations that have no shape are not in it."""
    described = [(operation, SHAPES[operation.name]) for operation in OPERATIONS if operation.name in SHAPES]
    schemas = _Schemas([shape for _, shape in described])
    responses: Node = {name: _by_the_server(status, schemas) for status, name in _BY_THE_SERVER.items()}
    paths: Node = {}
    for operation, shape in described:
        path = paths.setdefault(operation.path.replace("...", ""), {})
        path[operation.method.lower()] = _operation(operation, shape, schemas, responses)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": __version__,
            "summary": "Every piece of agent work has one live owner, a visible history and automatic recovery.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "tags": [{"name": name, "description": description} for name, description in _FAMILIES.items()],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "responses": responses,
            "headers": parameters.HEADERS,
            "securitySchemes": _SECURITY,
        },
    }


class _Schemas:
    """JSON Schema of every type, asked for at once so that each is told once."""

    def __init__(self, shapes: list[Shape]) -> None:
        types: dict[Any, None] = dict.fromkeys(envelope for envelope, _, _ in ENVELOPES.values())
        for shape in shapes:
            types |= dict.fromkeys(kind for answer in shape.answers.values() for kind in _kinds(answer))
            if shape.body is not None:
                types[shape.body] = None
        found, self.components = msgspec.json.schema_components(types, ref_template=_SCHEMAS + "{name}")
        twins = [name for name in self.components if "." in name]
        assert not twins, f"two types have the same name: {twins}"
        self._schemas = dict(zip(types, found, strict=True))

    def of(self, answer: Any) -> Node:
        """The schema of a type, or of one of several."""
        found: list[Node] = [self._schemas[kind] for kind in _kinds(answer)]
        return found[0] if len(found) == 1 else {"anyOf": found}


def _kinds(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else () if answer is None else (answer,)


def _operation(operation: Operation, shape: Shape, schemas: _Schemas, responses: Node) -> Node:
    node: Node = {
        "operationId": camel(operation.name),
        "tags": [operation.family],
        "summary": operation.summary,
        "security": [{name: [operation.scope]} for name in _SECURITY] if operation.scope else [],
    }
    taken = parameters.of(operation, shape)
    if taken:
        node["parameters"] = taken
    if shape.body is not None:
        needed = operation.family == OCTOSTORE or any(field.required for field in msgspec.structs.fields(shape.body))
        node["requestBody"] = {"required": needed, "content": {JSON: {"schema": schemas.of(shape.body)}}}
    node["responses"] = _responses(operation, shape, schemas, responses)
    return node


def _responses(operation: Operation, shape: Shape, schemas: _Schemas, shared: Node) -> Node:
    told: dict[int, Node] = {
        status: {"$ref": f"#/components/responses/{_BY_THE_SERVER[status]}"} for status in _BY_THE_SERVER
    }
    for status, codes in refusals_of(operation, shape).items():
        refusal = _refusal(operation.family, status, codes, schemas)
        if status in shape.answers:  # a success in all but its number: both are told
            refusal["content"][shape.media]["schema"] = {
                "anyOf": [schemas.of(shape.answers[status]), refusal["content"][shape.media]["schema"]]
            }
            told[status] = refusal
            continue
        name = ".".join((operation.family, str(status), *codes))
        shared[name] = refusal
        told[status] = {"$ref": f"#/components/responses/{name}"}
    for status, answer in shape.answers.items():
        told.setdefault(status, _answer(status, answer, shape, schemas))
    return {str(status): told[status] for status in sorted(told)}


def _answer(status: int, answer: Any, shape: Shape, schemas: _Schemas) -> Node:
    node: Node = {"description": HTTPStatus(status).phrase, "headers": parameters.answered(shape)}
    if answer is not None:
        node["content"] = {shape.media: {"schema": schemas.of(answer)}}
        node["content"] |= {media: {"schema": {"type": "string"}} for media in shape.texts}
    return node


def _refusal(family: str, status: int, codes: list[str], schemas: _Schemas) -> Node:
    envelope, media, field = ENVELOPES[family]
    schema = {"allOf": [schemas.of(envelope), {"properties": {field: {"enum": codes}}}]}
    headers = parameters.refused(waiting=status in _WAITING)
    return {"description": HTTPStatus(status).phrase, "headers": headers, "content": {media: {"schema": schema}}}


def _by_the_server(status: int, schemas: _Schemas) -> Node:
    return _refusal(SYSTEM, status, ["invalid_input"], schemas)


def camel(name: str) -> str:
    """An operation's name as OpenAPI's clients spell it."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
