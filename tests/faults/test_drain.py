"""SIGTERM: running requests finish, waiting ones are answered 503 with a retry hint, and the exit status is 0."""

import json
import signal
import time
from types import SimpleNamespace

import psutil
import pytest

from tests.compat.octostore.expect import eventually
from tests.compat.octostore.server import TOKENS, Server
from tests.faults.raw_socket import connect, read_answer
from tests.http.job_client import ROOT_KEY, Callers, agent, claimed, fresh, held, job_path, ok, unavailable

pytestmark = pytest.mark.waits(12)

PATIENCE_SECONDS = 8.0


@pytest.fixture(scope="module", params=["sqlite", "postgres", "two workers"])
def case(request, tmp_path_factory):
    """A server on each store, stopped under load and started again."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('drain')}/x.db"
    else:
        url = request.getfixturevalue("new_postgres_database")()
    server = Server(url, ROOT_KEY=ROOT_KEY, WORKERS="2" if request.param == "two workers" else "1").start()
    if request.param == "two workers":
        eventually(lambda: len(workers_of(server)), lambda count: count == 2, within=10)
    seen = SimpleNamespace(server=server, held=fresh(), flying=fresh())
    try:
        stop_under_load(seen)
        server.start()
        yield seen
    finally:
        server.close()


def stop_under_load(seen):
    server, worker = seen.server, agent(seen.server)
    seen.lease = claimed(worker.claim(seen.held, "holder", ttl_seconds=600, metadata="kept"))
    with (
        Callers() as callers,
        connect(server.port) as idle,
        connect(server.port) as silent,
        connect(server.port) as flying,
    ):
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(idle).status == 200
        body = json.dumps({"owner": "in flight", "ttl_seconds": 600}).encode()
        head = f"POST {job_path(seen.flying, '/claim')} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        flying.sendall(f"{head}Authorization: Bearer {TOKENS['alice-1']}\r\n\r\n".encode() + body[:-5])
        waiting_answers = [callers.send(worker.claim, seen.held, f"waiter-{n}", wait_seconds=15) for n in range(6)]
        crowded = [callers.send(worker.post, "/v1/tasks/claim", {"type": "t", "wait_seconds": 15}) for _ in range(4)]
        last = worker.get("/v1/events?limit=1000").json["nextCursor"]
        readers = [callers.send(worker.get, f"/v1/events?after={last}&wait_seconds=15") for _ in range(3)]
        time.sleep(0.6)
        assert not any(waiter.done() for waiter in (*waiting_answers, *crowded, *readers))
        assert silent.fileno() > 0
        told = time.monotonic()
        server.process.terminate()
        seen.waiting_answers = [waiter.result(5)[0] for waiter in waiting_answers]
        seen.callers = [waiter.result(5)[0] for waiter in crowded]
        seen.readers = [reader.result(5)[0] for reader in readers]
        seen.waiting_seconds = time.monotonic() - told
        time.sleep(0.3)
        seen.status_in_flight = server.process.poll()
        flying.sendall(body[-5:])
        seen.in_flight = read_answer(flying)
        seen.status = server.process.wait(PATIENCE_SECONDS)
        seen.seconds = time.monotonic() - told
    seen.log = server.log()


def test_a_request_in_flight_finishes_and_is_durable(case):
    assert case.status_in_flight is None, "it waits for the request"
    assert case.in_flight.status == 200
    assert case.in_flight.json["status"] == "claimed"
    ok(agent(case.server).heartbeat(case.flying, case.in_flight.json["lease_id"]))


def test_waiting_claims_are_answered_with_a_retry_hint(case):
    for answer in case.waiting_answers:
        body = unavailable(answer)
        assert (body["error"], body["applied"]) == ("draining", "no")
        assert body["agent_contract"]["next_actions"][0]["action"] == "retry_after_wait"
    assert case.waiting_seconds < 2


def test_waiting_task_claims_and_event_reads_end_too(case):
    for answer in case.callers:
        assert (answer.status, answer.json["error"], answer.json["applied"]) == (503, "draining", "no")
        assert answer.header("Retry-After") is not None
    for answer in case.readers:
        assert (answer.status, answer.json["events"]) == (200, [])


def test_the_server_exits_soon_with_status_0_despite_open_connections(case):
    assert case.status == 0, case.log
    assert case.seconds < 5
    assert "traceback" not in case.log.lower()


def test_after_a_clean_stop_everything_is_as_it_was(case):
    seen = agent(case.server).owner_of(case.held)
    assert (seen["owner"], seen["metadata"], seen["expires_at"]) == ("holder", "kept", case.lease["expires_at"])
    assert held(agent(case.server).claim(case.held))["waiting"] == 0
    ok(agent(case.server).heartbeat(case.held, case.lease["lease_id"]))


def test_control_c_stops_like_sigterm(new_server, tmp_path):
    server = new_server(f"sqlite:///{tmp_path}/x.db").start()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(PATIENCE_SECONDS) == 0
    assert "traceback" not in server.log().lower()


def test_a_worker_that_dies_is_replaced(new_server, new_postgres_database, job):
    server = new_server(new_postgres_database(), WORKERS="2").start()
    first = eventually(lambda: workers_of(server), lambda found: len(found) == 2, within=10)
    lease = claimed(agent(server).claim(job, "me", ttl_seconds=600))
    psutil.Process(first[0]).kill()
    eventually(lambda: workers_of(server), lambda found: len(found) == 2 and first[0] not in found, within=10)
    assert server.process.poll() is None
    for _ in range(10):
        ok(agent(server).heartbeat(job, lease["lease_id"]))
    server.process.terminate()
    assert server.process.wait(PATIENCE_SECONDS) == 0
    assert not psutil.pid_exists(first[1])


def workers_of(server):
    return [child.pid for child in psutil.Process(server.process.pid).children() if is_alive(child)]


def is_alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it was reaped since it was listed
        return False
