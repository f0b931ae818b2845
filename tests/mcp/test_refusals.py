"""A refused call is a result with advice; an unknown tool, resource or prompt is a protocol error."""

import asyncio
import uuid

import pytest
from mcp.shared.exceptions import MCPError

from holdfast.core.prefix_rule import NAMED, WHOLE
from holdfast.transport.mcp.operator_tools import OPERATOR
from holdfast.transport.mcp.tools import DEFAULT_TOOLS
from tests.compat.octostore.server import bearer
from tests.http.job_client import ABSENT_LEASE, ROOT_KEY
from tests.mcp.clients import NEW, OLD, over_http
from tests.mcp.raw_requests import headers_of, new, old, post

INVALID_PARAMS = -32602


def run_with_client(server, use, era=NEW, **more):
    async def run():
        async with over_http(server, era, **more) as me:
            return await use(me)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("tool", "arguments", "pointer"),
    [
        ("claim_job", {"owner": "me"}, "/jobId"),
        ("claim_job", {"jobId": 7, "owner": "me"}, "/jobId"),
        ("claim_job", {"jobId": "a"}, "/owner"),
        ("claim_job", {"jobId": "a", "owner": "me", "ttlMs": 0}, "/ttlMs"),
        ("claim_job", {"jobId": "a", "owner": "me", "ttlMs": 1500}, "/ttlMs"),
        ("claim_job", {"jobId": "a", "owner": "me", "ttlMs": "soon"}, "/ttlMs"),
        ("claim_job", {"jobId": "a", "owner": "me", "waitMs": 50_001}, "/waitMs"),
        ("claim_job", {"jobId": "a", "owner": "me", "wait_seconds": 51}, "/waitMs"),
        ("claim_job", {"jobId": "a", "owner": "me", "sessionLeaseId": "x" * 300}, "/sessionLeaseId"),
        ("fail_task", {"id": "tsk_1", "leaseId": "x", "errorCode": "x" * 300}, "/errorCode"),
        ("session", {"action": "heartbeat", "leaseId": "x"}, "/sessionId"),
        ("release_job", {"jobId": "a"}, "/leaseId"),
        ("complete_task", {"id": "tsk_1", "result": {}}, "/leaseId"),
        ("heartbeat", {"id": "tsk_1", "leaseId": ""}, "/leaseId"),
    ],
)
def test_an_invalid_argument_is_refused_with_its_pointer(server, tool, arguments, pointer):
    found = run_with_client(server, lambda me: me.refused(tool, **arguments))
    (error,) = (error for error in found["errors"] if error["pointer"] == pointer)
    assert "_" not in error["message"], "the message names the argument of the tool"
    assert found["agent_contract"]["next_actions"][0]["action"] == "fix_request"
    assert found["agent_contract"]["retryable"] is False


@pytest.mark.parametrize("era", [OLD, NEW])
def test_a_lone_surrogate_is_refused_in_every_argument(server, era):
    for arguments in ({"jobId": "\ud800", "owner": "me"}, {"jobId": "job", "owner": "me", "metadata": {"x": "\ud800"}}):
        message = (new if era == NEW else old)("tools/call", name="claim_job", arguments=arguments)
        response = post(server, message, **(headers_of(message) if era == NEW else {}))
        # The parser of the old protocol in the SDK refuses it with 400.
        assert response.status == 400 or response.json["result"]["structuredContent"]["error"] == "invalid_request"


def test_a_lost_lease_advises_to_stop_work(server):
    found = run_with_client(server, lambda me: me.refused("heartbeat_job", jobId="never-claimed", leaseId=ABSENT_LEASE))
    assert found["error"] == "lease_lost"
    assert found["agent_contract"]["next_actions"][0]["action"] == "stop_work"
    assert "get_job_owner" in [step.get("tool") for step in found["agent_contract"]["next_actions"]]


def test_a_cursor_beyond_the_end_of_the_log_is_refused_with_where_to_read_on(server):
    found = run_with_client(server, lambda me: me.refused("list_events", after=2**53), tools=OPERATOR)
    assert found["error"] == "cursor_ahead"
    assert found["agent_contract"]["next_actions"][0]["action"] == "list_events"


def test_tools_enforce_the_scopes_and_prefix_of_a_key(server):
    root = bearer(server.port, ROOT_KEY)
    made = root.post("/v1/keys", {"name": "looker", "scopes": ["read"], "prefix": "team-a/"}).json

    async def use_the_key(me):
        refused = await me.refused("claim_job", jobId="team-a/x", owner="looker")
        assert (refused["status"], refused["error"]) == (403, "forbidden")
        assert (await me.refused("create_task", type="t", payload={}))["error"] == "forbidden"
        assert (await me.refused("get_job_owner", jobId="team-b/x"))["error"] == "forbidden"
        assert (await me.do("get_job_owner", jobId="team-a/x"))["status"] == "free"

    run_with_client(server, use_the_key, key=made["apiKey"])


SAMPLES = {
    "jobId": "team-b/x", "id": "tsk_01HZZZZZZZZZZZZZZZZZZZZZZZ", "leaseId": ABSENT_LEASE, "owner": "limited",
    "type": "t", "payload": {}, "reason": "x", "name": "team-b", "question": "x",
}  # fmt: skip
"""A value for each required argument."""


def test_every_tool_obeys_the_prefix_of_a_key(server):
    root = bearer(server.port, ROOT_KEY)
    made = root.post("/v1/keys", {"name": "limited", "scopes": ["admin"], "prefix": "team-a/"}).json
    rules = {tool.name: (tool.default or tool.calls[0]).target.prefix_rule for tool in DEFAULT_TOOLS}

    async def use_every_tool(me):
        required = {tool.name: tool.input_schema.get("required", []) for tool in (await me.client.list_tools()).tools}
        for name, rule in rules.items():
            if rule in {NAMED, WHOLE}:
                refused = await me.refused(name, **{argument: SAMPLES[argument] for argument in required[name]})
                assert refused["error"] == "forbidden", name
                assert "only names that begin with team-a/" in refused["message"]
        with pytest.raises(MCPError, match="only names that begin with team-a/"):
            await me.client.read_resource(f"holdfast://tasks/{SAMPLES['id']}")

    run_with_client(server, use_every_tool, key=made["apiKey"])


def test_the_event_tool_obeys_the_scope_of_a_key(server):
    made = bearer(server.port, ROOT_KEY).post("/v1/keys", {"name": "jobs only", "scopes": ["jobs"]}).json
    run_with_client(server, lambda me: me.do("create_task", type="t", payload={}, tag="hidden"))

    async def read_events(me):
        told = await me.do("list_events", limit=1000)
        assert {event["subject"].partition(":")[0] for event in told["events"]} <= {"lease", "reservation", "session"}

    run_with_client(server, read_events, key=made["apiKey"], tools=OPERATOR)


def test_tools_and_resources_are_isolated_by_account(server):
    ours = run_with_client(server, lambda me: me.do("create_task", type="ours", payload={"for": "us"}))
    key = server.anyone.post("/v1/keys/register").json["apiKey"]

    async def read_foreign_task(me):
        assert (await me.refused("check_task_status", id=ours["id"]))["error"] == "task_not_found"
        assert (await me.do("list_tasks", type="ours"))["tasks"] == []
        with pytest.raises(MCPError) as wrong:
            await me.client.read_resource(f"holdfast://tasks/{ours['id']}")
        assert wrong.value.code == INVALID_PARAMS

    run_with_client(server, read_foreign_task, key=key)


def test_tools_of_operators_come_on_request_only(server):
    async def call_it(me):
        with pytest.raises(MCPError, match="it is in the set `operator`"):
            await me.client.call_tool("list_events", {})

    run_with_client(server, call_it)
    message = old("tools/list")
    refused = post(server, message, path="/mcp?tools=all")
    assert (refused.status, refused.json["errors"][0]["pointer"]) == (400, "/tools")


@pytest.mark.parametrize("era", [OLD, NEW])
def test_an_unknown_tool_resource_or_prompt_is_a_protocol_error(server, era):
    async def ask(me):
        for wrong in (
            me.client.call_tool("juggle", {}),
            me.client.read_resource("holdfast://nothing/x"),
            me.client.read_resource("holdfast://leases/"),
            me.client.read_resource("holdfast://tasks/tsk_none"),
            me.client.read_resource("file:///etc/passwd"),
            me.client.get_prompt("juggle"),
            me.client.get_prompt("hand_over", {"to": "bob"}),
        ):
            with pytest.raises(MCPError) as error:
                await wrong
            assert error.value.code == INVALID_PARAMS

    run_with_client(server, ask, era)


def test_an_unknown_argument_is_named_in_a_warning(server):
    job = f"job-{uuid.uuid4()}"
    found = run_with_client(server, lambda me: me.do("claim_job", jobId=job, owner="me", waitSecnds=3))
    assert "waitSecnds" in found["warnings"][0]


def test_a_repeated_call_with_the_same_idempotency_key_has_one_effect(server):
    message = {"jobId": f"job-{uuid.uuid4()}", "owner": "me", "idempotencyKey": uuid.uuid4().hex}

    async def twice(me):
        first, second = await me.do("claim_job", **message), await me.do("claim_job", **message)
        assert first["lease_id"] == second["lease_id"]
        clash = await me.refused("claim_job", **(message | {"owner": "you"}))
        assert clash["error"] == "idempotency_conflict"

    run_with_client(server, twice)
