"""Reads that wait for a change: one that comes between the read and the wait is not missed."""

import asyncio

from tests.http.concurrent_app import ConcurrentApp
from tests.support import claim


def test_a_change_right_after_the_read_ends_the_wait():
    async def scenario(app):
        await app.ask("/v1/jobs/first/claim", body={"owner": "me"})
        last = (await app.ask("/v1/events?limit=1000", "GET")).json["nextCursor"]
        reads, pending = app.ctx._reads, [claim("second")]
        query = reads.query

        async def query_then_change(question):
            found = await query(question)
            while pending:
                await asyncio.to_thread(app.engine.call, pending.pop())
            return found

        reads.query = query_then_change
        _, task = polled = app.begin(f"/v1/events?after={last}&wait_seconds=60", "GET")
        await asyncio.wait_for(task, 20)
        return polled[0].json

    events = ConcurrentApp().run(scenario)["events"]
    assert [event["subject"] for event in events] == ["lease:second"]
