"""Embedded mode for asyncio: the engine in this process answers while the event loop runs other tasks."""

import asyncio
import operator
import threading
import time

import pytest

import holdfast
from holdfast.client.errors import ServerError, Unreachable
from tests.support import wait_until


def ours():
    return [thread for thread in threading.enumerate() if thread.name.startswith("holdfast")]


def test_the_async_client_has_the_same_methods_and_closing_stops_every_thread(tmp_path):
    before = len(ours())

    async def program():
        async with holdfast.open_async(tmp_path / "x.db") as client:
            async with client.job("a", "me") as lease:
                assert (await client.claim_job("a", "another"))["status"] == "held"
                assert lease.token == 1
            made = await client.create_task("work", {"n": 1})
        with pytest.raises(Unreachable):
            await client.get_job_owner("a")
        return made

    made = asyncio.run(program())
    wait_until(lambda: len(ours()) <= before)  # one of an earlier test may end meanwhile
    with holdfast.open(tmp_path / "x.db") as client:
        assert client.check_task_status(made["id"])["payload"] == {"n": 1}


is_trying = operator.attrgetter("is_submitted")


def test_a_waiting_call_blocks_no_other_and_a_cancelled_one_leaves_the_queue(tmp_path):
    async def program():
        async with holdfast.open_async(tmp_path / "x.db") as client:
            engine = client._transport._inner._engine
            held = await client.claim_job("a", "first")
            waiting = asyncio.create_task(client.claim_job("a", "second", wait_seconds=30))
            assert (await client.claim_job("b", "third"))["status"] == "claimed"
            await asyncio.to_thread(wait_until, lambda: engine.name_waiters.size() == 1)
            # A waiter tries once more when it has joined the queue: cancelled meanwhile, that try may be granted.
            await asyncio.to_thread(wait_until, lambda: not any(map(is_trying, engine.name_waiters._tickets())))
            assert not waiting.done()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            # A release that is handled before the disconnect would correctly grant the job to the waiter.
            await asyncio.to_thread(wait_until, lambda: engine.name_waiters.size() == 0)
            await client.release_job("a", held["lease_id"])
            return await client.claim_job("a", "fourth", wait_seconds=20)

    assert asyncio.run(program())["owner"] == "fourth"


def test_events_are_followed_and_a_follower_can_stop_at_once(tmp_path):
    async def program():
        async with holdfast.open_async(tmp_path / "x.db") as client:
            seen = []

            async def follow():
                async for event in client.follow(after=0, subject="lease:*"):
                    seen.append(event.kind)  # noqa: PERF401 - it never ends

            following = asyncio.create_task(follow())
            held = await client.claim_job("a", "first")
            await client.release_job("a", held["lease_id"])
            await asyncio.to_thread(wait_until, lambda: len(seen) == 2)
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await following
            return seen

    began = time.monotonic()
    assert asyncio.run(program()) == ["lease.claimed", "lease.released"]
    assert time.monotonic() - began < 30, "a thread still waited for a chunk that was not needed"


def test_a_file_that_is_no_store_raises_our_error(tmp_path):
    (tmp_path / "x.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(ServerError):
        holdfast.open_async(tmp_path / "x.db")
