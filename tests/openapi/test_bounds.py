"""Every number in the OpenAPI document and in the reference manual is the one in `operations/bounds.py`."""

from pathlib import Path

import pytest

from holdfast.operations import bounds
from holdfast.operations.bound_kinds import Count, Length, Range
from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.schemas.operation_schema import schema_of
from holdfast.transport.http.system.openapi import openapi
from tests.openapi.bound_table import markdown_table

DOCUMENT = openapi()
MANUAL = Path(__file__).parents[2] / "docs/reference/api.md"
UNSIGNED_32 = 2**32 - 1
"""The type of OctoStore's integers, not a bound."""
KEYWORDS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "default"}


def properties_of(operation):
    """The schema of every query parameter and body field, by name."""
    node = DOCUMENT["paths"][operation.path.replace("...", "")][operation.method.lower()]
    found = {each["name"]: each["schema"] for each in node.get("parameters", ()) if each["in"] == "query"}
    body = node.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        found |= DOCUMENT["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]["properties"]
    return found


def numbers_of(schema):
    """The numeric keywords of a schema, also of one that may be null."""
    found = {}
    for kind in (*schema.get("anyOf", ()), schema):
        found |= {name: value for name, value in kind.items() if name in KEYWORDS}
    is_number = isinstance(found.get("default"), int | float) and not isinstance(found["default"], bool)
    return {name: value for name, value in found.items() if value != 0 or name in {"minimum", "default"}} | (
        {} if is_number else {"default": None}
    )


def expected(bound):
    found = {name: value for name, value in schema_of(bound).items() if name in KEYWORDS}
    found = {name: value for name, value in found.items() if value != 0 or name == "minimum"}
    return found | {"default": bound.if_omitted if isinstance(bound, Range) else None}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_schemas_have_the_bounds_of_the_table(operation):
    fields = bounds.FIELDS.get(operation.name, {})
    properties = properties_of(operation)
    assert fields.keys() <= properties.keys()
    for name, schema in properties.items():
        bound = fields.get(name)
        if isinstance(bound, Range | Length | Count):
            found = numbers_of(schema)
            if isinstance(bound, Range) and found["default"] is None:  # the handler knows the default of a null
                found["default"] = bound.if_omitted
            assert found == expected(bound), (operation.name, name)
        else:
            numbers = numbers_of(schema)
            assert numbers.get("maximum", UNSIGNED_32) == UNSIGNED_32, (operation.name, name)
            assert not numbers.keys() & {"maxLength", "maxItems"}, (operation.name, name)


def test_every_bound_belongs_to_an_operation():
    assert bounds.FIELDS.keys() <= {operation.name for operation in OPERATIONS}


def test_the_api_reference_contains_the_table_of_bounds():
    assert markdown_table() in MANUAL.read_text()
