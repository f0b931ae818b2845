"""The worker: runs handlers on tasks and reports their outcome."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

import holdfast
from holdfast.client.errors import AuthError, CancelRequested
from tests.client.ways import KEY, url_of, working
from tests.support import wait_until

pytestmark = pytest.mark.waits(35)


@pytest.fixture
def http(sqlite_server):
    with holdfast.Client(url_of(sqlite_server), KEY) as client:
        yield client


def status(client, task):
    return client.check_task_status(task["id"])


def test_plain_and_async_handlers_complete_their_tasks(embedded_client, http, name):
    for client in (embedded_client, http):
        worker = holdfast.Worker(client, concurrency=2)

        @worker.task(f"{name}-sync")
        def double(context):
            return {"n": context.payload["n"] * 2}

        @worker.task(f"{name}-async")
        async def halve(context):
            await asyncio.sleep(0)
            return {"n": context.payload["n"] // 2}

        with working(worker):
            made = [client.create_task(f"{name}-sync", {"n": n}) for n in range(5)]
            made += [client.create_task(f"{name}-async", {"n": n}) for n in range(5)]
            for task in made:
                client.check_task_status(task["id"], wait_seconds=20)
        results = [status(client, task) for task in made]
        assert [done["status"] for done in results] == ["completed"] * 10
        assert [done["result"]["n"] for done in results] == [0, 2, 4, 6, 8, 0, 0, 1, 1, 2]


def test_a_failed_attempt_is_reported_and_the_next_continues_from_its_checkpoint(http, name):
    worker = holdfast.Worker(http, concurrency=1)
    seen = []

    @worker.task(name)
    def climb(context):
        before = context.previous
        seen.append(None if before is None else (before["checkpoint"], before["errorCode"]))
        if before is None:
            context.checkpoint({"step": 7})
            raise holdfast.Retry("not yet", after=0)

    with working(worker):
        task = http.create_task(name, {})
        wait_until(lambda: status(http, task)["status"] == "completed", 20)
    assert seen == [None, ({"step": 7}, "Retry")]


def test_a_task_that_its_handler_has_offered_is_left_to_who_accepts(http, name):
    worker = holdfast.Worker(http, concurrency=2)
    codes = {}

    @worker.task(f"{name}-sync")
    def give(context):
        codes[context.id] = context.offer(checkpoint={"step": 1})
        return {"ignored": True}

    @worker.task(f"{name}-async")
    async def give_later(context):
        code = await context.offer(checkpoint={"step": 1})
        await asyncio.sleep(0.6)
        codes[context.id] = code

    with working(worker):
        made = [http.create_task(f"{name}-{kind}", {}) for kind in ("sync", "async")]
        wait_until(lambda: len(codes) == 2, 20)
    for task in made:
        assert status(http, task)["status"] == "claimed"
        with http.task_by_id(task["id"], worker="taker", offer=codes[task["id"]]) as mine:
            assert mine.previous["checkpoint"] == {"step": 1}
        assert status(http, task)["status"] == "completed"


def test_permanent_failures_and_invalid_results_are_reported(http, name):
    worker = holdfast.Worker(http, concurrency=1)

    @worker.task(name)
    def never(context):
        if context.payload["how"] == "nonsense":
            return 42
        raise holdfast.Permanent("no such document")

    with working(worker):
        bad = http.create_task(name, {"how": "bad"})
        odd = http.create_task(name, {"how": "nonsense"}, max_attempts=1)
        wait_until(lambda: {status(http, task)["status"] for task in (bad, odd)} == {"dead_letter"}, 20)
    assert status(http, bad)["deadLetterCause"] == "permanent"
    assert http.task_attempts(odd["id"])["attempts"][0]["errorCode"] == "TypeError"


def test_cancellation_stops_plain_and_async_handlers(http, name):
    worker = holdfast.Worker(http, concurrency=2)
    ended = []

    @worker.task(f"{name}-async")
    async def forever(context):
        try:
            while True:
                await context.checkpoint({})  # hears of it
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    @worker.task(f"{name}-sync")
    def until_told(context):
        try:
            while True:
                context.checkpoint({})
                context.check()
                time.sleep(0.05)
        except CancelRequested:
            ended.append("asked")
            raise

    with working(worker):
        tasks = [http.create_task(f"{name}-{kind}", {}) for kind in ("async", "sync")]
        wait_until(lambda: {status(http, task)["status"] for task in tasks} == {"claimed"}, 20)
        for task in tasks:
            http.cancel_task(task["id"], mode="request")
        wait_until(lambda: {status(http, task)["status"] for task in tasks} == {"cancelled"}, 20)
    assert sorted(ended) == ["asked", "cancelled"]


def test_a_handler_that_does_not_end_is_cancelled_and_its_task_released(http, name):
    worker = holdfast.Worker(http, concurrency=1, drain_seconds=0.0)
    ended = []

    @worker.task(name)
    async def forever(context):
        context.note = "nearly"
        await context.checkpoint({"step": 1})
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(context.id)

    with working(worker):
        task = http.create_task(name, {})
        wait_until(lambda: status(http, task).get("checkpoint") == {"step": 1}, 20)
    assert ended == [task["id"]]
    after = status(http, task)
    assert (after["status"], after["attemptCount"]) == ("pending", 0)
    assert http.claim_task(type=name)["previousAttempt"]["checkpoint"] == {"step": 1}


def test_a_worker_with_a_bad_key_raises_instead_of_retrying(sqlite_server):
    with holdfast.Client(url_of(sqlite_server), "nobody's key, nobody's key") as client:
        worker = holdfast.Worker(client)
        worker.task("x")(lambda context: None)
        with pytest.raises(AuthError):
            worker.run()
    with pytest.raises(ValueError, match="has no handler"):
        holdfast.Worker(client).run()


PROGRAM = """
import sys, time, holdfast, holdfast.client.worker.run
holdfast.client.worker.run.POLL_SECONDS = 0.5
worker = holdfast.Worker(holdfast.Client(), concurrency=1, drain_seconds=float(sys.argv[3]))
@worker.task(sys.argv[1])
def slow(context):
    step = (context.previous or {}).get("checkpoint") or 0
    while step < int(sys.argv[2]):
        time.sleep(0.02)
        step += 1
        context.checkpoint(step)
        print(step, flush=True)
    return {"steps": step, "began": (context.previous or {}).get("checkpoint")}
worker.run()
"""


def program(server, name, steps, drain=30.0):
    environment = os.environ | {"HOLDFAST_URL": url_of(server), "HOLDFAST_API_KEY": KEY}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, name, str(steps), str(drain)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_sigterm_lets_the_running_task_finish(sqlite_server, http, name):
    task, waiting = http.create_task(name, {}), http.create_task(name, {})
    with program(sqlite_server, name, 40) as worker:
        assert worker.stdout.readline() == "1\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    assert status(http, task)["result"] == {"steps": 40, "began": None}
    assert status(http, waiting)["status"] == "pending"


def test_a_task_that_cannot_finish_in_time_is_released_with_its_checkpoint(sqlite_server, http, name):
    task = http.create_task(name, {})
    with program(sqlite_server, name, 5000, drain=0.0) as worker:
        assert worker.stdout.readline() == "1\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    after = status(http, task)
    assert (after["status"], after["attemptCount"]) == ("pending", 0)
    with program(sqlite_server, name, 60) as worker:
        http.check_task_status(task["id"], wait_seconds=30)
        worker.terminate()
        worker.wait(30)
    assert status(http, task)["result"]["began"] >= 1


def test_a_killed_workers_task_is_continued_from_its_checkpoint(sqlite_server, http, name):
    """The shortest lease of a task is 30 seconds: the next worker can claim it only after that."""
    task = http.create_task(name, {}, lease_duration_seconds=30)
    with program(sqlite_server, name, 5000) as worker:
        for _ in range(3):
            worker.stdout.readline()
        worker.kill()
    with program(sqlite_server, name, 8) as worker:
        wait_until(lambda: status(http, task)["status"] == "completed", 50)
        worker.terminate()
        worker.wait(30)
    assert status(http, task)["result"]["began"] >= 2
    assert [attempt["outcome"] for attempt in http.task_attempts(task["id"])["attempts"]][-2:] == [
        "expired",
        "completed",
    ]
