"""A refusal is a result that a model can act on; what is no tool, resource or prompt is an error of the protocol."""

import asyncio
import uuid

import pytest
from mcp.shared.exceptions import MCPError

from tests.compat.octostore.server import bearer
from tests.http.job_client import ABSENT_LEASE, ROOT_KEY
from tests.mcp.clients import NEW, OLD, over_http
from tests.mcp.raw import heading, new, old, post

INVALID_PARAMS = -32602


def speak(server, talk, era=NEW, **more):
    async def run():
        async with over_http(server, era, **more) as me:
            return await talk(me)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("tool", "arguments", "pointer"),
    [
        ("claim_job", {"owner": "me"}, "/jobId"),
        ("claim_job", {"jobId": 7, "owner": "me"}, "/jobId"),
        ("claim_job", {"jobId": "a"}, "/owner"),
        ("claim_job", {"jobId": "a", "owner": "me", "ttlMs": 0}, "/ttl_seconds"),
        ("claim_job", {"jobId": "a", "owner": "me", "ttlMs": 1500}, "/ttl_seconds"),
        ("claim_job", {"jobId": "a", "owner": "me", "waitMs": 3_600_000}, "/wait_seconds"),
        ("release_job", {"jobId": "a"}, "/leaseId"),
        ("complete_task", {"id": "tsk_1", "result": {}}, "/leaseId"),
        ("heartbeat_task", {"id": "tsk_1", "leaseId": ""}, "/leaseId"),
    ],
)
def test_a_mistake_is_told_with_its_place(server, tool, arguments, pointer):
    found = speak(server, lambda me: me.refused(tool, **arguments))
    assert pointer in [error["pointer"] for error in found["errors"]]
    assert found["agent_contract"]["next_actions"][0]["action"] == "fix_request"
    assert found["agent_contract"]["retryable"] is False


@pytest.mark.parametrize("era", [OLD, NEW])
def test_half_a_character_is_refused_wherever_it_stands(server, era):
    for arguments in ({"jobId": "\ud800", "owner": "me"}, {"jobId": "job", "owner": "me", "metadata": {"x": "\ud800"}}):
        message = (new if era == NEW else old)("tools/call", name="claim_job", arguments=arguments)
        said = post(server, message, **(heading(message) if era == NEW else {}))
        # The older parser of the SDK stumbles over it by itself.
        assert said.status == 400 or said.json["result"]["structuredContent"]["error"] == "invalid_request"


def test_a_lost_lease_says_stop(server):
    found = speak(server, lambda me: me.refused("heartbeat_job", jobId="never-claimed", leaseId=ABSENT_LEASE))
    assert found["error"] == "lease_lost"
    assert found["agent_contract"]["next_actions"][0]["action"] == "stop_work"
    assert "get_job_owner" in [step.get("tool") for step in found["agent_contract"]["next_actions"]]


def test_a_key_opens_through_a_tool_what_it_opens_elsewhere_and_no_more(server):
    root = bearer(server.port, ROOT_KEY)
    made = root.post("/v1/keys", {"name": "looker", "scopes": ["read"], "prefix": "team-a/"}).json

    async def look(me):
        refused = await me.refused("claim_job", jobId="team-a/x", owner="looker")
        assert (refused["status"], refused["error"]) == (403, "forbidden")
        assert (await me.refused("create_task", type="t", payload={}))["error"] == "forbidden"
        assert (await me.refused("get_job_owner", jobId="team-b/x"))["error"] == "forbidden"
        assert (await me.do("get_job_owner", jobId="team-a/x"))["status"] == "free"

    speak(server, look, key=made["apiKey"])


def test_nothing_crosses_accounts(server):
    ours = speak(server, lambda me: me.do("create_task", type="ours", payload={"for": "us"}))
    key = server.anyone.post("/v1/keys/register").json["apiKey"]

    async def pry(me):
        assert (await me.refused("check_task_status", id=ours["id"]))["error"] == "task_not_found"
        assert (await me.do("list_tasks", type="ours"))["tasks"] == []
        with pytest.raises(MCPError) as wrong:
            await me.client.read_resource(f"holdfast://tasks/{ours['id']}")
        assert wrong.value.code == INVALID_PARAMS

    speak(server, pry, key=key)


@pytest.mark.parametrize("era", [OLD, NEW])
def test_what_does_not_exist_is_an_error_of_the_protocol(server, era):
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

    speak(server, ask, era)


def test_an_unknown_argument_is_named_in_a_warning(server):
    job = f"job-{uuid.uuid4()}"
    found = speak(server, lambda me: me.do("claim_job", jobId=job, owner="me", waitSecnds=3))
    assert "waitSecnds" in found["warnings"][0]


def test_one_key_has_one_effect(server):
    asked = {"jobId": f"job-{uuid.uuid4()}", "owner": "me", "idempotencyKey": uuid.uuid4().hex}

    async def twice(me):
        first, second = await me.do("claim_job", **asked), await me.do("claim_job", **asked)
        assert first["lease_id"] == second["lease_id"]
        clash = await me.refused("claim_job", **(asked | {"owner": "you"}))
        assert clash["error"] == "idempotency_conflict"

    speak(server, twice)
