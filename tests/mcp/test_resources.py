"""Resources and prompts."""

import asyncio
import json
import uuid

import pytest

from tests.mcp.clients import NEW, OLD, over_http


@pytest.mark.parametrize("era", [OLD, NEW])
def test_resources_contain_what_the_http_routes_return(server, era):
    async def read():
        async with over_http(server, era) as me:
            listed = (await me.client.list_resources()).resources
            assert [resource.uri for resource in listed] == ["holdfast://skill"]
            templates = (await me.client.list_resource_templates()).resource_templates
            assert [kind.uri_template for kind in templates] == ["holdfast://leases/{name}", "holdfast://tasks/{id}"]
            job = f"repo/issue.{uuid.uuid4().hex}"
            mine = await me.do("claim_job", jobId=job, owner="agent-1")
            for name in (job, job.replace("/", "%2F")):
                (lease,) = (await me.client.read_resource(f"holdfast://leases/{name}")).contents
                assert lease.mime_type == "application/json"
                listed_tool = json.loads(lease.text)
                assert (listed_tool["job_id"], listed_tool["owner"]) == (job, "agent-1")
                assert mine["lease_id"] not in lease.text
            made = await me.do("create_task", type="read", payload={"a": 1})
            (task,) = (await me.client.read_resource(f"holdfast://tasks/{made['id']}")).contents
            assert json.loads(task.text)["payload"] == {"a": 1}
            (skill,) = (await me.client.read_resource("holdfast://skill")).contents
            assert skill.mime_type == "text/markdown"
            assert "lease_lost" in skill.text

    asyncio.run(read())


@pytest.mark.parametrize("era", [OLD, NEW])
def test_prompts_contain_their_arguments(server, era):
    async def get_prompts():
        async with over_http(server, era) as me:
            listed = (await me.client.list_prompts()).prompts
            assert [prompt.name for prompt in listed] == ["coordinate_work", "hand_over"]
            needed = [[argument.name for argument in prompt.arguments if argument.required] for prompt in listed]
            assert needed == [["work"], ["name"]]
            arguments = {"work": "fix the roof", "agent": "agent-9"}
            (begin,) = (await me.client.get_prompt("coordinate_work", arguments)).messages
            assert begin.role == "user"
            assert "fix the roof" in begin.content.text
            assert "`agent-9`" in begin.content.text
            (end,) = (await me.client.get_prompt("hand_over", {"name": "repo/issue-1", "to": "bob"})).messages
            assert "Hand `repo/issue-1` over to bob" in end.content.text
            tools = {tool.name for tool in await me.tools()}
            for word in ("claim_job", "heartbeat_job", "release_job"):
                assert word in begin.content.text
                assert word in tools

    asyncio.run(get_prompts())
