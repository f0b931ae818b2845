"""Subscriptions to resources: a client is notified of changes of the resources it named, and of no others."""

import asyncio
import uuid

from mcp.server.subscriptions import ResourceUpdated

from tests.compat.octostore.server import Server
from tests.mcp.clients import NEW, over_http


async def received(subscription, seconds=10):
    return await asyncio.wait_for(anext(subscription), seconds)


def test_a_subscriber_is_notified_of_its_resources_only(server):
    job, other = f"repo/issue-{uuid.uuid4().hex}", f"job-{uuid.uuid4().hex}"

    async def listen():
        async with over_http(server, NEW) as me, over_http(server, NEW) as they:
            task = await they.do("create_task", type="heard", payload={})
            addresses = [f"holdfast://leases/{job}", f"holdfast://tasks/{task['id']}", "holdfast://skill"]
            async with me.client.listen(resource_subscriptions=addresses) as subscription:
                await they.do("claim_job", jobId=other, owner="they")
                mine = await they.do("claim_job", jobId=job, owner="they")
                assert await received(subscription) == ResourceUpdated(addresses[0])
                taken = await they.do("claim_task", type="heard", workerId="they")
                assert await received(subscription) == ResourceUpdated(addresses[1])
                await they.do("release_job", jobId=job, leaseId=mine["lease_id"])
                assert await received(subscription) == ResourceUpdated(addresses[0])
                await they.do("complete_task", id=task["id"], leaseId=taken["leaseId"])
                assert await received(subscription) == ResourceUpdated(addresses[1])

    asyncio.run(listen())


def test_a_stopping_server_ends_subscriptions_cleanly(tmp_path):
    server = Server(f"sqlite:///{tmp_path}/listen.db").start()

    async def listen():
        async with (
            over_http(server, NEW) as me,
            me.client.listen(resource_subscriptions=["holdfast://leases/x"]) as subscription,
        ):
            stopping = asyncio.ensure_future(asyncio.to_thread(server.stop))
            assert [event async for event in subscription] == []
            await stopping

    asyncio.run(asyncio.wait_for(listen(), 25))
    assert server.process.returncode == 0
    server.close_files()
