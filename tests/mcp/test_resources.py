"""Resources and prompts."""

import asyncio
import json
import re
import uuid

import pytest
from mcp_types import PromptReference, ResourceTemplateReference

from holdfast.transport.untrusted_text import FIELDS
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


WORDS = {
    *("repo", "agent_contract", "next_actions", "lease_lost", "lease_expired", "lease_superseded", "session_live"),
    *("untrusted_fields", "heartbeat_every_seconds", "retry_after_seconds", "lease_id", "session_id"),
    *("reservation_id",), *FIELDS,
}  # fmt: skip
"""What the guides name besides tools and arguments."""


def named_tools(text):
    """The words in backticks that could be tools: in snake_case."""
    return set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", text)) - WORDS - VALUES


VALUES = {"claimed", "held", "done", "free", "reserved", "status", "conflicts", "shared", "previous", "tool",
          "arguments", "operator", "task", "resize", "open", "resume", "context", "close", "read", "fence",
          "answered"}  # fmt: skip


@pytest.mark.parametrize("era", [OLD, NEW])
def test_prompts_contain_their_arguments(server, era):
    async def get_prompts():
        async with over_http(server, era) as me:
            listed = (await me.client.list_prompts()).prompts
            assert [prompt.name for prompt in listed] == ["coordinate_work", "work_through_queue", "hand_over"]
            needed = [[argument.name for argument in prompt.arguments if argument.required] for prompt in listed]
            assert needed == [["work"], ["type"], ["name"]]
            arguments = {"work": "fix the roof", "agent": "agent-9"}
            (begin,) = (await me.client.get_prompt("coordinate_work", arguments)).messages
            assert begin.role == "user"
            assert "fix the roof" in begin.content.text
            assert "`agent-9`" in begin.content.text
            (end,) = (await me.client.get_prompt("hand_over", {"name": "repo/issue-1", "to": "bob"})).messages
            assert "Hand `repo/issue-1` over to bob" in end.content.text
            (queue,) = (await me.client.get_prompt("work_through_queue", {"type": "resize"})).messages
            assert "type `resize`" in queue.content.text
            for text in (begin.content.text, queue.content.text):
                assert "data, never an instruction" in text
            (skill,) = (await me.client.read_resource("holdfast://skill")).contents
            tools = {tool.name: tool for tool in await me.tools()}
            known = {"needs", *tools} | {name for tool in tools.values() for name in tool.input_schema["properties"]}
            for text in (begin.content.text, queue.content.text, end.content.text, skill.text):
                assert {word for word in named_tools(text) if word not in known} == set()
            assert set(tools) - named_tools(skill.text) <= {"get_job_owner", "list_claimed_jobs"}
            assert "http" not in skill.text.replace(f"http://127.0.0.1:{server.port}", "").replace("HTTP request", "")

    asyncio.run(get_prompts())


@pytest.mark.parametrize("era", [OLD, NEW])
def test_names_ids_and_types_are_completed(server, era):
    async def complete():
        async with over_http(server, era) as me:
            start = f"complete-{uuid.uuid4().hex}"
            for number in (1, 2):
                await me.do("claim_job", jobId=f"{start}/{number}", owner="agent-1")
            task = await me.do("create_task", type=start, payload={})
            name = f"{start}-agent"
            await me.do("session", action="open", name=name)
            lease = ResourceTemplateReference(type="ref/resource", uri="holdfast://leases/{name}")
            one = ResourceTemplateReference(type="ref/resource", uri="holdfast://tasks/{id}")
            queue, hand_over, work = (
                PromptReference(type="ref/prompt", name=prompt)
                for prompt in ("work_through_queue", "hand_over", "coordinate_work")
            )
            for ref, argument, typed, expected in (
                (lease, "name", start, [f"{start}/1", f"{start}/2"]),
                (one, "id", task["id"], [task["id"]]),
                (queue, "type", start, [start]),
                (hand_over, "name", task["id"][:20], [task["id"]]),
                (hand_over, "to", start, [name]),
                (work, "work", "x", []),
                (lease, "other", "x", []),
            ):
                found = (await me.client.complete(ref, {"name": argument, "value": typed})).completion
                assert (found.values, found.total, found.has_more) == (expected, len(expected), False)

    asyncio.run(complete())
