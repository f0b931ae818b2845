"""Every tool through SDK clients: over HTTP and stdio, in both protocol versions."""

import asyncio
import uuid

import pytest

from holdfast.transport.mcp.tools import TOOLS
from tests.compat.octostore.server import ADMIN_KEY
from tests.http.job_client import ROOT_KEY
from tests.mcp.clients import KEY, NEW, OLD, over_http, over_stdio

SECRETS = (KEY, ROOT_KEY, ADMIN_KEY)


async def own_a_job(me):
    job = f"repo/issue-{uuid.uuid4().hex}"
    mine = await me.do("claim_job", jobId=job, owner="agent-1", ttlMs=60_000, metadata={"branch": "fix"})
    assert (mine["status"], mine["owner"], mine["ttl_seconds"]) == ("claimed", "agent-1", 60)
    assert mine["agent_contract"]["next_actions"][0]["tool"] == "heartbeat_job"
    theirs = await me.do("claim_job", jobId=job, owner="agent-2")
    assert (theirs["status"], theirs["owner"]) == ("held", "agent-1")
    assert "lease_id" not in theirs
    kept = await me.do(
        "heartbeat_job", jobId=job, leaseId=mine["lease_id"], ttlMs=90_000, note="half done", checkpoint={"step": 2}
    )
    assert kept["ttl_seconds"] == 90
    assert (await me.do("get_job_owner", jobId=job))["note"] == "half done"
    listed = await me.do("list_claimed_jobs", prefix=job)
    assert [owned["job_id"] for owned in listed["jobs"]] == [job]
    assert (await me.do("release_job", jobId=job, leaseId=mine["lease_id"]))["status"] == "released"
    lost = await me.refused("heartbeat_job", jobId=job, leaseId=mine["lease_id"])
    assert lost["error"] == "lease_lost"
    after = await me.do("claim_job", jobId=job, owner="agent-2")
    assert (after["status"], after["previous"]["checkpoint"]) == ("claimed", {"step": 2})
    assert after["token"] > mine["token"]
    await me.do("release_job", jobId=job, leaseId=after["lease_id"])
    return job


async def own_any_of_several_jobs(me):
    names = [f"slot-{number}-{uuid.uuid4().hex}" for number in (1, 2)]
    mine = await me.do("claim_any_job", anyOf=names, owner="agent-1")
    theirs = await me.do("claim_any_job", anyOf=names, owner="agent-2")
    assert [mine["job_id"], theirs["job_id"]] == names
    assert (await me.do("claim_any_job", anyOf=names, owner="agent-3", waitMs=50))["status"] == "held"
    for job in (mine, theirs):
        await me.do("release_job", jobId=job["job_id"], leaseId=job["lease_id"])


async def reserve_some_files(me):
    space = f"acme/{uuid.uuid4().hex}"
    mine = await me.do(
        "reserve_files", space=space, owner="agent-1", paths=["src/auth/", "README.md"], ttlMs=60_000, reason="login"
    )
    assert (mine["status"], mine["ttl_seconds"]) == ("reserved", 60)
    assert mine["agent_contract"]["next_actions"][0]["tool"] == "heartbeat_files"
    held = await me.do("reserve_files", space=space, owner="agent-2", paths=["src/auth/login.py"], waitMs=50)
    assert (held["status"], held["conflicts"][0]["owner"]) == ("held", "agent-1")
    assert "conflicts" not in held["untrusted_fields"]
    assert {"owner", "paths", "reason"} <= set(held["untrusted_fields"])
    proof = {"reservationId": mine["reservation_id"], "leaseId": mine["lease_id"]}
    assert (await me.do("heartbeat_files", **proof, ttlMs=90_000))["ttl_seconds"] == 90
    paths = ["src/auth/login.py", "docs/a.md"]
    found = await me.do("who_owns", space=space, paths=paths, leaseIds=[])
    assert [file["allowed"] for file in found["files"]] == [False, True]
    assert (await me.do("who_owns", space=space, paths=paths, leaseIds=[mine["lease_id"]]))["all_allowed"] is True
    assert (await me.do("release_files", **proof, paths=["src/auth/"]))["paths"] == ["README.md"]
    assert (await me.do("release_files", **proof))["status"] == "released"
    lost = await me.refused("heartbeat_files", **proof)
    assert (lost["error"], lost["agent_contract"]["next_actions"][0]["action"]) == ("lease_lost", "stop_work")


async def work_through_a_queue(me):
    kind = f"kind-{uuid.uuid4().hex}"
    message = {
        "type": kind,
        "payload": {"file": "a.txt"},
        "leaseDurationMs": 60_000,
        "idempotencyKey": uuid.uuid4().hex,
    }
    made = await me.do("create_task", **message)
    assert (made["status"], made["leaseDurationSeconds"]) == ("pending", 60)
    assert (await me.do("create_task", **message))["id"] == made["id"]
    taken = await me.do("claim_task", type=kind, workerId="agent-1", waitMs=1000)
    proof = {"id": made["id"], "leaseId": taken["leaseId"]}
    assert taken["id"] == made["id"]
    assert (await me.do("claim_task", type=kind, workerId="agent-2"))["task"] is None
    kept = await me.do("heartbeat_task", **proof, checkpoint={"line": 7})
    assert {step.get("tool") for step in kept["agent_contract"]["next_actions"]} >= {"heartbeat_task", "complete_task"}
    assert (await me.do("release_task", **proof, note="not mine"))["status"] == "pending"
    late = await me.refused("complete_task", **proof, result={"late": True})
    assert late["error"] in {"invalid_transition", "lease_superseded", "lease_expired"}
    again = await me.do("claim_task", type=kind, workerId="agent-2")
    assert again["previousAttempt"]["checkpoint"] == {"line": 7}
    proof["leaseId"] = again["leaseId"]
    failed = await me.do("fail_task", **proof, reason="disk full", retryAfterMs=0)
    assert (failed["status"], failed["failureReason"]) == ("pending", "disk full")
    last = await me.do("claim_task", types=[kind], workerId="agent-3", waitMs=5000)
    done = await me.do("complete_task", id=made["id"], leaseId=last["leaseId"], result={"lines": 9})
    assert (done["status"], done["result"]) == ("completed", {"lines": 9})
    assert (await me.do("check_task_status", id=made["id"], waitMs=5000))["result"] == {"lines": 9}
    listed = await me.do("list_tasks", type=kind, status="completed")
    assert [task["id"] for task in listed["tasks"]] == [made["id"]]
    return made["id"]


async def resume_a_session(me):
    name = f"agent-{uuid.uuid4().hex}"
    first = await me.do("resume_session", name=name, ttlMs=60_000, nextAction="write tests")
    job = f"job-{uuid.uuid4().hex}"
    mine = await me.do("claim_job", jobId=job, owner="agent-1", sessionId=first["session_id"])
    taken = await me.refused("resume_session", name=name)
    assert taken["error"] == "session_taken"
    second = await me.do("resume_session", name=name, secret=first["secret"])
    assert (second["status"], second["next_action"]) == ("resumed", "write tests")
    work = await me.do("my_work", sessionId=second["session_id"], secret=first["secret"])
    assert {(held["kind"], held["id"]) for held in work["held"]} == {("session", first["session_id"]), ("job", job)}
    (held,) = second["jobs"]
    assert held["lease_id"] in [each["lease_id"] for each in work["held"]]
    assert held["job_id"] == job
    assert held["lease_id"] != mine["lease_id"]
    assert (await me.refused("release_job", jobId=job, leaseId=mine["lease_id"]))["error"] == "lease_lost"
    await me.do("release_job", jobId=job, leaseId=held["lease_id"])


async def read_the_log(me, job, task):
    after, kinds = 0, {}
    while True:
        page = await me.do("list_events", after=after, limit=1000)
        for event in page["events"]:
            kinds.setdefault(event["subject"], []).append(event["kind"])
        after = page["nextCursor"]
        if not page["hasMore"]:
            break
    assert [kind.partition(".")[2] for kind in kinds[f"lease:{job}"]][:3] == ["claimed", "renewed", "released"]
    assert [kind.partition(".")[2] for kind in kinds[f"task:{task}"]][-1] == "completed"
    waited = await me.do("list_events", after=after, waitMs=50)
    assert waited["events"] == []


async def use_every_tool(speaking, era):
    async with speaking as me:
        assert me.client.protocol_version == era
        assert [tool.name for tool in await me.tools()] == [tool.name for tool in TOOLS]
        job = await own_a_job(me)
        await own_any_of_several_jobs(me)
        await reserve_some_files(me)
        task = await work_through_a_queue(me)
        await resume_a_session(me)
        await read_the_log(me, job, task)
        skill = (await me.client.read_resource("holdfast://skill")).contents[0]
        assert skill.text.startswith("---\nname: holdfast")
        me.received.append(skill.text)
        return "\n".join(me.received)


@pytest.mark.parametrize("era", [OLD, NEW])
def test_every_tool_over_http(server, era):
    received = asyncio.run(use_every_tool(over_http(server, era), era))
    assert not [secret for secret in SECRETS if secret in received]


def test_every_tool_over_stdio_with_a_local_store(tmp_path):
    received = asyncio.run(use_every_tool(over_stdio(OLD, "--store", f"sqlite:///{tmp_path}/own.db"), OLD))
    assert not [secret for secret in SECRETS if secret in received]


def test_every_tool_over_stdio_with_a_remote_server(server):
    settings = {"URL": f"http://127.0.0.1:{server.port}", "API_KEY": KEY}
    received = asyncio.run(use_every_tool(over_stdio(NEW, **settings), NEW))
    assert not [secret for secret in SECRETS if secret in received]


def test_two_agents_on_one_file_see_each_other(tmp_path):
    store = ("--store", f"sqlite:///{tmp_path}/shared.db")

    async def share_a_job():
        async with over_stdio(NEW, *store) as one, over_stdio(NEW, *store) as two:
            mine = await one.do("claim_job", jobId="shared", owner="one")
            assert (await two.do("claim_job", jobId="shared", owner="two"))["owner"] == "one"
            waiting = asyncio.ensure_future(two.do("claim_job", jobId="shared", owner="two", waitMs=20_000))
            await one.do("release_job", jobId="shared", leaseId=mine["lease_id"], note="yours")
            theirs = await waiting
            assert (theirs["status"], theirs["previous"]["note"]) == ("claimed", "yours")

    asyncio.run(share_a_job())
