"""What a handler can do with its context, and a worker that runs until it is idle, on a store in memory."""

import asyncio
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

import holdfast
from holdfast.client.errors import LeaseLost, Limited
from holdfast.client.leases.clock import now
from holdfast.client.leases.state import Duration
from holdfast.client.leases.types import TaskLease
from holdfast.client.worker import handlers
from holdfast.client.worker.claims import AbandonableClaims
from tests.client.ways import KEY, working
from tests.support import wait_until


def test_the_contexts_are_those_of_the_front_door(recorded):
    worker, seen = holdfast.Worker(recorded), {}

    @worker.task("sync")
    def plain(context):
        seen["sync"] = context

    @worker.task("async")
    async def awaited(context):
        seen["async"] = context

    made = {kind: recorded.create_task(kind, {"n": 1}) for kind in ("sync", "async")}
    assert worker.run_until_idle() == 2
    assert {kind: type(context) for kind, context in seen.items()} == {
        "sync": holdfast.TaskContext, "async": holdfast.AsyncTaskContext,
    }  # fmt: skip
    for kind, context in seen.items():
        assert (context.id, context.payload, context.previous) == (made[kind]["id"], {"n": 1}, None)
        assert context.document["type"] == kind
        assert context.token > 0
    assert seen["sync"].lease.id == made["sync"]["id"]


def test_progress_is_shown_while_the_task_runs(recorded):
    worker, shown = holdfast.Worker(recorded), []

    def look(context):
        shown.append(recorded.check_task_status(context.id)["progress"])

    @worker.task("sync")
    def plain(context):
        context.progress(0.4, "page 3")
        look(context)
        context.progress(1)
        look(context)

    @worker.task("async")
    async def awaited(context):
        await context.progress(0.4, "page 3")
        look(context)
        await context.progress(1)
        look(context)

    for kind in ("sync", "async"):
        task = recorded.create_task(kind, {})
        worker.run_until_idle()
        assert shown == [{"percent": 40, "message": "page 3"}, {"percent": 100}]
        assert "progress" not in recorded.check_task_status(task["id"])
        shown.clear()


def test_progress_that_nobody_would_see_is_not_sent(recorded, transport):
    worker = holdfast.Worker(recorded)

    @worker.task("rows")
    def rows(context):
        for row in range(2_000):
            context.progress(row / 2_000, f"part {row // 500}")

    recorded.create_task("rows", {})
    worker.run_until_idle()
    assert transport.count("/heartbeat") == 101 + 3  # each percent, and three messages that change within a percent


@pytest.mark.parametrize("fraction", [-0.1, 1.1, 40, float("nan"), float("inf")])
def test_progress_outside_0_to_1_is_refused(recorded, fraction):
    recorded.create_task("x", {})
    with recorded.task("x") as task, pytest.raises(ValueError, match="from 0 to 1"):
        task.progress(fraction)


def test_an_offer_that_is_withdrawn_leaves_the_task_with_its_handler(recorded):
    worker = holdfast.Worker(recorded)

    @worker.task("sync")
    def plain(context):
        context.offer()
        context.withdraw()
        return {"kept": True}

    @worker.task("async")
    async def awaited(context):
        await context.offer()
        await context.withdraw()
        return {"kept": True}

    for kind in ("sync", "async"):
        task = recorded.create_task(kind, {})
        worker.run_until_idle()
        assert recorded.check_task_status(task["id"])["result"] == {"kept": True}


@contextmanager
def running_loop():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_an_async_handler_is_cancelled_when_its_lease_ends_however_seldom_it_is_looked_at(recorded, monkeypatch):
    monkeypatch.setattr(handlers, "POLL_SECONDS", 60.0)

    async def work(context):
        await asyncio.sleep(3)

    recorded.create_task("x", {})
    handler = handlers.Handler(work, lambda payload: payload)
    with running_loop() as loop, recorded.task("x") as task:
        task.state.renewed(now(), Duration(ttl=0.1, every=60.0), {})
        with pytest.raises(LeaseLost):
            handler.run(task, loop)


def test_an_async_handler_that_offers_its_task_while_its_lease_is_looked_at_goes_on(recorded, monkeypatch):
    look, looking, offered = TaskLease.check, threading.Event(), threading.Event()

    def look_late(lease):
        looking.set()
        assert offered.wait(5)
        look(lease)

    async def give(context):
        await asyncio.to_thread(looking.wait, 5)
        code = await context.offer()
        offered.set()
        await asyncio.sleep(0.5)
        return {"code": code}

    recorded.create_task("x", {})
    handler = handlers.Handler(give, lambda payload: payload)
    with running_loop() as loop, recorded.task("x") as task:
        monkeypatch.setattr(TaskLease, "check", look_late)
        assert handler.run(task, loop)["code"]


def test_a_task_that_comes_after_a_longer_wait_than_it_may_run_is_completed(recorded, slow_requests):
    worker = holdfast.Worker(recorded, concurrency=2)

    @worker.task("sync")
    def plain(context):
        context.check()

    @worker.task("async")
    async def awaited(context):
        await asyncio.sleep(0)

    slow_requests("/claim", 20.0)
    tasks = [recorded.create_task(kind, {}, max_run_seconds=15) for kind in ("sync", "async")]
    assert worker.run_until_idle() == 2
    assert [recorded.check_task_status(task["id"])["status"] for task in tasks] == ["completed"] * 2


# -- run_until_idle ----------------------------------------------------------------------------------------------


def test_a_worker_runs_until_idle_as_often_as_it_is_asked(recorded):
    worker = holdfast.Worker(recorded, concurrency=2)

    @worker.task("count")
    def count(context):
        if context.payload["n"]:
            recorded.create_task("count", {"n": context.payload["n"] - 1})

    assert worker.run_until_idle() == 0
    for number in (0, 5):
        recorded.create_task("count", {"n": number})
        assert worker.run_until_idle() == number + 1
    assert recorded.count_tasks()["types"]["count"]["completed"] == 7


def test_a_retry_that_is_due_is_run_and_a_later_one_is_left(recorded):
    worker = holdfast.Worker(recorded)

    @worker.task("retry")
    def retry(context):
        if context.document["attemptCount"] < 3:
            raise holdfast.Retry("again", after=context.payload["after"])

    at_once = recorded.create_task("retry", {"after": 0})
    later = recorded.create_task("retry", {"after": 3600})
    assert worker.run_until_idle() == 4
    assert recorded.check_task_status(at_once["id"])["status"] == "completed"
    assert recorded.check_task_status(later["id"])["status"] == "pending"


def test_a_task_that_another_creates_while_it_ends_is_not_left_behind(recorded):
    """While the first runs, no task is ready: the worker looks again when it has ended."""
    worker, claims = holdfast.Worker(recorded, concurrency=2), threading.Event()

    @worker.task("first")
    def first(context):
        assert claims.wait(20)
        recorded.create_task("second", {})

    @worker.task("second")
    def second(context):
        pass

    recorded.create_task("first", {})
    running = threading.Thread(target=worker.run_until_idle)
    running.start()
    wait_until(lambda: worker._run is not None and worker._run.started == 1, 20)
    claims.set()
    running.join(20)
    assert recorded.count_tasks()["types"]["second"]["completed"] == 1


def test_a_worker_of_a_server_runs_on_another_client_for_a_test(recorded):
    worker = holdfast.Worker(holdfast.Client("http://127.0.0.1:9", KEY))
    worker.task("x")(lambda context: {"id": context.id})
    task = recorded.create_task("x", {})
    assert worker.run_until_idle(recorded) == 1
    assert recorded.check_task_status(task["id"])["result"] == {"id": task["id"]}


def test_errors_of_the_server_are_raised_instead_of_retried(recorded, monkeypatch):
    def refuse(claims, arguments):
        raise Limited("too many requests", code="rate_limited", retry_after=60)

    monkeypatch.setattr(AbandonableClaims, "_call", refuse)
    worker = holdfast.Worker(recorded)
    worker.task("x")(lambda context: None)
    with pytest.raises(Limited):
        worker.run_until_idle()


def test_a_worker_that_was_stopped_can_run_again(recorded):
    worker, ran = holdfast.Worker(recorded), threading.Event()
    worker.task("x")(lambda context: ran.set())
    worker.stop()
    worker.run()  # returns: it was stopped before
    with working(worker):
        recorded.create_task("x", {})
        assert ran.wait(20)
    recorded.create_task("x", {})
    assert worker.run_until_idle() == 1


def test_a_handler_that_asks_runs_again_with_the_answer_and_its_checkpoint(recorded):
    worker, seen = holdfast.Worker(recorded), []

    @worker.task("sync")
    def plain(context):
        try:
            seen.append((context.answer, context.previous and context.previous["checkpoint"]))
            return {"chosen": context.ask("Which one?", choices=["a", "b"], checkpoint={"page": 3})}
        except Exception:  # what a careful handler writes does not catch it
            return {"chosen": "none"}

    @worker.task("async")
    async def awaited(context):
        seen.append((context.answer, context.previous and context.previous["checkpoint"]))
        return {"chosen": await context.ask("Which one?", choices=["a", "b"], checkpoint={"page": 3})}

    for kind in ("sync", "async"):
        task = recorded.create_task(kind, {}, max_attempts=1)["id"]
        worker.run_until_idle()
        waiting = recorded.check_task_status(task)
        assert (waiting["status"], waiting["waitingFor"], waiting["attemptCount"]) == ("pending", "answer", 0)
        recorded.answer_question(waiting["questionId"], "b")
        worker.run_until_idle()
        assert recorded.check_task_status(task)["result"] == {"chosen": "b"}
        assert seen == [(None, None), ("b", {"page": 3})]
        seen.clear()


def test_a_question_has_a_deadline_and_a_default_answer(recorded):
    worker = holdfast.Worker(recorded)
    deadline = (datetime.now(UTC) + timedelta(days=9)).isoformat()

    @worker.task("x")
    def ask(context):
        context.ask("Which one?", deadline=deadline, on_timeout="a")

    task = recorded.create_task("x", {})["id"]
    worker.run_until_idle()
    (question,) = recorded.list_questions()["questions"]
    assert (question["task_id"], question["on_timeout"], question["status"]) == (task, "a", "open")
    assert question["deadline"].startswith(deadline[:10])
