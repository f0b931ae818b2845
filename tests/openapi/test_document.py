"""The OpenAPI document is valid, whole, and the same wherever it is asked for."""

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
from holdfast.transport.http.orchestrion import lists
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.schemas.task_operations import BackoffPolicy, TaskFilter
from holdfast.transport.http.system.discovery import encode_yaml
from holdfast.transport.http.system.openapi import openapi
from tests.compat.octostore.server import Server

PLACES = ("/openapi.json", "/openapi.yaml", "/v1/schema")

DOCUMENT = openapi()
NODES = [node for path in DOCUMENT["paths"].values() for node in path.values()]


@pytest.fixture(scope="module")
def anyone(tmp_path_factory):
    """A caller without credentials."""
    server = Server(f"sqlite:///{tmp_path_factory.mktemp('openapi')}/x.db").start()
    yield server.anyone
    server.close()


def test_the_document_is_openapi_3_1():
    assert DOCUMENT["openapi"] == "3.1.0"
    schemathesis.openapi.from_dict(DOCUMENT).validate()


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_every_schema_is_a_schema(name):
    jsonschema_rs.meta.validate(DOCUMENT["components"]["schemas"][name])
    jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]})


def test_every_reference_leads_somewhere():
    for reference in re.findall(r'"\$ref":"#/([^"]+)"', msgspec.json.encode(DOCUMENT).decode()):
        node = DOCUMENT
        for step in reference.split("/"):
            node = node[step]


def test_every_operation_is_described_and_nothing_else():
    assert set(OPERATION_SCHEMAS) == {operation.name for operation in OPERATIONS}
    shown = {(method.upper(), path) for path, node in DOCUMENT["paths"].items() for method in node}
    assert shown == {(operation.method, operation.path.replace("...", "")) for operation in OPERATIONS}


def test_every_operation_has_an_id_of_its_own_in_camel_case():
    ids = [node["operationId"] for node in NODES]
    assert len(set(ids)) == len(ids) == len(OPERATIONS)
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", name) for name in ids), ids


def test_every_operation_says_what_its_key_must_open():
    wanted = {operation.path.replace("...", ""): {} for operation in OPERATIONS}
    for operation in OPERATIONS:
        wanted[operation.path.replace("...", "")][operation.method.lower()] = operation.scope
    for path, node in DOCUMENT["paths"].items():
        for method, told in node.items():
            scope = wanted[path][method]
            assert told["security"] == ([{"bearer": [scope]}, {"adminKey": [scope]}] if scope else [])
            assert {"401", "403"} <= told["responses"].keys() or scope is None


def test_answers_may_grow_and_fields_nobody_knows_are_ignored():
    strict = {name for name, schema in DOCUMENT["components"]["schemas"].items() if "additionalProperties" in schema}
    assert strict == {"BackoffPolicy"}  # inside a field an unknown name is refused


def test_what_is_described_apart_has_the_same_fields():
    fields = msgspec.structs.fields(Backoff)
    assert [(field.encode_name, field.default) for field in msgspec.structs.fields(BackoffPolicy)] == [
        (field.encode_name, field.default) for field in fields
    ]
    assert set(TaskFilter.__struct_encode_fields__) == lists._FILTERS


def test_every_server_makes_the_same_bytes():
    program = (
        "import sys; from holdfast.transport.http.request import encode;"
        "from holdfast.transport.http.system.openapi import openapi; sys.stdout.buffer.write(encode(openapi()))"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert made == {msgspec.json.encode(DOCUMENT)}


# -- how it is served --------------------------------------------------------------------------------------------


def test_both_addresses_of_the_json_document_answer_the_same(anyone):
    first, second = anyone.get("/openapi.json"), anyone.get("/v1/schema")
    assert first.json == DOCUMENT
    assert (first.raw, first.header("ETag")) == (second.raw, second.header("ETag"))
    assert first.header("Content-Type") == "application/json"


def test_the_yaml_says_the_same(anyone):
    answer = anyone.get("/openapi.yaml")
    assert answer.header("Content-Type") == "application/yaml"
    assert yaml.safe_load(answer.raw) == DOCUMENT


def test_the_first_version_line_of_the_yaml_is_bare(anyone):
    lines = anyone.get("/openapi.yaml").raw.decode().splitlines()
    first = next(line for line in lines if "version:" in line)
    assert first.strip() == f"version: {__version__}"
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


@pytest.mark.parametrize("place", PLACES)
def test_a_document_is_kept_until_its_bytes_change(anyone, place):
    answer = anyone.get(place)
    etag = answer.header("ETag")
    assert re.fullmatch(r'"[0-9a-f]{32}"', etag)
    assert answer.header("Cache-Control") == "public, max-age=300"
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = anyone.send("GET", place, If_None_Match=known)
        assert (again.status, again.raw, again.header("ETag")) == (304, b"", etag)
        assert again.header("Cache-Control") == "public, max-age=300"
        assert again.header("Content-Length") is None
    assert anyone.send("GET", place, If_None_Match='"other"').status == 200


@pytest.mark.parametrize("place", PLACES)
def test_looking_at_the_head_of_a_document_tells_its_size(anyone, place):
    head, whole = anyone.send("HEAD", place), anyone.get(place)
    assert (head.raw, head.header("Content-Length")) == (b"", str(len(whole.raw)))


@pytest.mark.parametrize(
    "value",
    [
        {"a": [], "b": {}, "c": [[1, [2, {"d": None}]], [{}], [[]]]},
        {"no": "yes", "on": "off", "null": "null", "200": "200", "- x": "- y", "a: b": "# c"},
        {"version": "1.2.3", "number": "1.2", "time": "2026-01-01", "text": 'two\nlines\t"quoted" \\ ü 🦀', "": ""},
    ],
)
def test_yaml_reads_back_as_it_was(value):
    assert yaml.safe_load(encode_yaml(value)) == value
