"""A served store is upgraded by a newer Holdfast: the servers that must not use it any more say so and stop."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections import Counter

import pytest

from tests.compat.octostore.server import Server, bearer
from tests.http.job_client import ROOT_KEY
from tests.proof_size import FULL
from tests.store_inspection import assert_store_is_consistent, events_of
from tests.support import wait_until
from tests.upgrade.newer_holdfast import ADDING, NEWER_SCHEMA, RAISING, newer_holdfast, upgrade

STOP_SECONDS = 30


@pytest.fixture
def new_server(address):
    """Starts a server on the store; it is stopped after the test."""
    servers = []

    def start(kind=Server, **settings):
        servers.append(kind(address, ROOT_KEY=ROOT_KEY, **settings))
        return servers[-1].start()

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.close()
        server.close_files()


class NewerServer(Server):
    """A server of a newer version."""

    migrations = "adding"

    def begin(self, words, environment):
        program = [sys.executable, "-m", "tests.upgrade.newer_holdfast", self.migrations, *words]
        return subprocess.Popen(program, env=environment, stdout=self.output, stderr=self.output)


class RaisingServer(NewerServer):
    """A server of a version that older ones must not work beside."""

    migrations = "adding,raising"


def claim(server, job):
    """The status and error code of a claim."""
    answer = bearer(server.port, ROOT_KEY).post(f"/v1/jobs/{job}/claim", {"owner": "me"})
    return answer.status, answer.json.get("error")


@pytest.mark.waits(7)
def test_a_server_below_the_minimum_answers_503_and_stops(address, new_server):
    # Several workers need PostgreSQL: their parent must not start new ones.
    server = new_server(WORKERS="2" if address.startswith("postgresql:") else "1")
    assert claim(server, "before") == (200, None)
    upgrade(address, ADDING)
    assert claim(server, "beside") == (200, None)
    upgrade(address, ADDING, RAISING)
    wait_until(lambda: claim(server, "after") == (503, "server_outdated"))
    wait_until(lambda: (ready := server.anyone.get("/readyz")).status == 503 and "server_outdated" in str(ready))
    assert server.process.wait(STOP_SECONDS) == 1
    assert f"knows schema {NEWER_SCHEMA + 1}" in server.log()


def test_a_server_that_raised_the_minimum_remembers_answers(address, new_server):
    server = new_server(RaisingServer)
    caller = bearer(server.port, ROOT_KEY).with_headers(**{"Idempotency-Key": "key-1"})
    first, again = (caller.post("/v1/jobs/job/claim", {"owner": "me"}) for _ in range(2))
    assert (first.status, again.status) == (200, 200)
    assert again.json["lease_id"] == first.json["lease_id"]


@pytest.mark.skipif(not FULL, reason="starts three servers: part of make prove")
@pytest.mark.waits(20)
def test_servers_are_upgraded_one_after_the_other_while_callers_work(address, new_server):
    """Callers change servers when one refuses them; nothing acknowledged is lost, and no token is granted twice."""
    servers = [new_server()]
    granted, answers, over = [], Counter(), threading.Event()

    def work(number):
        for turn in itertools.count():
            if over.is_set():
                return
            server = servers[turn % len(servers)]
            try:
                answer = bearer(server.port, ROOT_KEY).post(f"/v1/jobs/{number}-{turn}/claim", {"owner": "me"})
            except OSError:
                answers["unreachable"] += 1
                continue
            answers[answer.status, answer.json.get("error")] += 1
            if answer.status == 200:
                granted.append((answer.json["job_id"], answer.json["token"]))

    callers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    try:
        for kind in (NewerServer, RaisingServer):
            servers.append(new_server(kind))
            had = len(granted)
            wait_until(lambda: len(granted) > had + 100, 60)  # noqa: B023
        for server in servers[:2]:
            assert server.process.wait(60) == 1
    finally:
        over.set()
        for caller in callers:
            caller.join()
    assert answers[503, "server_outdated"]
    assert not {status for status in answers if status not in {(200, None), (503, "server_outdated"), "unreachable"}}
    assert len({token for _, token in granted}) == len(granted)
    job, _ = granted[0]
    assert bearer(servers[2].port, ROOT_KEY).get(f"/v1/jobs/{job}").json["owner"] == "me"
    servers[2].stop()
    with newer_holdfast(ADDING, RAISING):
        log = events_of(address)
        assert_store_is_consistent(address)
    claimed = {event.subject for event in log if event.kind == "lease.claimed"}
    assert {f"lease:{job}" for job, _ in granted} <= claimed
