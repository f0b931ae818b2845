"""What the reference shows: groups of operations, and the objects that they use, read from the OpenAPI document."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from holdfast.operations.operation import Operation
from holdfast.operations.table import OPERATIONS
from holdfast.transport.dashboard.reference.schema_text import (
    Field,
    Node,
    Part,
    field_of,
    fields_of,
    references_of,
    type_of,
)
from holdfast.transport.http.schemas.examples import Example, examples

_GROUPS = (
    ("jobs", "Jobs", ("/v1/jobs", "/v1/heartbeats", "/v1/mine")),
    ("files", "Files", ("/v1/reservations",)),
    ("tasks", "Tasks", ("/v1/tasks",)),
    ("sessions", "Sessions", ("/v1/sessions",)),
    ("events", "Events", ("/v1/events",)),
    ("webhooks", "Webhooks", ("/v1/webhooks",)),
    ("accounts", "Accounts and keys", ("/v1/account", "/v1/keys", "/v1/recover")),
    ("billing", "Plans and billing", ("/v1/billing",)),
    ("locks", "Locks (OctoStore)", ("/locks", "/sessions", "/webhooks", "/auth")),
    ("elections", "Elections (OctoStore)", ("/elections",)),
    ("system", "Health, metrics and documents", ("/",)),
)
"""Name, title and paths of each group; an operation belongs to the first that fits."""


class Answer(msgspec.Struct, frozen=True):
    """A success of an operation; `example` is None for a status that the example did not get."""

    status: str
    description: str
    media: str
    kind: tuple[Part, ...]
    example: str | None


class Entry(msgspec.Struct, frozen=True):
    """One operation."""

    operation: Operation
    example: Example
    scopes: tuple[str, ...]
    """Scopes of which a key needs one; empty if no key is needed."""
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    answers: tuple[Answer, ...]
    errors: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Status, its name, and the codes of the errors."""
    uses: frozenset[str]
    """The objects that its request and its answers name directly."""

    def matches(self, text: str) -> bool:
        """Whether its name, path or summary contains every word of a search."""
        operation = self.operation
        haystack = f"{operation.name} {operation.method} {operation.path} {operation.summary}".lower()
        return all(word in haystack for word in text.lower().split())


class ObjectType(msgspec.Struct, frozen=True):
    """An object that several operations use."""

    name: str
    description: str
    fields: tuple[Field, ...]


class Group(msgspec.Struct, frozen=True):
    """Operations about one noun, and all objects that they use."""

    name: str
    title: str
    entries: tuple[Entry, ...]
    types: tuple[ObjectType, ...]


def reference(document: Node) -> tuple[Group, ...]:
    """The groups of an OpenAPI document."""
    schemas = document["components"]["schemas"]
    entries: dict[str, list[Entry]] = {name: [] for name, _, _ in _GROUPS}
    for operation in OPERATIONS:
        entries[_group_of(operation.path)].append(_entry(operation, document))
    return tuple(Group(name, title, tuple(entries[name]), _types(entries[name], schemas)) for name, title, _ in _GROUPS)


def _group_of(path: str) -> str:
    return next(name for name, _, starts in _GROUPS if path.startswith(starts))


def _entry(operation: Operation, document: Node) -> Entry:
    node: Node = document["paths"][operation.path.replace("...", "")][operation.method.lower()]
    parameters = [
        field_of(
            each["name"],
            each["schema"],
            required=each.get("required", False),
            description=each.get("description", ""),
            place=each["in"],
        )
        for each in node.get("parameters", ())
    ]
    bodies = node.get("requestBody", {}).get("content", {}).values()
    body = next((_resolved(content["schema"], document) for content in bodies), None)
    responses = {status: _resolved(response, document) for status, response in node["responses"].items()}
    successes = {status: response for status, response in responses.items() if status < "400"}
    return Entry(
        operation=operation,
        example=examples()[operation.name],
        scopes=tuple((operation.scope or "").split()),
        parameters=tuple(parameters),
        body=() if body is None else fields_of(body),
        answers=tuple(answer for status, response in successes.items() for answer in _answers(status, response)),
        errors=tuple(
            (status, response["description"], codes)
            for status, response in responses.items()
            if (codes := _codes(response))
        ),
        uses=frozenset(references_of([body or {}, *(each.get("content", {}) for each in successes.values())])),
    )


def _answers(status: str, response: Node) -> list[Answer]:
    """The answer in each media type; one without a body has none."""
    description, contents = response["description"], response.get("content", {})
    if not contents:
        return [Answer(status, description, "", (), None)]
    return [
        Answer(status, description, media, tuple(type_of(content["schema"])), _example(content))
        for media, content in contents.items()
    ]


def _example(content: Node) -> str | None:
    if "example" not in content:
        return None
    value = content["example"]
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _codes(response: Any) -> tuple[str, ...]:
    """The error codes that a response may carry."""
    found: list[str] = []
    for content in response.get("content", {}).values():
        schemas = content["schema"].get("anyOf", [content["schema"]])
        for part in (part for schema in schemas for part in schema.get("allOf", ())):
            found += [code for field in part.get("properties", {}).values() for code in field.get("enum", ())]
    return tuple(found)


def _types(entries: list[Entry], schemas: Node) -> tuple[ObjectType, ...]:
    """All objects that some operations use, also through other objects."""
    names: set[str] = set()
    waiting = set().union(*(entry.uses for entry in entries))
    while waiting:
        names |= waiting
        waiting = set().union(*(references_of(schemas[name]) for name in waiting)) - names
    return tuple(
        ObjectType(name, schemas[name].get("description", ""), fields_of(schemas[name])) for name in sorted(names)
    )


def _resolved(node: Node, document: Node) -> Node:
    """The target of a reference."""
    while "$ref" in node:
        steps = node["$ref"].removeprefix("#/").split("/")
        node = document
        for step in steps:
            node = node[step]
    return node
