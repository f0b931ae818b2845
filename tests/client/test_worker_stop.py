"""How a worker stops: its waiting claim ends at once, and no task is kept or claimed again."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import holdfast
from holdfast.client.client import Client
from holdfast.client.embedded import EmbeddedTransport, SeparateEmbeddedTransport
from holdfast.client.errors import AuthError, Unreachable
from holdfast.client.leases.claims import TaskClaim
from holdfast.client.request import build_request, find_operation
from holdfast.client.retry import AnswerLost
from holdfast.client.worker import run as run_module
from holdfast.client.worker.claims import CLAIM_SECONDS, AbandonableClaims
from tests.client.ways import KEY, url_of, working
from tests.support import wait_until

pytestmark = pytest.mark.waits(2)

STOP_SECONDS = 3.0
"""On a busy machine; a claim that is not abandoned waits for 20 s."""
IDLE_STOP_SECONDS = 0.5
"""Of the fastest of some attempts, which others on the machine did not delay."""


class LosesAnswers(EmbeddedTransport):
    """Its separate transports call `act` when they are closed, and lose answers from then on."""

    act = staticmethod(lambda: None)

    def separate(self):
        outer = self

        class Separate(SeparateEmbeddedTransport):
            def send(self, request, timeout):
                answer = super().send(request, timeout)
                if self._is_closed:
                    raise AnswerLost("the network is down")
                return answer

            def close(self):
                self._is_closed = True
                outer.act()
                super().close()

        return Separate(self)


def waiting(client):
    """How many claims wait in the engine of an embedded client."""
    return client._transport._engine.task_waiters.size()


@pytest.fixture
def memory():
    with holdfast.open(":memory:") as client:
        yield client


def run_idle(client, name):
    worker = holdfast.Worker(client, concurrency=3)
    worker.task(name)(lambda context: None)
    return working(worker)


def test_an_idle_worker_of_a_server_stops_at_once_and_leaves_the_queue(sqlite_server, name):
    with holdfast.Client(url_of(sqlite_server), KEY) as client:
        with run_idle(client, name) as worker:
            time.sleep(0.5)
            began = time.monotonic()
            worker.stop()
        assert time.monotonic() - began < STOP_SECONDS
        task = client.create_task(name, {})
        assert client.check_task_status(task["id"])["status"] == "pending"


def test_an_idle_worker_of_a_server_stops_in_under_half_a_second(sqlite_server, name):
    took = []
    with holdfast.Client(url_of(sqlite_server), KEY) as client:
        for _ in range(5):
            with run_idle(client, name) as worker:
                time.sleep(0.1)
                began = time.monotonic()
                worker.stop()
            took.append(time.monotonic() - began)
            if took[-1] < IDLE_STOP_SECONDS:
                break
    assert min(took) < IDLE_STOP_SECONDS, took


def test_a_worker_can_be_stopped_at_any_moment_of_its_claims(sqlite_server, name):
    """An exception in one of its threads fails the test."""
    with holdfast.Client(url_of(sqlite_server), KEY) as client:
        for milliseconds in range(0, 60, 3):
            began = time.monotonic()
            with run_idle(client, name):
                time.sleep(milliseconds / 1000)
            assert time.monotonic() - began < STOP_SECONDS


def test_an_idle_worker_of_a_store_in_this_process_stops_at_once_and_leaves_the_queue(memory, name):
    with run_idle(memory, name) as worker:
        wait_until(lambda: waiting(memory) == 1, 10)
        began = time.monotonic()
        worker.stop()
    assert time.monotonic() - began < STOP_SECONDS
    wait_until(lambda: waiting(memory) == 0, 10)


def test_a_task_that_is_granted_while_its_claim_is_abandoned_is_returned(name):
    transport = LosesAnswers("memory:")
    with Client(transport=transport) as client:
        made = []

        def grant():
            made.append(client.create_task(name, {}))
            wait_until(lambda: client.task_attempts(made[0]["id"])["attempts"], 10)

        with run_idle(client, name) as worker:
            wait_until(lambda: waiting(client) == 1, 10)
            transport.act = grant
            worker.stop()
            transport.act = lambda: None
        (task,) = made
        after = client.check_task_status(task["id"])
        assert (after["status"], after["attemptCount"]) == ("pending", 0)
        assert [each["outcome"] for each in client.task_attempts(task["id"])["attempts"]] == ["released"]


class SlowClaims(EmbeddedTransport):
    """Claims that do not wait, such as the repetition of an abandoned one, take a while."""

    def send(self, request, timeout):
        if request.target == "/v1/tasks/claim":
            time.sleep(0.5)
        return super().send(request, timeout)


@pytest.mark.parametrize("transport", [EmbeddedTransport, SlowClaims])
def test_a_worker_that_stops_does_not_claim_the_task_that_it_returns(transport, name):
    with Client(transport=transport("memory:")) as client:
        worker = holdfast.Worker(client, concurrency=3, drain_seconds=0.2)
        started = threading.Event()

        @worker.task(name)
        def work(context):
            started.set()
            while True:
                context.check()
                time.sleep(0.05)

        task = client.create_task(name, {})
        with working(worker):
            assert started.wait(10)
            wait_until(lambda: waiting(client) == 1, 10)
        (attempt,) = client.task_attempts(task["id"])["attempts"]
        assert attempt["outcome"] == "released"


def test_a_claim_that_begins_after_the_worker_stopped_gets_nothing(memory, name):
    claims = AbandonableClaims(memory)
    claims.abandon()
    memory.create_task(name, {})
    assert claims.claim(TaskClaim((name,), "w", {}), 3, wait=10.0) == []


def test_a_claimed_task_is_counted_from_the_sending_of_the_claim(recorded, slow_requests, name):
    times = slow_requests("/claim", 20.0)
    recorded.create_task(name, {}, lease_duration_seconds=30)
    (task,) = AbandonableClaims(recorded).claim(TaskClaim((name,), "w", {}), 1, wait=0.0)
    assert times == [100.0, 120.0]
    assert 9 < task.remaining <= 10


def test_a_claim_that_begins_while_its_worker_is_stopped_is_ended(memory, name):
    transport = memory._transport.separate()

    class ClosedMeanwhile(set):
        """The claims under way: the worker stops when the new one is about to be among them."""

        def add(self, leave):
            transport.close()
            super().add(leave)

    transport._leave = ClosedMeanwhile()
    fields = {"type": name, "worker_id": "w", "wait_seconds": 3}
    with pytest.raises(AnswerLost):
        transport.send(build_request(find_operation("claim_task"), fields), 10.0)


def test_a_worker_that_cannot_reach_its_server_stops_before_its_retries_end(name, caplog):
    with holdfast.Client("http://127.0.0.1:9", KEY) as client, run_idle(client, name) as worker:
        time.sleep(0.3)
        began = time.monotonic()
        worker.stop()
    assert time.monotonic() - began < 0.7 * CLAIM_SECONDS
    assert "cannot claim" not in caplog.text


def test_a_worker_claims_again_after_any_number_of_failures(embedded_client, monkeypatch):
    monkeypatch.setattr(run_module, "LONGEST_PAUSE", 0.0)
    failures = iter(range(1_200))

    def claim(self, *arguments):
        if next(failures, None) is not None:
            raise Unreachable("no server")
        raise AuthError("it has claimed again")

    monkeypatch.setattr(AbandonableClaims, "claim", claim)
    worker = holdfast.Worker(embedded_client)
    worker.task("ship")(lambda task: None)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(worker.run)
        try:
            assert isinstance(running.exception(20.0), AuthError)
        finally:
            worker.stop()


@contextmanager
def ending(worker):
    """A worker that runs, and ends by itself with an error before the end of the block."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(worker.run)
        try:
            yield
            with pytest.raises(Unreachable, match="closed"):
                running.result(5)
        finally:
            worker.stop()


@contextmanager
def no_thread_for_renewals(monkeypatch):
    """The system refuses the next thread that would renew leases."""
    start, refused = threading.Thread.start, []

    def refuse_once(thread):
        if thread.name == "holdfast-renewals" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse_once)
        yield


def test_a_worker_whose_tasks_cannot_be_renewed_returns_them_and_claims_again(memory, monkeypatch, name):
    worker, done = holdfast.Worker(memory), threading.Event()
    worker.task(name)(lambda _context: done.set())
    memory.create_task(name, {})
    with no_thread_for_renewals(monkeypatch), working(worker):
        assert done.wait(10)
    assert memory.list_tasks(type=name)["tasks"][0]["attemptCount"] == 1


def test_a_worker_that_runs_until_it_is_idle_raises_what_it_did_not_expect(memory, monkeypatch, name):
    worker = holdfast.Worker(memory)
    worker.task(name)(lambda _context: None)
    memory.create_task(name, {})
    with no_thread_for_renewals(monkeypatch), pytest.raises(RuntimeError, match="new thread"):
        worker.run_until_idle()
    assert memory.list_tasks(type=name)["tasks"][0]["status"] == "pending"


def test_a_worker_whose_client_is_closed_ends_and_claims_nothing(sqlite_server, memory, name):
    for client in (holdfast.Client(url_of(sqlite_server), KEY), memory):
        ran = []
        before, later = holdfast.Worker(client), holdfast.Worker(client)
        for worker in (before, later):
            worker.task(name)(ran.append)
        with ending(before):
            time.sleep(0.5)
            client.close()
            if client is not memory:
                with holdfast.Client(url_of(sqlite_server), KEY) as other:
                    other.create_task(name, {})
        with ending(later):
            pass
        assert not ran
