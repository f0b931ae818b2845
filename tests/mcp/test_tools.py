"""Tools match their operations: names, schemas, arguments and descriptions."""

import asyncio
import json
import re
from pathlib import Path

import jsonschema_rs
import pytest

from holdfast.core.errors import Invalid
from holdfast.core.plan import READ
from holdfast.operations.bounds import TOOL_LIST_BYTES, TOOL_WAIT
from holdfast.operations.table import OPERATIONS
from holdfast.transport.advice.wording import advise
from holdfast.transport.http.schemas.all_operations import OPERATION_SCHEMAS
from holdfast.transport.http.system.openapi import openapi
from holdfast.transport.mcp import listed_tools
from holdfast.transport.mcp.arguments import choose_call, request_for_call
from holdfast.transport.mcp.in_process import ToolResponse
from holdfast.transport.mcp.listed_tools import UNTRUSTED_NOTE, ListedTools
from holdfast.transport.mcp.operator_tools import DEFAULT, OPERATOR, OPERATOR_TOOLS, TOOL_SETS
from holdfast.transport.mcp.tool_schema import BODY, LEFT_OUT, fields_of
from holdfast.transport.mcp.tools import DEFAULT_TOOLS

ORDER = [
    "claim_job", "heartbeat_job", "release_job", "get_job_owner", "list_claimed_jobs",
    "reserve_files", "release_files", "who_owns",
    "create_task", "claim_task", "heartbeat", "complete_task", "fail_task", "release_task", "ask_human",
    "check_task_status", "list_tasks", "requeue_task", "my_work", "session",
]  # fmt: skip
MOST_TOOLS, BYTES_OF_TOKEN = 20, 4
MOST_TOKENS = 10_000
COMMON_KEYWORDS = {
    "type", "description", "enum", "items", "properties", "required", "default", "minimum", "maximum", "minLength",
    "maxLength", "minItems", "maxItems",
}  # fmt: skip
"""What hosts accept: a pattern with look-around, an array of types or `anyOf` keeps some of them from connecting."""

DOCUMENT = openapi()
TOOLS = TOOL_SETS[OPERATOR].tools
LISTED = ListedTools(TOOL_SETS[OPERATOR])
TOOL_LIST = LISTED.listed
AGENT_TOOLS = ListedTools(TOOL_SETS[OPERATOR], is_agent=True)
each = pytest.mark.parametrize("listed_tool", TOOL_LIST, ids=lambda tool: tool.name)


def test_there_are_at_most_twenty_tools_in_a_fixed_order():
    assert [tool.name for tool in ListedTools(TOOL_SETS[DEFAULT]).listed] == ORDER
    assert len(DEFAULT_TOOLS) <= MOST_TOOLS
    assert [tool.name for tool in TOOL_LIST] == [*ORDER, *(tool.name for tool in OPERATOR_TOOLS)]
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert f"offer {len(DEFAULT_TOOLS)} tools, and {len(OPERATOR_TOOLS)} more for operators" in readme


def test_the_openapi_document_is_built_once_for_a_set(monkeypatch):
    """It takes 60 ms; the first request to `/mcp` and every start of `holdfast mcp` wait for it."""
    built = []
    monkeypatch.setattr(listed_tools, "openapi", lambda: built.append(1) or DOCUMENT)
    ListedTools(TOOL_SETS[OPERATOR])
    assert len(built) == 1


@pytest.mark.parametrize("name", TOOL_SETS)
def test_the_list_of_tools_takes_few_tokens(name):
    for tools in (
        ListedTools(TOOL_SETS[name]).listed,
        ListedTools(TOOL_SETS[name], lambda: "acme/shop", is_agent=True).listed,
    ):
        size = sum(len(tool.model_dump_json(by_alias=True, exclude_none=True).encode()) + 1 for tool in tools)
        assert size / BYTES_OF_TOKEN <= MOST_TOKENS


def test_schemas_have_only_what_every_host_accepts():
    def check(node, where):
        assert node.keys() <= COMMON_KEYWORDS, where
        assert isinstance(node["type"], str), where
        assert node["type"] != "array" or "items" in node, where
        for name, inner in node.get("properties", {}).items():
            assert "E.g. `" in inner["description"], (where, name)
            assert len(inner["description"]) < 160, (where, name)
            check(inner, (*where, name))
        if "items" in node:
            check(node["items"], (*where, "items"))

    for tool in TOOL_LIST:
        jsonschema_rs.meta.validate(tool.input_schema)
        assert tool.input_schema["type"] == "object"
        assert set(tool.input_schema["required"]) <= set(tool.input_schema["properties"])
        assert tool.output_schema is None, "schemas of answers would triple the list"
        check(tool.input_schema, (tool.name,))


def test_every_tool_is_an_operation():
    for tool in TOOLS:
        assert {call.operation for call in tool.calls} <= {operation.name for operation in OPERATIONS}
        assert [call.is_default for call in tool.calls] in ([False] * (len(tool.calls) - 1) + [True], [False] * 6)
        assert tool.is_read_only == all(call.target.limit == READ for call in tool.calls)


@each
def test_a_tool_has_a_short_description_and_all_hints(listed_tool):
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", listed_tool.name)
    own = listed_tool.description.removesuffix(f" {UNTRUSTED_NOTE}")
    assert 1 <= len(re.findall(r"[.](?: |$)", own)) <= 3
    assert listed_tool.title
    hints = listed_tool.annotations
    assert hints.open_world_hint is False
    assert isinstance(hints.read_only_hint, bool)
    assert isinstance(hints.idempotent_hint, bool)
    assert isinstance(hints.destructive_hint, bool)


@each
def test_arguments_are_in_camel_case_and_durations_in_milliseconds(listed_tool):
    for name, schema in listed_tool.input_schema["properties"].items():
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]*)*", name), name
        assert "seconds" not in name.lower()
        if name.endswith("Ms"):
            assert schema["type"] == "integer"
            assert schema["maximum"] == 50_000 == TOOL_WAIT.most * 1000 or name != "waitMs"


def test_every_field_of_the_operation_is_an_argument():
    for tool in TOOLS:
        for call in tool.calls:
            fields = fields_of(call, DOCUMENT)
            schema = OPERATION_SCHEMAS[call.operation]
            expected = set(re.findall(r"{(\w+)", call.target.path))
            for struct in (schema.body, schema.query):
                expected |= set(struct.__struct_encode_fields__) if struct is not None else set()
            expected |= {"Holdfast-Session-Secret"} if schema.takes_session_secret else set()
            expected -= LEFT_OUT.get(call.operation, set())
            assert {field.wire for field in fields} - {"Idempotency-Key"} == expected
            arguments = {field.argument for field in fields}
            assert len(arguments) == len(fields)
            assert arguments <= LISTED.input_schema(tool.name)["properties"].keys()
            assert not schema.takes_idempotency_key or "idempotencyKey" in arguments


def test_the_guide_lists_every_tool_with_its_operations():
    page = (Path(__file__).parents[2] / "docs/guides/mcp.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (`[\w`, ]+`) \|", page, re.MULTILINE)
    operations = {tool.name: list(dict.fromkeys(call.operation for call in tool.calls)) for tool in TOOLS}
    assert {name: re.findall(r"\w+", text) for name, text in rows} == operations
    assert [name for name, _ in rows] == [tool.name for tool in TOOLS]


def test_tools_for_holders_require_the_lease_id():
    holders = {tool.name for tool in TOOL_LIST if "leaseId" in tool.input_schema["required"]}
    assert holders == {
        "heartbeat_job", "release_job", "release_files", "heartbeat", "complete_task", "fail_task", "release_task",
        "ask_human",
    }  # fmt: skip
    for name, arguments in {
        "reserve_files": {"reservationId": "r", "paths": ["a"], "space": "s", "owner": "o"},
        "session": {"action": "close", "sessionId": "s"},
    }.items():
        with pytest.raises(Invalid, match="`leaseId` is required"):
            request_of(name, **arguments)


def test_the_list_of_lease_ids_and_of_released_paths_is_optional():
    assert "leaseIds" not in LISTED.input_schema("who_owns")["required"]
    assert "paths" not in LISTED.input_schema("release_files")["required"]


@pytest.mark.parametrize(
    ("tool", "arguments", "request_line"),
    [
        ("claim_job", {"jobId": "a"}, "POST /v1/jobs/a/claim"),
        ("claim_job", {"jobId": "a", "alternatives": ["b"]}, "POST /v1/jobs/claim"),
        ("claim_task", {"type": "t"}, "POST /v1/tasks/claim"),
        ("claim_task", {"id": "tsk_1"}, "POST /v1/tasks/tsk_1/claim"),
        ("heartbeat", {"id": "tsk_1", "leaseId": "l"}, "POST /v1/tasks/tsk_1/heartbeat"),
        ("heartbeat", {"id": "3f0c1c9e-6f0f-4d0e-9a53-0f5b7c1f6f10", "leaseId": "l"},
         "POST /v1/reservations/3f0c1c9e-6f0f-4d0e-9a53-0f5b7c1f6f10/heartbeat"),
        ("who_owns", {}, "GET /v1/reservations"),
        ("who_owns", {"paths": ["a"]}, "POST /v1/reservations/check"),
        ("who_owns", {"reservation_id": "r"}, "GET /v1/reservations/r"),
        ("session", {"action": "open", "name": "n"}, "POST /v1/sessions"),
        ("session", {"action": "close", "session_id": "s", "lease_id": "l"}, "DELETE /v1/sessions/s"),
    ],
)  # fmt: skip
def test_the_arguments_choose_the_operation(tool, arguments, request_line):
    ask = request_of(tool, **arguments)
    assert f"{ask.method} {ask.path}" == request_line


def test_a_job_and_its_alternatives_are_one_list_in_the_order_of_preference():
    sent = json.loads(request_of("claim_job", jobId="a", owner="me", alternatives=["b", "c"]).body)
    assert sent == {"any_of": ["a", "b", "c"], "owner": "me"}


def test_every_action_names_a_tool_of_the_set_or_no_route_at_all():
    """Whatever the API advises, a client of MCP is told a tool that it has, with arguments that the tool takes."""
    for name, tools in TOOL_SETS.items():
        listed = ListedTools(tools)
        for operation in OPERATIONS:
            path = re.sub(r"{\w+(\.\.\.)?}", "x%2Fy", operation.path)
            step = {"action": operation.name, "recommended": True, "method": operation.method, "endpoint": path}
            shown = advise({"agent_contract": {"next_actions": [step]}}, listed.wording)
            for advised in shown["agent_contract"]["next_actions"]:
                assert "endpoint" not in advised
                if listed.tools.find(operation.name) is None:
                    assert "tool" not in advised, (name, advised)
                    continue
                schema = listed.input_schema(advised["tool"])
                assert {*advised["arguments"], *advised.get("needs", ())} <= schema["properties"].keys(), (
                    name,
                    advised,
                )
                assert {*schema["required"]} <= {*advised["arguments"], *advised.get("needs", ())}, (name, advised)
                assert "x/y" in advised["arguments"].values() or "{" not in operation.path


def test_a_page_that_is_too_large_is_asked_for_again_with_fewer_rows():
    asked = []

    class Answering:
        async def send(self, request):
            asked.append(request.query)
            rows = int(re.search(r"limit=(\d+)", request.query)[1]) if "limit" in request.query else 100
            tasks = [{"id": f"tsk_{n}", "payload": {"x": "y" * 900}, "note": "n" * 4000} for n in range(rows)]
            told = {} if len(asked) > 1 else {"warnings": ["You were restarted."]}
            return ToolResponse(200, json.dumps({"tasks": tasks, "nextCursor": f"tsk_{rows}", **told}).encode())

    result = asyncio.run(LISTED.call("list_tasks", {"type": "t"}, Answering()))
    rows = result.structured_content["tasks"]
    assert asked == ["type=t", f"type=t&limit={len(rows)}"]
    assert len(result.content[0].text) <= TOOL_LIST_BYTES
    assert 20 < len(rows) < 100
    assert result.structured_content["nextCursor"] == f"tsk_{len(rows)}"
    assert result.structured_content["warnings"] == ["You were restarted."], "said once, in the first answer"
    assert rows[0].keys() == {"id", "note"}
    assert rows[0]["note"].endswith("… (4000 characters)")


def test_a_program_that_is_one_agent_requires_neither_the_lease_id_nor_a_name():
    required = {name for tool in AGENT_TOOLS.listed for name in tool.input_schema["required"]}
    assert {"leaseId", "owner", "workerId"}.isdisjoint(required)
    assert "By default" in AGENT_TOOLS.input_schema("release_job")["properties"]["leaseId"]["description"]
    assert "By default" not in AGENT_TOOLS.input_schema("my_work")["properties"]["owner"]["description"]
    assert request_of("heartbeat", listed=AGENT_TOOLS, id="tsk_1").operation == "heartbeat"
    assert request_of("claim_job", listed=AGENT_TOOLS, jobId="a", alternatives=["b"]).operation == "claim_any_job"


def test_a_claim_over_http_lasts_fifteen_minutes_unless_it_says_otherwise():
    for name, field, given in (
        ("claim_job", "ttlMs", {"jobId": "x", "owner": "me"}),
        ("claim_job", "ttlMs", {"jobId": "x", "alternatives": ["y"], "owner": "me"}),
        ("claim_task", "leaseDurationMs", {}),
        ("claim_task", "leaseDurationMs", {"id": "tsk_1"}),
        ("reserve_files", "ttlMs", {"space": "s", "owner": "me", "paths": ["a"]}),
    ):
        (tool,) = (tool for tool in TOOL_LIST if tool.name == name)
        assert tool.input_schema["properties"][field]["default"] == 900_000
        sent = request_of(name, listed=LISTED, **given)
        if name != "reserve_files":  # its route has the same default
            assert 900 in json.loads(sent.body).values()
        assert 60 in json.loads(request_of(name, listed=LISTED, **given, **{field: 60_000}).body).values()


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
    local = {tool.name: tool for tool in ListedTools(TOOL_SETS[OPERATOR], lambda: "acme/shop").listed}
    for tool in TOOL_LIST:
        has_space = "space" in tool.input_schema["properties"]
        assert has_space == (tool.name in {"reserve_files", "who_owns"})
        assert (tool.name == "reserve_files") == ("space" in tool.input_schema["required"])
        assert "space" not in local[tool.name].input_schema["required"]
        assert has_space == ("By default" in str(local[tool.name].input_schema["properties"].get("space")))


def request_of(name, /, listed=None, **arguments):
    tool = TOOL_SETS[OPERATOR].by_name[name]
    fields = (
        {call.operation: fields_of(call, DOCUMENT) for call in tool.calls} if listed is None else listed._fields[name]
    )
    call, sent = choose_call(tool, fields, arguments)
    return request_for_call(call, fields[call.operation], sent)


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
    fields = fields_of(TOOLS[0].default, DOCUMENT)
    assert [field.wire for field in fields if field.location != BODY] == ["job_id", "Idempotency-Key"]
