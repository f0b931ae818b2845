"""The OpenAPI document is valid, complete, and the same at every path."""

import os
import re
import subprocess
import sys

import jsonschema_rs
import msgspec
import pytest
import schemathesis
import yaml

from holdfast import __version__
from holdfast.core.task.retry import Backoff
from holdfast.operations.table import OPERATIONS
from holdfast.settings import Settings
from holdfast.transport.http.orchestrion import lists
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.schemas.task_operations import BackoffPolicy, TaskFilter
from holdfast.transport.http.system.discovery import encode_yaml
from holdfast.transport.http.system.openapi import openapi
from holdfast.transport.origins import known_address
from tests.compat.octostore.server import Server

PATHS = ("/openapi.json", "/openapi.yaml", "/v1/schema")

DOCUMENT = openapi()
NODES = [node for path in DOCUMENT["paths"].values() for node in path.values()]


@pytest.fixture(scope="module")
def anyone(tmp_path_factory):
    """A client without credentials."""
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/x.db").start()
    yield server.anyone
    server.close()


def test_the_document_is_openapi_3_1():
    assert DOCUMENT["openapi"] == "3.1.0"
    schemathesis.openapi.from_dict(DOCUMENT).validate()


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_every_component_is_a_valid_json_schema(name):
    jsonschema_rs.meta.validate(DOCUMENT["components"]["schemas"][name])
    jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]})


def test_every_reference_resolves():
    for reference in re.findall(r'"\$ref":"#/([^"]+)"', msgspec.json.encode(DOCUMENT).decode()):
        node = DOCUMENT
        for step in reference.split("/"):
            node = node[step]


def test_the_document_has_exactly_the_operations_of_the_table():
    assert set(OPERATION_SCHEMAS) == {operation.name for operation in OPERATIONS}
    documented = {(method.upper(), path) for path, node in DOCUMENT["paths"].items() for method in node}
    assert documented == {(operation.method, operation.path.replace("...", "")) for operation in OPERATIONS}


def test_operation_ids_are_unique_and_in_camel_case():
    ids = [node["operationId"] for node in NODES]
    assert len(set(ids)) == len(ids) == len(OPERATIONS)
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", name) for name in ids), ids


def test_every_operation_documents_its_scope():
    scopes = {operation.path.replace("...", ""): {} for operation in OPERATIONS}
    for operation in OPERATIONS:
        scopes[operation.path.replace("...", "")][operation.method.lower()] = operation.scope
    for path, node in DOCUMENT["paths"].items():
        for method, documented in node.items():
            scope = scopes[path][method]
            assert documented["security"] == ([{"bearer": [scope]}, {"adminKey": [scope]}] if scope else [])
            assert {"401", "403"} <= documented["responses"].keys() or scope is None


def test_schemas_allow_unknown_fields():
    strict = {name for name, schema in DOCUMENT["components"]["schemas"].items() if "additionalProperties" in schema}
    assert strict == {"Approval", "BackoffPolicy"}  # inside a field an unknown name is refused


def test_types_only_for_the_document_have_the_fields_of_the_handlers():
    fields = msgspec.structs.fields(Backoff)
    assert [(field.encode_name, field.default) for field in msgspec.structs.fields(BackoffPolicy)] == [
        (field.encode_name, field.default) for field in fields
    ]
    assert set(TaskFilter.__struct_encode_fields__) == lists._FILTERS


def test_every_process_generates_the_same_bytes():
    program = (
        "import sys; from holdfast.transport.http.request import encode;"
        "from holdfast.transport.http.system.openapi import openapi; sys.stdout.buffer.write(encode(openapi()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {msgspec.json.encode(DOCUMENT)}


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        (Settings(host="127.0.0.1", port=7700), "http://127.0.0.1:7700"),
        (Settings(host="0.0.0.0", port=7700), None),
        (Settings(host="0.0.0.0", public_url="https://holdfast.example"), "https://holdfast.example"),
    ],
)
def test_the_address_of_the_server_is_one_that_clients_can_use(settings, address):
    assert known_address(settings) == address
    assert DOCUMENT["servers"] == [{"url": "/"}]  # where no address is known: that from which the document is read


# -- how it is served --------------------------------------------------------------------------------------------


def test_both_paths_of_the_json_document_return_the_same(anyone):
    first, second = anyone.get("/openapi.json"), anyone.get("/v1/schema")
    assert first.json == openapi(f"http://127.0.0.1:{anyone.port}")
    assert (first.raw, first.header("ETag")) == (second.raw, second.header("ETag"))
    assert first.header("Content-Type") == "application/json"


def test_the_yaml_document_equals_the_json_document(anyone):
    answer = anyone.get("/openapi.yaml")
    assert answer.header("Content-Type") == "application/yaml"
    assert yaml.safe_load(answer.raw) == openapi(f"http://127.0.0.1:{anyone.port}")


def test_the_first_version_line_of_the_yaml_has_no_quotes(anyone):
    lines = anyone.get("/openapi.yaml").raw.decode().splitlines()
    first = next(line for line in lines if "version:" in line)
    assert first.strip() == f"version: {__version__}"
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


@pytest.mark.parametrize("path", PATHS)
def test_if_none_match_returns_304_until_the_document_changes(anyone, path):
    answer = anyone.get(path)
    etag = answer.header("ETag")
    assert re.fullmatch(r'"[0-9a-f]{32}"', etag)
    assert answer.header("Cache-Control") == "public, max-age=300"
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = anyone.send("GET", path, If_None_Match=known)
        assert (again.status, again.raw, again.header("ETag")) == (304, b"", etag)
        assert again.header("Cache-Control") == "public, max-age=300"
        assert again.header("Content-Length") is None
    assert anyone.send("GET", path, If_None_Match='"other"').status == 200


@pytest.mark.parametrize("path", PATHS)
def test_head_returns_the_size_of_the_document(anyone, path):
    head, whole = anyone.send("HEAD", path), anyone.get(path)
    assert (head.raw, head.header("Content-Length")) == (b"", str(len(whole.raw)))


@pytest.mark.parametrize(
    "value",
    [
        {"a": [], "b": {}, "c": [[1, [2, {"d": None}]], [{}], [[]]]},
        {"no": "yes", "on": "off", "null": "null", "200": "200", "- x": "- y", "a: b": "# c"},
        {"version": "1.2.3", "number": "1.2", "time": "2026-01-01", "text": 'two\nlines\t"quoted" \\ ü 🦀', "": ""},
    ],
)
def test_yaml_is_decoded_to_the_same_value(value):
    assert yaml.safe_load(encode_yaml(value)) == value
