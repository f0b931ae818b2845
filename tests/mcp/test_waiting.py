"""Tool calls that wait: they end with a release, and a client that disconnects leaves the queue."""

import asyncio
import re
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.settings import Settings
from holdfast.transport.mcp.in_process import InProcessSender, ToolRequest
from holdfast.transport.mcp.notices import end_of_log
from tests.compat.octostore.server import Server
from tests.http.in_process_app import InProcessApp
from tests.http.job_client import agent, claimed, ok
from tests.mcp.clients import KEY, NEW, OLD, over_http
from tests.mcp.raw_requests import connect, headers_of, new, old, post, send
from tests.support import wait_until

MESSAGES = {OLD: old, NEW: new}


def waiting(server):
    """The number of waiters for names."""
    text = server.admin.get("/metrics/prometheus").raw.decode()
    (many,) = re.findall(r'^holdfast_waiters{for="name"} (\S+)', text, re.MULTILINE)
    return float(many)


@pytest.mark.parametrize("era", [OLD, NEW])
def test_a_claim_that_waits_gets_the_job_as_soon_as_it_is_free(server, era):
    job = f"job-{uuid.uuid4()}"
    holder = agent(server)
    mine = claimed(holder.claim(job))

    async def wait():
        async with over_http(server, era) as me:
            message = asyncio.ensure_future(me.do("claim_job", jobId=job, owner="next", waitMs=20_000))
            await asyncio.to_thread(wait_until, lambda: waiting(server) == 1)
            began = time.monotonic()
            await asyncio.to_thread(lambda: ok(holder.release_job(job, mine["lease_id"])))
            assert (await message)["status"] == "claimed"
            assert time.monotonic() - began < 10

    asyncio.run(wait())


@pytest.mark.parametrize("era", [OLD, NEW])
def test_a_client_that_disconnects_leaves_the_queue(server, era):
    job = f"job-{uuid.uuid4()}"
    holder = agent(server)
    mine = claimed(holder.claim(job))
    arguments = {"jobId": job, "owner": "gone", "waitMs": 50_000}
    message = MESSAGES[era]("tools/call", name="claim_job", arguments=arguments)
    connection = connect(server)
    send(connection, message, **(headers_of(message) if era == NEW else {}))
    wait_until(lambda: waiting(server) == 1)
    connection.sock.close()
    wait_until(lambda: waiting(server) == 0)
    ok(holder.release_job(job, mine["lease_id"]))
    assert holder.owner_of(job)["status"] == "free"


def test_a_stopping_server_answers_waiting_calls(tmp_path):
    server = Server(f"sqlite:///{tmp_path}/drain.db").start()
    claimed(agent(server).claim("job"))
    arguments = {"jobId": "job", "owner": "late", "waitMs": 50_000}
    with ThreadPoolExecutor() as pool:
        messages = [make("tools/call", name="claim_job", arguments=arguments) for make in (old, new)]
        heads = [{}, headers_of(messages[1])]
        response = [pool.submit(post, server, message, **head) for message, head in zip(messages, heads, strict=True)]
        wait_until(lambda: waiting(server) == 2, seconds=20)
        server.stop()
        for answer in response:
            result = answer.result().json["result"]
            assert result["isError"] is True
            assert (result["structuredContent"]["error"], result["structuredContent"]["applied"]) == ("draining", "no")
    assert server.process.returncode == 0
    server.close_files()


def test_a_cancelled_call_leaves_no_asyncio_task():
    app = InProcessApp(Settings(root_key=KEY, store="memory:"))

    async def cancel():
        app.ctx.open()
        caller = InProcessSender(app.app, [(b"authorization", f"Bearer {KEY}".encode())])
        after, _ = await end_of_log(caller)
        before = asyncio.all_tasks()
        call = asyncio.ensure_future(caller.send(ToolRequest("GET", "/v1/events", f"after={after}&wait_seconds=30")))
        loop = asyncio.get_running_loop()
        # The call, one task that waits for a disconnect, and one that waits for a change.
        await asyncio.to_thread(wait_until, lambda: len(asyncio.all_tasks(loop)) == len(before) + 3)
        call.cancel()
        await asyncio.wait({call})
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before

    app.runner.run(cancel())
    app.close()
