"""A worker with much to do: few requests, and the outcome of each task for itself, also if answers are lost."""

import threading
import time
from collections import Counter
from contextlib import contextmanager

import pytest

import holdfast
from holdfast.client.errors import Limited
from holdfast.client.leases import renewals
from holdfast.client.request import Answer
from holdfast.client.worker.claims import AbandonableClaims
from holdfast.client.worker.outcomes import Outcomes
from tests.client.proxy import CUT, LOSE, between, deck
from tests.client.test_faults import client_of
from tests.client.ways import working
from tests.store_inspection import assert_store_is_consistent
from tests.support import wait_until

pytestmark = pytest.mark.waits(20)

PLACES = 16


@pytest.fixture(autouse=True)
def _without_traces(monkeypatch):
    """Other tests of this process may have set up OpenTelemetry: with it, each outcome is a request of its own."""
    monkeypatch.setattr("holdfast.client.worker.run.is_recording", lambda: False)


def create(client, name, number):
    items = [{"op": "create", "type": name, "payload": {"n": n}} for n in range(number)]
    return [result["task"]["id"] for result in client.batch_tasks(items)["results"]]


def doubling(client, name, **settings):
    worker = holdfast.Worker(client, concurrency=PLACES, **settings)
    worker.runs = Counter()

    @worker.task(name)
    def double(context):
        worker.runs[context.payload["n"]] += 1
        return {"n": context.payload["n"] * 2}

    return worker


def is_done(client, name, number):
    return client.count_tasks()["types"][name]["completed"] == number


def assert_completed_once(client, tasks):
    for number, task in enumerate(tasks):
        after = client.check_task_status(task)
        assert (after["status"], after["attemptCount"]) == ("completed", 1)
        assert after["result"] == {"n": number * 2}


def slow_reports(seconds):
    """Requests that report outcomes take so long."""

    def slow(request):
        if request.target.endswith(("/complete", "/batch")):
            time.sleep(seconds)

    return slow


def test_much_work_needs_few_requests(recorded, transport, name):
    tasks = create(recorded, name, 200)
    transport.answer_instead = slow_reports(0.02)  # so that outcomes gather meanwhile
    transport.targets.clear()
    with working(doubling(recorded, name)):
        wait_until(lambda: is_done(recorded, name, 200), 30)
        sent = [target for target in transport.targets if target != "/v1/tasks/counts"]
    assert_completed_once(recorded, tasks)
    assert "/v1/tasks/batch" in sent
    assert len(sent) < 100, "200 tasks were completed one at a time"


def test_a_task_that_is_alone_is_reported_alone_and_at_once(recorded, transport, name):
    with working(doubling(recorded, name)):
        task = recorded.create_task(name, {"n": 1})
        recorded.check_task_status(task["id"], wait_seconds=20)
    assert transport.count(f"/{task['id']}/complete") == 1
    assert transport.count("/v1/tasks/batch") == 0


def test_a_worker_never_holds_more_tasks_than_it_has_places(recorded, transport, name):
    """A task takes its place until its outcome is recorded."""
    create(recorded, name, 12)
    most = []
    transport.answer_instead = slow_reports(0.1)
    worker = holdfast.Worker(recorded, concurrency=3)
    worker.task(name)(lambda context: None)
    with working(worker):
        while not is_done(recorded, name, 12):
            most.append(recorded.count_tasks()["types"][name]["claimed"])
    assert max(most) == 3


@contextmanager
def gathered(worker, number, monkeypatch):
    """Let the handlers of a worker return when all have begun, and report the outcomes of all in one request."""
    begun, go, gathering = threading.Barrier(number + 1), threading.Event(), []
    add_one = Outcomes.add

    def together(handler):
        def run(context):
            if not go.is_set():
                begun.wait(20)
                assert go.wait(20)
            return handler(context)

        return run

    def add(outcomes, outcome):
        with outcomes._changed:
            gathering.append(outcome)
            if len(gathering) >= number:
                outcomes._waiting += gathering
                gathering[:] = []
                monkeypatch.setattr(Outcomes, "add", add_one)
                outcomes._changed.notify()

    monkeypatch.setattr(Outcomes, "add", add)
    for kind, handler in dict(worker._handlers).items():
        worker.task(kind)(together(handler.function))
    with working(worker):
        begun.wait(20)
        yield go
        go.set()


def test_an_outcome_that_is_refused_concerns_no_other(recorded, transport, name, caplog, monkeypatch):
    tasks = create(recorded, name, 6)
    worker = holdfast.Worker(recorded, concurrency=6)

    @worker.task(name)
    def odd(context):
        how = context.payload["n"]
        if how == 2:
            return {"n": object()}
        if how == 3:
            raise ValueError("not \ud800 a text")
        if how == 4:
            return {"n": "x" * 70_000}
        if how == 5:
            raise holdfast.Permanent("never")
        return {"n": how * 2}

    with gathered(worker, 6, monkeypatch):
        recorded.cancel_task(tasks[0], mode="force")
    after = [recorded.check_task_status(task) for task in tasks]
    assert [task["status"] for task in after[:4]] == ["cancelled", "completed", "pending", "pending"]
    assert after[4]["status"] == "claimed", "its outcome was refused: its lease expires"
    assert after[5]["status"] == "dead_letter"
    assert after[1]["result"] == {"n": 2}
    codes = [recorded.task_attempts(task)["attempts"][0]["errorCode"] for task in tasks[2:4]]
    assert codes == ["TypeError", "UnicodeEncodeError"]
    assert transport.count("/v1/tasks/batch") > 1
    assert caplog.text.count("was not recorded") == 2


def test_outcomes_that_are_too_large_together_are_reported_separately(recorded, transport, name, monkeypatch):
    tasks = create(recorded, name, 6)
    refusal = Answer(413, {"content-type": "application/json"}, b'{"error": "too_large"}')
    with gathered(doubling(recorded, name), 6, monkeypatch):
        transport.answer_instead = lambda request: refusal if request.target == "/v1/tasks/batch" else None
    assert_completed_once(recorded, tasks)


def test_an_answer_that_is_not_of_this_api_does_not_end_the_worker(recorded, transport, name, monkeypatch, caplog):
    real, pages = AbandonableClaims._call, [{"text": "<p>Sign in to use this network"}]
    page = Answer(200, {"content-type": "text/html"}, b"<p>Sign in to use this network")
    create(recorded, name, 6)
    monkeypatch.setattr(AbandonableClaims, "_call", lambda *call: pages.pop() if pages else real(*call))
    with gathered(doubling(recorded, name), 6, monkeypatch) as go:
        transport.answer_instead = lambda request: page if request.target == "/v1/tasks/batch" else None
        go.set()
        wait_until(lambda: "perhaps not recorded" in caplog.text)
        task = recorded.create_task(name, {"n": 0})
        recorded.check_task_status(task["id"], wait_seconds=20)
    assert_completed_once(recorded, [task["id"]])
    assert "cannot claim" in caplog.text


def test_a_plan_that_allows_fewer_tasks_than_there_are_places_is_used_in_full(recorded, name, monkeypatch, caplog):
    create(recorded, name, 3)
    worker, gate = holdfast.Worker(recorded, concurrency=4), threading.Semaphore(0)
    real = AbandonableClaims._call

    def limited(claims, arguments):
        if len(worker._run._running) == 2:
            raise Limited("the plan allows 2 at once", code="max_workers_reached", retry_after=30)
        return real(claims, arguments | {"limit": 2})

    @worker.task(name)
    def wait(context):
        gate.acquire()

    monkeypatch.setattr(AbandonableClaims, "_call", limited)
    with working(worker):
        wait_until(lambda: "cannot claim" in caplog.text)
        gate.release(3)
        wait_until(lambda: is_done(recorded, name, 3), 20)


def test_lost_answers_neither_lose_nor_repeat_a_task(sqlite_server, name):
    number = 120
    with client_of(sqlite_server) as honest:
        tasks = create(honest, name, number)
        with between(sqlite_server, deck(7, {"pass": 3, LOSE: 1, CUT: 1})) as proxy, client_of(proxy) as client:
            worker = doubling(client, name)
            with working(worker):
                wait_until(lambda: is_done(honest, name, number), 60)
            assert proxy.happened[LOSE]
            assert proxy.happened[CUT]
        assert_completed_once(honest, tasks)
    assert worker.runs == Counter(range(number))


def test_a_server_that_is_killed_in_mid_batch_loses_and_repeats_no_task(tmp_path, new_server, name):
    number = 300
    server = new_server(f"sqlite:///{tmp_path}/x.db").start()
    with client_of(server) as client:
        tasks = create(client, name, number)
        worker = doubling(client, name)
        with working(worker):
            for part in (60, 140, 220):
                wait_until(lambda part=part: len(worker.runs) > part, 60)
                server.kill()
                server.start()
            wait_until(lambda: is_done(client, name, number), 60)
        assert_completed_once(client, tasks)
    assert worker.runs == Counter(range(number))
    assert_store_is_consistent(server.store)


def test_tasks_that_cannot_finish_in_time_are_all_released(recorded, transport, name):
    tasks = create(recorded, name, 5)
    worker, begun = holdfast.Worker(recorded, concurrency=5, drain_seconds=0.1), []

    @worker.task(name)
    def endless(context):
        begun.append(context.id)
        while True:
            context.check()
            time.sleep(0.02)

    with working(worker):
        wait_until(lambda: len(begun) == 5)
        transport.targets.clear()
    for task in tasks:
        after = recorded.check_task_status(task)
        assert (after["status"], after["attemptCount"]) == ("pending", 0)
    assert transport.count("/v1/tasks/batch") == 1


def test_a_task_is_renewed_until_its_outcome_is_recorded(recorded, transport, name, monkeypatch):
    monkeypatch.setattr(renewals, "IDLE_SECONDS", 0.01)  # so that the thread sees at once what is due
    worker, leases = holdfast.Worker(recorded), []
    worker.task(name)(lambda context: leases.append(context.lease))

    def record_after_a_renewal(request):
        if request.target.endswith("/complete"):
            leases[0].state._clock.due = 0.0
            wait_until(lambda: transport.count("/heartbeat"), 5)

    transport.answer_instead = record_after_a_renewal
    task = recorded.create_task(name, {})
    assert worker.run_until_idle() == 1
    assert recorded.check_task_status(task["id"])["status"] == "completed"
