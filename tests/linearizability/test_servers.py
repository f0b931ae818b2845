"""Histories of clients of servers over HTTP, while servers are killed and suspended and connections are cut."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY
from tests.linearizability.checks.whole_check import check, check_answers, require
from tests.linearizability.clients.http_run import HttpRun, with_log
from tests.linearizability.clients.store_time import MeasuredTime
from tests.linearizability.in_process import log_of, time_of
from tests.proof_size import FULL, OPERATIONS, sized
from tests.store_inspection import opened

pytestmark = pytest.mark.waits(6)

SECONDS = sized(2, 30)
SEEN = ("lost", "held", "granted", "takeover", "lease.expired")
FAULTS = ("unknown", "unavailable")


class Served:
    """Servers on one store, and clients of all of them."""

    def __init__(self, url, count, seed):
        self.servers = [Server(url, ROOT_KEY=ROOT_KEY).start() for _ in range(count)]
        self.url = url
        self.rng = random.Random(seed)
        self.seed = seed

    def clients(self, store_time, *, has_log=True):
        ports = [server.port for server in self.servers]
        times = {"period_seconds": 3, "pause": 0.0 if FULL else 0.1}
        return HttpRun(ports, ROOT_KEY, store_time, seed=self.seed, has_log=has_log, **times)

    def suspend_one(self, seconds):
        server = self.rng.choice(self.servers)
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        server.process.send_signal(signal.SIGCONT)

    def kill_one(self):
        server = self.rng.choice(self.servers)
        server.kill()
        server.start()

    def close(self):
        for server in self.servers:
            server.close()


@pytest.fixture
def served(request, tmp_path, new_postgres_database):
    kind, count = request.param
    urls = {"sqlite": f"sqlite:///{tmp_path}/x.db", "memory": "memory:"}
    served = Served(new_postgres_database() if kind == "postgres" else urls[kind], count, seed=count)
    yield served
    served.close()


@pytest.mark.parametrize("served", [("postgres", 2), ("sqlite", 1)][: sized(1, 2)], indirect=True, ids=str)
def test_every_answer_over_http_fits_one_order_while_servers_are_killed_and_suspended(served, covered):
    with opened(served.url) as store:
        run = served.clients(MeasuredTime(lambda: time_of(store), slack=200_000))
        run.start()
        until = time.monotonic() + SECONDS
        served.suspend_one(0.3)
        while time.monotonic() < until:
            time.sleep(served.rng.uniform(0.2, 0.2 * SECONDS))
            served.kill_one() if served.rng.random() < 0.5 else served.suspend_one(served.rng.uniform(0.1, 1.5))
        run.stop()
        history = with_log(run.calls, log_of(store))
    seen = check(history)
    covered(OPERATIONS, len(history.calls))
    require(seen, *((*SEEN, *FAULTS) if FULL else ("granted",)))


@pytest.mark.parametrize("served", [("memory", 1)], indirect=True, ids=str)
def test_every_answer_of_a_server_without_a_disk_fits_one_order(served):
    """Without its log: the search alone."""
    began = time.time_ns() // 1000
    run = served.clients(MeasuredTime(lambda: began, slack=300_000), has_log=False)
    run.start()
    for _ in range(sized(1, 20)):
        time.sleep(served.rng.uniform(0.3, 1.0))
        served.suspend_one(0.2)
    run.stop()
    require(check_answers(run.calls), "searched", "granted")
