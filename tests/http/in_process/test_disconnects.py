"""Callers that stop waiting: what is granted at that moment is released, or kept for the repeated request."""

import asyncio
import json
import time

from holdfast.core.event import Cause
from holdfast.core.task import PENDING, Task
from holdfast.engine.verbs.tasks.creating import CreateTask
from holdfast.settings import Settings
from holdfast.transport.http import submission
from tests.http.in_process_app import InProcessApp
from tests.support import wait_until

KEY = "a-key-for-tests-of-disconnects"
BODY = b'{"owner": "gone", "wait_seconds": 5}'


def post_scope(path, *headers):
    return {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"authorization", b"Bearer " + KEY.encode()), *headers],
        "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 7700), "scheme": "http",
    }  # fmt: skip


def test_a_grant_that_arrives_together_with_the_disconnect_is_released():
    app = InProcessApp(Settings(root_key=KEY))
    messages = [{"type": "http.request", "body": BODY}]

    async def receive():
        if not messages:
            time.sleep(0.3)  # noqa: ASYNC251 - the event loop sees the disconnect and the grant at the same time
            return {"type": "http.disconnect"}
        return messages.pop()

    async def send(_):
        pass

    async def claim():
        app.ctx.open()
        await app.app(post_scope("/v1/jobs/deploy/claim"), receive, send)
        return await asyncio.to_thread(kinds_of_events, app, 2)

    assert app.runner.run(claim()) == ["lease.claimed", "lease.undelivered"]
    app.close()


def test_a_grant_that_arrives_together_with_the_cancellation_of_its_call_is_released(monkeypatch):
    """A caller over MCP that disconnects is not seen to do so: its call is cancelled."""
    app = InProcessApp(Settings(root_key=KEY))
    messages = [{"type": "http.request", "body": BODY}]

    async def cancel():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    async def receive():
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(_):
        pass

    async def claim():
        app.ctx.open()
        call = asyncio.ensure_future(app.app(post_scope("/v1/jobs/deploy/claim"), receive, send))
        await asyncio.wait({call}, timeout=10)
        assert call.cancelled()
        return await asyncio.to_thread(kinds_of_events, app, 2)

    monkeypatch.setattr(submission, "let_disconnect_arrive", cancel)
    assert app.runner.run(claim()) == ["lease.claimed", "lease.undelivered"]
    app.close()


def kinds_of_events(app, count):
    """What happened to the job, as soon as there are so many events."""

    def read():
        return [event.kind for event in app.engine.read(lambda reader: reader.history("default", "lease:deploy"))]

    wait_until(lambda: len(read()) == count, 10)
    return read()


async def claim_task(app, body, gone=None):
    """Status and body of a claim by a caller that stays connected, or does until it is gone."""
    messages, sent = [{"type": "http.request", "body": body}], []

    async def receive():
        if not messages:
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}
        return messages.pop()

    async def send(message):
        sent.append(message)

    await app.app(post_scope("/v1/tasks/claim", (b"idempotency-key", b"one-claim")), receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


async def repeat_while_it_waits(app, second):
    """A claim that waits, and its repetition; then a task is created. The answers, and the state of the task."""
    app.ctx.open()
    first = asyncio.ensure_future(claim_task(app, b'{"types": ["work"], "wait_seconds": 20}'))
    await queued(app, 1)
    repeated = asyncio.ensure_future(claim_task(app, second))
    await asyncio.wait({repeated}, timeout=0.3)
    await create_task(app)
    return await asyncio.wait_for(asyncio.gather(first, repeated), 10), the_task(app)


async def queued(app, count):
    await asyncio.to_thread(wait_until, lambda: app.engine.task_waiters.size() == count, 10)


async def create_task(app):
    create = CreateTask(account="default", cause=Cause("test", ""), task=Task("default", "tsk_1", type="work"))
    await asyncio.to_thread(app.engine.call, create)


def the_task(app):
    return app.engine.read(lambda reader: reader.row(Task, "default", "tsk_1"))


def test_a_claim_that_is_repeated_without_waiting_leaves_the_queue():
    """Otherwise a task could be granted to a caller that has already received an empty answer."""
    app = InProcessApp(Settings(root_key=KEY))
    (first, repeated), task = app.runner.run(repeat_while_it_waits(app, b'{"types": ["work"]}'))
    assert first[0] == 499
    assert (repeated[0], repeated[1]["message"]) == (200, "no_tasks")
    assert task.state == PENDING
    app.close()


def test_a_claim_that_is_repeated_for_another_time_gets_the_task_of_the_first():
    app, began = InProcessApp(Settings(root_key=KEY)), time.monotonic()
    (first, repeated), task = app.runner.run(repeat_while_it_waits(app, b'{"types": ["work"], "wait_seconds": 9}'))
    assert time.monotonic() - began < 5, "both are answered at the grant"
    assert (first[0], repeated[0]) == (200, 200)
    assert first[1]["leaseId"] == repeated[1]["leaseId"]
    assert task.attempt == 1
    app.close()


def test_a_repeated_claim_still_leaves_the_queue_when_the_first_one_has_ended():
    """The first is answered or gone, the second waits, and the third is told that there is nothing."""
    app, gone = InProcessApp(Settings(root_key=KEY)), asyncio.Event()

    async def repeat_twice():
        app.ctx.open()
        first = asyncio.ensure_future(claim_task(app, b'{"types": ["work"], "wait_seconds": 20}', gone))
        await queued(app, 1)
        second = asyncio.ensure_future(claim_task(app, b'{"types": ["work"], "wait_seconds": 20}'))
        await queued(app, 2)
        gone.set()
        await asyncio.wait_for(first, 10)
        third = await claim_task(app, b'{"types": ["work"]}')
        await create_task(app)
        return await asyncio.wait_for(second, 10), third

    second, third = app.runner.run(repeat_twice())
    assert (second[0], third[0], third[1]["message"]) == (499, 200, "no_tasks")
    assert the_task(app).state == PENDING
    app.close()


def test_a_repeated_claim_that_does_not_wait_ends_every_wait_under_its_key():
    """The repetition that waits leaves first. The first must not go on waiting when the third is told of nothing."""
    app, gone = InProcessApp(Settings(root_key=KEY)), asyncio.Event()

    async def repeat_twice():
        app.ctx.open()
        first = asyncio.ensure_future(claim_task(app, b'{"types": ["work"], "wait_seconds": 20}'))
        await queued(app, 1)
        second = asyncio.ensure_future(claim_task(app, b'{"types": ["work"], "wait_seconds": 20}', gone))
        await queued(app, 2)
        gone.set()
        await asyncio.wait_for(second, 10)
        third = await claim_task(app, b'{"types": ["work"]}')
        await create_task(app)
        return await asyncio.wait_for(first, 10), third

    first, third = app.runner.run(repeat_twice())
    assert (first[0], third[0], third[1]["message"]) == (499, 200, "no_tasks")
    assert the_task(app).state == PENDING
    app.close()
