"""Every tool through SDK clients: over HTTP and stdio, in both protocol versions."""

import asyncio
import uuid

import pytest

from holdfast.transport.mcp.operator_tools import OPERATOR, TOOL_SETS
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
    mine = await me.do("claim_job", jobId=names[0], alternatives=names[1:], owner="agent-1")
    theirs = await me.do("claim_job", jobId=names[0], alternatives=names[1:], owner="agent-2")
    assert [mine["job_id"], theirs["job_id"]] == names
    late = await me.do("claim_job", jobId=names[0], alternatives=names[1:], owner="agent-3", waitMs=50)
    assert late["status"] == "held"
    for job in (mine, theirs):
        await me.do("release_job", jobId=job["job_id"], leaseId=job["lease_id"])


async def reserve_some_files(me):
    space = f"acme/{uuid.uuid4().hex}"
    mine = await me.do(
        "reserve_files", space=space, owner="agent-1", paths=["src/auth/", "README.md"], ttlMs=60_000, reason="login"
    )
    assert (mine["status"], mine["ttl_seconds"]) == ("reserved", 60)
    step = mine["agent_contract"]["next_actions"][0]
    assert (step["tool"], step["arguments"]) == (
        "heartbeat",
        {"id": mine["reservation_id"], "leaseId": mine["lease_id"]},
    )
    held = await me.do("reserve_files", space=space, owner="agent-2", paths=["src/auth/login.py"], waitMs=50)
    assert (held["status"], held["conflicts"][0]["owner"]) == ("held", "agent-1")
    assert "conflicts" not in held["untrusted_fields"]
    assert {"owner", "paths", "reason"} <= set(held["untrusted_fields"])
    proof = {"reservationId": mine["reservation_id"], "leaseId": mine["lease_id"]}
    renew = {"id": mine["reservation_id"], "leaseId": mine["lease_id"]}
    assert (await me.do("heartbeat", **renew, ttlMs=90_000))["ttl_seconds"] == 90
    more = await me.do("reserve_files", **proof, space=space, owner="agent-1", paths=["docs/b.md"])
    assert (more["paths"], more.get("warnings")) == (["src/auth/", "README.md", "docs/b.md"], None)
    paths = ["src/auth/login.py", "docs/a.md"]
    found = await me.do("who_owns", space=space, paths=paths, leaseIds=[])
    assert [file["allowed"] for file in found["files"]] == [False, True]
    assert (await me.do("who_owns", space=space, paths=paths, leaseIds=[mine["lease_id"]]))["all_allowed"] is True
    (row,) = (await me.do("who_owns", space=space, owner="agent-1"))["reservations"]
    assert row["reservation_id"] == mine["reservation_id"]
    assert (await me.do("who_owns", reservationId=mine["reservation_id"]))["owner"] == "agent-1"
    assert (await me.do("release_files", **proof, paths=["src/auth/", "docs/b.md"]))["paths"] == ["README.md"]
    assert (await me.do("release_files", **proof))["status"] == "released"
    lost = await me.refused("heartbeat", **renew)
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
    assert (taken["id"], taken["payload"]) == (made["id"], {"file": "a.txt"})
    assert (await me.do("claim_task", type=kind, workerId="agent-2"))["task"] is None
    kept = await me.do("heartbeat", **proof, checkpoint={"line": 7})
    assert not {"payload", "checkpoint"} & kept.keys()
    assert {step.get("tool") for step in kept["agent_contract"]["next_actions"]} >= {"heartbeat", "complete_task"}
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
    seen = await me.do("check_task_status", id=made["id"], waitMs=5000)
    assert (seen["result"], seen["payload"]) == ({"lines": 9}, {"file": "a.txt"})
    listed = await me.do("list_tasks", type=kind, status="completed")
    assert [task["id"] for task in listed["tasks"]] == [made["id"]]
    assert not {"payload", "result", "checkpoint"} & listed["tasks"][0].keys()
    return made["id"]


async def use_a_session(me):
    name = f"agent-{uuid.uuid4().hex}"
    first = await me.do("session", action="open", name=name, ttlMs=60_000, nextAction="write tests")
    own = {"sessionId": first["session_id"], "leaseId": first["lease_id"]}
    job = f"job-{uuid.uuid4().hex}"
    mine = await me.do("claim_job", jobId=job, owner="agent-1", sessionId=first["session_id"])
    taken = await me.refused("session", action="open", name=name)
    assert taken["error"] == "session_taken"
    kept = await me.do("session", action="context", **own, context={"step": 2})
    assert (kept["context_version"], "context" in kept) == (2, False)
    await me.do("session", action="heartbeat", **own)
    live = await me.refused("session", action="resume", name=name, secret=first["secret"])
    assert (live["error"], live["generation"]) == ("session_live", 1)
    assert live["agent_contract"]["next_actions"][0]["action"] == "retry_after_wait"
    assert (await me.do("heartbeat_job", jobId=job, leaseId=mine["lease_id"]))["status"] == "claimed", "nothing changed"
    second = await me.do("session", action="resume", name=name, secret=first["secret"], ifLive="fence")
    assert (second["status"], second["next_action"], second["context"]) == ("resumed", "write tests", {"step": 2})
    work = await me.do("my_work", sessionId=second["session_id"], secret=first["secret"])
    assert {(held["kind"], held["id"]) for held in work["held"]} == {("session", first["session_id"]), ("job", job)}
    (held,) = second["jobs"]
    assert held["lease_id"] in [each["lease_id"] for each in work["held"]]
    assert held["job_id"] == job
    assert held["lease_id"] != mine["lease_id"]
    assert (await me.refused("release_job", jobId=job, leaseId=mine["lease_id"]))["error"] == "lease_lost"
    seen = await me.do("session", action="read", sessionId=first["session_id"])
    assert [held["job_id"] for held in seen["jobs"]] == [job]
    ended = await me.do("session", action="close", sessionId=first["session_id"], leaseId=second["lease_id"])
    assert ended["status"] == "ended"
    assert (await me.do("get_job_owner", jobId=job))["status"] == "free"
    unknown = await me.refused("session", action="juggle")
    assert unknown["errors"][0]["pointer"] == "/action"


async def bring_back_a_dead_letter(me):
    kind = f"kind-{uuid.uuid4().hex}"
    made = await me.do("create_task", type=kind, payload={})
    taken = await me.do("claim_task", id=made["id"], workerId="agent-1")
    failed = await me.do("fail_task", id=made["id"], leaseId=taken["leaseId"], reason="no", permanent=True)
    tell, step = failed["agent_contract"]["next_actions"]
    assert (tell["action"], tell["recommended"]) == ("continue_work", True)
    assert (step["tool"], step["arguments"]) == ("requeue_task", {"id": made["id"]})
    assert (await me.do(step["tool"], **step["arguments"]))["status"] == "pending"


async def ask_a_person(me):
    kind = f"kind-{uuid.uuid4().hex}"
    made = await me.do("create_task", type=kind, payload={})
    taken = await me.do("claim_task", type=kind, workerId="agent-1")
    proof = {"id": made["id"], "leaseId": taken["leaseId"]}
    asked = await me.do("ask_human", **proof, question="Go on?", choices=["yes", "no"], checkpoint={"line": 8})
    assert (asked["status"], asked["waitingFor"], "checkpoint" in asked) == ("pending", "answer", False)
    assert (await me.refused("complete_task", **proof))["error"] in {"invalid_transition", "lease_superseded"}
    assert (await me.do("claim_task", type=kind))["task"] is None
    assert [task["id"] for task in (await me.do("list_tasks", type=kind, waiting="answer"))["tasks"]] == [made["id"]]


async def use_the_tools_of_operators(me):
    kind, job = f"kind-{uuid.uuid4().hex}", f"job-{uuid.uuid4().hex}"
    made = await me.do("create_task", type=kind, payload={})
    assert (await me.do("count_tasks"))["types"][kind]["pending"] == 1
    assert (await me.do("cancel_task", id=made["id"], reason="not needed"))["status"] == "cancelled"
    dead = await me.do("claim_task", id=(await me.do("create_task", type=kind, payload={}))["id"])
    await me.do("fail_task", id=dead["id"], leaseId=dead["leaseId"], reason="no", permanent=True)
    assert (await me.do("resolve_task", id=dead["id"]))["resolvedAt"]
    await me.do("claim_job", jobId=job, owner="gone")
    assert (await me.do("force_release_job", jobId=job, reason="gone"))["status"]
    files = await me.do("reserve_files", space=kind, owner="gone", paths=["a"])
    await me.do("force_release_reservation", reservationId=files["reservation_id"], reason="gone")
    assert (await me.do("who_owns", space=kind))["reservations"] == []


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


async def use_every_tool(speaking, era, place):
    async with speaking as me:
        assert me.client.protocol_version == era
        assert [tool.name for tool in await me.tools()] == [tool.name for tool in TOOL_SETS[OPERATOR].tools]
        job = await own_a_job(me)
        await own_any_of_several_jobs(me)
        await reserve_some_files(me)
        task = await work_through_a_queue(me)
        await bring_back_a_dead_letter(me)
        await ask_a_person(me)
        await use_a_session(me)
        await read_the_log(me, job, task)
        await use_the_tools_of_operators(me)
        skill = (await me.client.read_resource("holdfast://skill")).contents[0]
        assert skill.text.startswith("---\nname: holdfast")
        assert place in skill.text
        me.received.append(skill.text)
        return "\n".join(me.received)


@pytest.mark.parametrize("era", [OLD, NEW])
def test_every_tool_over_http(server, era):
    speaking = over_http(server, era, ROOT_KEY, tools=OPERATOR)
    received = asyncio.run(use_every_tool(speaking, era, f"http://127.0.0.1:{server.port}"))
    assert not [secret for secret in SECRETS if secret in received]


def test_every_tool_over_stdio_with_a_local_store(tmp_path):
    flags = ("--store", f"sqlite:///{tmp_path}/own.db", "--tools", OPERATOR)
    received = asyncio.run(use_every_tool(over_stdio(OLD, *flags), OLD, f"the file {tmp_path}/own.db"))
    assert not [secret for secret in SECRETS if secret in received]


def test_every_tool_over_stdio_with_a_remote_server(server):
    settings = {"URL": f"http://127.0.0.1:{server.port}", "API_KEY": ROOT_KEY}
    speaking = over_stdio(NEW, "--tools", OPERATOR, **settings)
    received = asyncio.run(use_every_tool(speaking, NEW, f"the server at {settings['URL']}"))
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
