"""Every operation has an example, which matches its schemas and is what the server answers today."""

import json
from pathlib import Path

import jsonschema_rs
import pytest

from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.schemas import examples
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.system.openapi import openapi
from tests.openapi.examples.recording import record
from tests.openapi.examples.system import MEASUREMENTS

DOCUMENT = openapi()
FILE = Path(examples.__file__).parent / "examples.json"
BY_NAME = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


def node_of(operation):
    return DOCUMENT["paths"][operation.path.replace("...", "")][operation.method.lower()]


def assert_matches(value, schema):
    schema = {**schema, "components": DOCUMENT["components"]}
    wrong = next(jsonschema_rs.Draft202012Validator(schema, validate_formats=True).iter_errors(value), None)
    assert wrong is None, f"{wrong.message} at {wrong.instance_path}: {value}"


@BY_NAME
def test_the_example_of_an_operation_matches_its_schemas(operation):
    node = node_of(operation)
    for parameter in node.get("parameters", ()):
        assert "example" in parameter or parameter["in"] != "path"
        if "example" in parameter:
            assert_matches(parameter["example"], parameter["schema"])
    for content in node.get("requestBody", {}).get("content", {}).values():
        assert_matches(content["example"], content["schema"])
    schema = OPERATION_SCHEMAS[operation.name]
    status = examples.examples()[operation.name].status
    content = node["responses"][str(status)].get("content")
    assert (content is None) == (schema.answers[status] is None)
    if content is not None:
        assert_matches(content[schema.media]["example"], content[schema.media]["schema"])


def test_every_value_of_an_example_is_documented():
    for operation in OPERATIONS:
        example, node = examples.examples()[operation.name], node_of(operation)
        given = {("path", name) for name in example.path} | {("query", name) for name in example.query}
        given |= {("header", name) for name in example.headers}
        assert given <= {(each["in"], each["name"].lower()) for each in node.get("parameters", ())}, operation.name


def test_the_examples_are_what_the_server_answers():
    """If this fails because an answer was changed on purpose, record them again: CONTRIBUTING.md says how."""
    stored = json.loads(FILE.read_text())
    recorded = json.loads(json.dumps(record()))
    assert list(stored) == list(recorded)
    for name, example in recorded.items():
        if name in MEASUREMENTS:
            assert form_of(stored[name]) == form_of(example), name
        else:
            assert stored[name] == example, name


def form_of(value):
    """The names of all fields and the types of their values."""
    if isinstance(value, dict):
        return {name: form_of(each) for name, each in value.items()}
    if isinstance(value, list):
        return [form_of(each) for each in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
