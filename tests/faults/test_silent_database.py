"""A database host that vanishes without a word: its server answers 503, stops on SIGTERM, and recovers by itself."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.compat.octostore.expect import eventually
from tests.http.job_client import agent, claimed, fresh, ok, unavailable
from tests.proof_size import FULL
from tests.silent_proxy import SilentProxy

CALLERS = 6
ANSWER_SECONDS = 25.0
"""10 s without an answer, 3 s to connect again, and time for a busy machine."""
RETURN_SECONDS = 15.0
STOP_SECONDS = 40.0


@pytest.fixture
def proxy(new_postgres_database):
    proxy = SilentProxy(new_postgres_database())
    yield proxy
    proxy.close()


@pytest.mark.waits(16)
def test_a_server_whose_database_vanishes_answers_and_recovers(new_server, proxy, job):
    server = new_server(proxy.url).start()
    caller = agent(server)
    lease = claimed(caller.claim(job, "me", ttl_seconds=600))
    proxy.fall_silent()
    began = time.monotonic()
    with ThreadPoolExecutor(CALLERS) as pool:
        answers = list(pool.map(lambda number: agent(server, f"alice-{number + 1}").claim(fresh()), range(CALLERS)))
    assert time.monotonic() - began < ANSWER_SECONDS
    assert {unavailable(answer)["applied"] for answer in answers} == {"no"}
    assert caller.get("/readyz").status == 503
    assert caller.get("/health").status == 200
    proxy.speak()
    eventually(lambda: caller.get("/readyz").status, lambda status: status == 200, within=RETURN_SECONDS)
    ok(caller.heartbeat(job, lease["lease_id"]))
    claimed(caller.claim(fresh(), "me"))
    if FULL:
        proxy.fall_silent()
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0
