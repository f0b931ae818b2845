"""JSON Schemas as text for people: the type of a value, its rules, and the fields of an object."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from holdfast.transport.http.schemas.jobs import NOT_BLANK

Node = dict[str, Any]

_CONTROL = "\\u0000"
"""In patterns that exclude control characters: no help for a reader."""
_UNITS = (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " items"))


class Part(msgspec.Struct, frozen=True):
    """A piece of a type's text; `link` is the name of the object that it names."""

    text: str
    link: str = ""


class Field(msgspec.Struct, frozen=True):
    """A field of an object, or a parameter."""

    name: str
    kind: tuple[Part, ...]
    required: bool
    rules: str
    description: str
    place: str = ""
    """Of a parameter: path, query or header."""


def fields_of(schema: Node) -> tuple[Field, ...]:
    """The fields of an object, required ones first."""
    required = set(schema.get("required", ()))
    found = [field_of(name, node, required=name in required) for name, node in schema.get("properties", {}).items()]
    return tuple(sorted(found, key=lambda field: not field.required))


def field_of(name: str, schema: Node, *, required: bool, description: str = "", place: str = "") -> Field:
    """One field or parameter."""
    described = description or schema.get("description", "")
    return Field(name, tuple(type_of(schema)), required, rules_of(schema), described, place)


def type_of(schema: Node) -> list[Part]:
    """The type of a value: `list of Task`, `string or null`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return [Part(name, name)]
    if "enum" in schema:
        return [Part(" or ".join(json.dumps(value) for value in schema["enum"]))]
    if "anyOf" in schema:
        return _joined([type_of(_with_format(each, schema)) for each in schema["anyOf"]])
    return _plain_type_of(schema)


def rules_of(schema: Node) -> str:
    """The bounds, the pattern and the default of a value."""
    found = [f"{_range(schema, least, most)}{unit}" for least, most, unit in _UNITS if _range(schema, least, most)]
    pattern = schema.get("pattern", "")
    if pattern == NOT_BLANK["pattern"]:
        found.append("not blank")
    elif pattern and _CONTROL not in pattern:
        found.append(f"matches {pattern}")
    if schema.get("default") is not None:
        found.append(f"default {json.dumps(schema['default'], ensure_ascii=False)}")
    return "; ".join(found)


def references_of(node: Any) -> set[str]:
    """The names of all objects that a schema refers to directly."""
    if isinstance(node, dict):
        own = {node["$ref"].rpartition("/")[2]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references_of(each) for name, each in node.items() if name != "discriminator"))
    return set().union(*(references_of(each) for each in node)) if isinstance(node, list) else set()


def _range(schema: Node, least: str, most: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if high is None:
        return f"at least {low:,}" if low else ""
    is_size = least != "minimum"
    return f"at most {high:,}" if low is None or (is_size and low == 0) else f"{low:,} to {high:,}"


def _plain_type_of(schema: Node) -> list[Part]:
    kind = schema.get("type")
    if isinstance(kind, list):
        return [Part(" or ".join(kind))]
    if kind == "array":
        return [Part("list of "), *type_of(schema.get("items", {}))]
    if kind == "object" and schema.get("additionalProperties"):
        return [Part("object of "), *type_of(schema["additionalProperties"])]
    text = kind or "any JSON"
    return [Part(f"{text} ({schema['format']})" if "format" in schema else text)]


def _with_format(alternative: Node, schema: Node) -> Node:
    """An alternative with the format that the schema sets for all of them."""
    is_text = alternative.get("type") == "string" and "format" in schema
    return {**alternative, "format": schema["format"]} if is_text else alternative


def _joined(alternatives: list[list[Part]]) -> list[Part]:
    parts = alternatives[0]
    for alternative in alternatives[1:]:
        parts = [*parts, Part(" or "), *alternative]
    return parts
