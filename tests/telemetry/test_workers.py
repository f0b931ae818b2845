"""Several worker processes on one socket: each reports the metrics of all, including those that were killed."""

import os
import signal
from pathlib import Path

import pytest

from tests.compat.octostore.expect import acquired, exact, success
from tests.compat.octostore.server import Server
from tests.faults.test_drain import workers_of
from tests.http.job_client import ROOT_KEY, Callers, agent, claimed, fresh
from tests.support import wait_until
from tests.telemetry.conftest import Watch

pytestmark = pytest.mark.waits(6)

ROUNDS = 24


@pytest.fixture(scope="module")
def pair(new_postgres_database):
    server = Server(new_postgres_database(), ROOT_KEY=ROOT_KEY, WORKERS="2").start()
    wait_until(lambda: Watch(server).value("holdfast_workers") == 2, 20)
    yield server
    server.close()


def memory_of(server):
    """Shared memory files that the processes of a server have mapped."""
    found = set()
    for pid in [server.process.pid, *workers_of(server)]:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        found |= {line.split()[4] for line in lines if line.endswith("(deleted)") and " rw-s " in line}
    return found


def test_every_worker_reports_the_counts_of_all_including_killed_ones(pair):
    watch, alice = Watch(pair), agent(pair)
    with Callers() as callers:
        for answer in [callers.send(alice.claim, fresh()) for _ in range(ROUNDS)]:
            claimed(answer.result(20)[0])
    locks = [acquired(alice.acquire(fresh("lock"))) for _ in range(4)]
    assert len(locks) == 4
    answers = [watch.more("holdfast_claims_total", family="job", outcome="granted") for _ in range(8)]
    assert answers == [ROUNDS] * 8, "each connection may reach another worker"
    assert watch.more("holdfast_requests_total", **{"class": "job", "status": "2xx"}) == ROUNDS

    first = workers_of(pair)
    os.kill(first[0], signal.SIGKILL)
    wait_until(lambda: len(workers_of(pair)) == 2 and first[0] not in workers_of(pair), 20)
    wait_until(lambda: watch.value("holdfast_workers") == 2, 20)
    answers = [watch.more("holdfast_claims_total", family="job", outcome="granted") for _ in range(8)]
    assert answers == [ROUNDS] * 8, "what it had counted is still told"
    claimed(alice.claim(fresh()))
    assert watch.more("holdfast_claims_total", family="job", outcome="granted") == ROUNDS + 1
    for _ in range(4):
        assert success(pair.anyone.get("/status"))["total_acquires"] == 4
        assert exact(pair.admin.get("/admin/status"))["total_acquires"] == 4
        assert exact(pair.admin.get("/metrics"))["lock_store"]["total_acquires"] == 4
    wait_until(lambda: watch.value("holdfast_lanes") == 4, 20)  # of a worker that has just started, a moment later
    assert len(memory_of(pair)) == 1, "one piece of memory, without a name"


def test_waiters_of_all_workers_are_counted_together(pair):
    watch, alice = Watch(pair), agent(pair)
    jobs = [fresh() for _ in range(4)]
    leases = [claimed(alice.claim(job)) for job in jobs]
    with Callers() as callers:
        waiting = [callers.send(alice.claim, job, "next", wait_seconds=30) for job in jobs]
        wait_until(lambda: watch.value("holdfast_waiters", **{"for": "name"}) == 4, 20)
        for job, lease in zip(jobs, leases, strict=True):
            alice.release_job(job, lease["lease_id"])
        for one in waiting:
            claimed(one.result(20)[0])


def test_the_parent_writes_one_history_for_all_workers(pair):
    for _ in range(4):
        page = exact(pair.admin.get("/admin/metrics/timeseries"))
        assert len(page["timestamps"]) == len(page["request_volume"])
