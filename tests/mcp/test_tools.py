"""Tools match their operations: names, schemas, arguments and descriptions."""

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest

from holdfast.core.errors import Invalid
from holdfast.core.plan import READ
from holdfast.operations.table import OPERATIONS
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.system.openapi import openapi
from holdfast.transport.mcp.arguments import request_for_call
from holdfast.transport.mcp.server import UNTRUSTED_NOTE, McpHandlers
from holdfast.transport.mcp.tool_schema import BODY, fields_of, input_schema
from holdfast.transport.mcp.tools import TOOLS, operation_of

ORDER = [
    "claim_job", "claim_any_job", "heartbeat_job", "release_job", "get_job_owner", "list_claimed_jobs",
    "reserve_files", "heartbeat_files", "release_files", "who_owns", "create_task", "claim_task", "heartbeat_task",
    "complete_task", "fail_task", "release_task", "check_task_status", "list_tasks", "my_work", "list_events",
    "resume_session",
]  # fmt: skip

DOCUMENT = openapi()
OVER_HTTP = McpHandlers(None)  # type: ignore[arg-type] # no request is sent
TOOL_LIST = OVER_HTTP._tool_list
AGENT_TOOLS = McpHandlers(None, is_agent=True)._tool_list  # type: ignore[arg-type]
each = pytest.mark.parametrize("listed_tool", TOOL_LIST, ids=lambda tool: tool.name)


def test_there_are_at_most_twenty_one_tools_in_a_fixed_order():
    assert [tool.name for tool in TOOL_LIST] == [tool.name for tool in TOOLS] == ORDER
    assert len(TOOLS) <= 21


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_is_an_operation(tool):
    assert tool.operation in {operation.name for operation in OPERATIONS}
    assert operation_of(tool).name == tool.operation


@each
def test_a_tool_has_at_most_three_sentences_and_all_hints(listed_tool):
    assert re.fullmatch(r"[a-z]+(_[a-z]+)+", listed_tool.name)
    own = listed_tool.description.removesuffix(f" {UNTRUSTED_NOTE}")
    assert 1 <= len(re.findall(r"[.](?: |$)", own)) <= 3
    assert listed_tool.title
    hints = listed_tool.annotations
    assert hints.open_world_hint is False
    assert isinstance(hints.read_only_hint, bool)
    assert isinstance(hints.idempotent_hint, bool)
    assert isinstance(hints.destructive_hint, bool)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_is_read_only_if_its_operation_counts_as_a_read(tool):
    assert tool.is_read_only == (operation_of(tool).limit == READ)


@each
def test_tool_schemas_are_self_contained_object_schemas(listed_tool):
    for schema in (listed_tool.input_schema, listed_tool.output_schema):
        jsonschema_rs.meta.validate(schema)
        jsonschema_rs.Draft202012Validator(schema)
        assert schema["type"] == "object"
        assert "components" not in str(schema)
    assert set(listed_tool.input_schema["required"]) <= set(listed_tool.input_schema["properties"])


@each
def test_arguments_are_in_camel_case_and_durations_in_milliseconds(listed_tool):
    for name, schema in listed_tool.input_schema["properties"].items():
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", name), name
        assert "seconds" not in name.lower()
        if name.endswith("Ms"):
            assert schema["type"] == "integer"
            assert schema["maximum"] >= 60_000


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_field_of_the_operation_is_an_argument(tool):
    operation = operation_of(tool)
    fields = fields_of(operation, DOCUMENT)
    schema = OPERATION_SCHEMAS[operation.name]
    expected = set(re.findall(r"{(\w+)", operation.path))
    for struct in (schema.body, schema.query):
        expected |= set(struct.__struct_encode_fields__) if struct is not None else set()
    expected |= {"Holdfast-Session-Secret"} if schema.takes_session_secret else set()
    assert {field.wire for field in fields} - {"Idempotency-Key"} == expected
    assert len({field.argument for field in fields}) == len(fields)
    if schema.takes_idempotency_key:
        assert "idempotencyKey" in input_schema(fields, DOCUMENT)["properties"]


def test_the_guide_lists_every_tool_with_its_operation():
    page = (Path(__file__).parents[2] / "docs/guides/mcp.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)
    assert rows == [(tool.name, tool.operation) for tool in TOOLS]


def test_tools_for_holders_require_the_lease_id():
    holders = {tool.name for tool in TOOL_LIST if "leaseId" in tool.input_schema["properties"]}
    assert holders == {
        "heartbeat_job", "release_job", "heartbeat_files", "release_files", "heartbeat_task", "complete_task",
        "fail_task", "release_task",
    }  # fmt: skip
    for tool in TOOL_LIST:
        assert tool.name not in holders or "leaseId" in tool.input_schema["required"]


def test_a_program_that_is_one_agent_requires_neither_the_lease_id_nor_a_name():
    required = {name for tool in AGENT_TOOLS for name in tool.input_schema["required"]}
    assert {"leaseId", "owner", "workerId"}.isdisjoint(required)
    assert "By default" in str(AGENT_TOOLS[2].input_schema["properties"]["leaseId"])


def test_a_claim_over_http_lasts_fifteen_minutes_unless_it_says_otherwise():
    for name, field, given in (
        ("claim_job", "ttlMs", {"jobId": "x", "owner": "me"}),
        ("claim_any_job", "ttlMs", {"anyOf": ["x"], "owner": "me"}),
        ("claim_task", "leaseDurationMs", {}),
        ("reserve_files", "ttlMs", {"space": "s", "owner": "me", "paths": ["a"]}),
    ):
        (tool,) = (tool for tool in TOOL_LIST if tool.name == name)
        assert tool.input_schema["properties"][field]["default"] == 900_000
        sent = request_of(name, handlers=OVER_HTTP, **given)
        if name != "reserve_files":  # its route has the same default
            assert 900 in json.loads(sent.body).values()
        assert 60 in json.loads(request_of(name, handlers=OVER_HTTP, **given, **{field: 60_000}).body).values()


def test_my_work_proves_to_be_a_session_with_its_secret_in_a_header():
    ask = request_of("my_work", sessionId="s", secret="the secret")
    assert (ask.path, ask.query) == ("/v1/mine", "session_id=s")
    assert (b"holdfast-session-secret", b"the secret") in ask.headers


def test_a_reservation_is_named_as_in_the_answers():
    ask = request_of("release_files", reservationId="r", leaseId="l", paths=["a"])
    assert (ask.path, json.loads(ask.body)) == ("/v1/reservations/r/release", {"lease_id": "l", "paths": ["a"]})
    with pytest.raises(Invalid, match="`reservationId` is required"):
        request_of("release_files", leaseId="l")


def test_an_argument_is_described_for_its_tool():
    described = {
        (tool.name, name): schema.get("description", "")
        for tool in TOOL_LIST
        for name, schema in tool.input_schema["properties"].items()
    }
    assert "What went wrong" in described["fail_task", "reason"]
    assert "files" in described["reserve_files", "reason"]
    assert "task" in described["complete_task", "id"]


def test_the_space_is_optional_only_where_the_program_runs_in_the_repository():
    local = {tool.name: tool for tool in McpHandlers(None, lambda: "acme/shop")._tool_list}
    for tool in TOOL_LIST:
        has_space = "space" in tool.input_schema["properties"]
        assert has_space == (tool.name in {"reserve_files", "who_owns"})
        assert has_space == ("space" in tool.input_schema["required"])
        assert "space" not in local[tool.name].input_schema["required"]
        assert has_space == ("By default" in str(local[tool.name].input_schema["properties"].get("space")))


def request_of(name, handlers=None, **arguments):
    (tool,) = (tool for tool in TOOLS if tool.name == name)
    fields = fields_of(operation_of(tool), DOCUMENT) if handlers is None else handlers._fields[name]
    return request_for_call(operation_of(tool), fields, arguments)


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ({"ttlMs": 60_000}, {"ttl_seconds": 60}),
        ({"ttl_ms": 60_000}, {"ttl_seconds": 60}),
        ({"ttl_seconds": 60}, {"ttl_seconds": 60}),
        ({"waitMs": 1500}, {"wait_seconds": 1.5}),
        ({"waitMs": "soon"}, {"wait_seconds": "soon"}),
        ({"session_id": "s"}, {"session_id": "s"}),
        ({"sessionId": "s"}, {"session_id": "s"}),
        ({"surprise": 1}, {"surprise": 1}),
    ],
)
def test_arguments_become_fields_of_the_request(arguments, sent):
    ask = request_of("claim_job", jobId="x", owner="me", **arguments)
    assert json.loads(ask.body) == {"owner": "me", **sent}


@pytest.mark.parametrize(
    ("job", "path"),
    [
        ("repo/issue-1", "/v1/jobs/repo%2Fissue-1/claim"),
        ("../../admin", "/v1/jobs/%2E%2E%2F%2E%2E%2Fadmin/claim"),
        ("a?b#c", "/v1/jobs/a%3Fb%23c/claim"),
        ("ü", "/v1/jobs/%C3%BC/claim"),
    ],
)
def test_a_job_id_cannot_change_the_path(job, path):
    assert request_of("claim_job", jobId=job, owner="me").path == path


def test_the_idempotency_key_is_sent_as_a_header():
    ask = request_of("claim_job", jobId="x", owner="me", idempotencyKey="a key\nb")
    assert (b"idempotency-key", b"a key\x7fb") in ask.headers
    assert b"dempotency" not in ask.body
    assert b'"idempotencyKey":"k"' in request_of("create_task", type="t", payload={}, idempotencyKey="k").body


def test_arguments_of_a_read_are_sent_in_the_query():
    ask = request_of("list_tasks", limit=5, resolved=False, status="pending", tag=None)
    assert (ask.method, ask.path, ask.body) == ("GET", "/v1/tasks", b"")
    assert ask.query == "limit=5&resolved=false&status=pending"


def test_path_and_header_arguments_are_not_in_the_body():
    fields = fields_of(operation_of(TOOLS[0]), DOCUMENT)
    assert [field.wire for field in fields if field.location != BODY] == ["job_id", "Idempotency-Key"]
