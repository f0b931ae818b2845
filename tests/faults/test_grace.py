"""After an outage of more than five seconds jobs get a grace period; locks and clean stops do not.

All stores are stopped at the same time, so that the test waits only once.
"""

import time
from types import SimpleNamespace

import pytest

from tests.compat.octostore.expect import acquired, assert_lasts, eventually, instant, refused
from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY, agent, claimed, fresh, lost, ok
from tests.postgres import Postgres
from tests.proof_size import sized

pytestmark = pytest.mark.waits(12)

AWAY_SECONDS = 6.0
TTL = 3
GRACE_SECONDS = 10
ROUNDING_SECONDS = 0.1
"""The store's clock and ours may be so far apart."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """The leases before the outage on each store, and the servers after it."""
    postgres = Postgres()
    servers = {
        "sqlite killed": Server(f"sqlite:///{tmp_path_factory.mktemp('grace')}/x.db", ROOT_KEY=ROOT_KEY),
        "sqlite stopped": Server(f"sqlite:///{tmp_path_factory.mktemp('grace')}/x.db", ROOT_KEY=ROOT_KEY),
        "postgres stopped": Server(postgres.new_database(), ROOT_KEY=ROOT_KEY),
    }
    try:
        for server in servers.values():
            server.start()
        cases = {name: hold(server) for name, server in servers.items()}
        time.sleep(1.3)  # the server writes once a second that it serves the store
        for name, stop in (
            ("sqlite stopped", servers["sqlite stopped"].process.terminate),
            ("sqlite killed", servers["sqlite killed"].kill),
            ("postgres stopped", postgres.stop),
        ):
            case = cases[name]
            ok(case.caller.heartbeat(case.job, case.lease_id))  # just before: stopping another may take long
            stop()
        servers["sqlite stopped"].process.wait(10)
        time.sleep(AWAY_SECONDS)
        cases["postgres stopped"].returned = time.time()
        postgres.start()
        cases["sqlite killed"].returned = time.time()
        servers["sqlite killed"].start()
        servers["sqlite stopped"].start()
        yield cases
    finally:
        for server in servers.values():
            server.close()
        postgres.remove()


def hold(server):
    """Claim a short job, a long job, a lock, and a job that expires before the outage."""
    caller = agent(server)
    case = SimpleNamespace(server=server, caller=caller, job=fresh(), long=fresh(), lock=fresh("lock"), gone=fresh())
    claimed(caller.claim(case.gone, "gone", ttl_seconds=1))
    case.lease_id = claimed(caller.claim(case.job, "me", ttl_seconds=TTL))["lease_id"]
    case.long_lease = claimed(caller.claim(case.long, "me", ttl_seconds=600))
    case.lock_id = acquired(caller.acquire(case.lock, ttl_seconds=TTL))["lease_id"]
    return case


@pytest.fixture(params=["sqlite killed", "postgres stopped"])
def case(request, cases):
    return cases[request.param]


def test_a_job_whose_holder_could_not_renew_keeps_its_holder(case):
    seen = eventually_served(case)
    assert (seen["status"], seen["owner"]) == ("claimed", "me")
    # Counted from a moment between the store's return and this read.
    earliest, latest = case.returned + GRACE_SECONDS, time.time() + GRACE_SECONDS
    assert earliest - ROUNDING_SECONDS <= instant(seen["expires_at"]) <= latest + ROUNDING_SECONDS
    renewed = ok(case.caller.heartbeat(case.job, case.lease_id))
    assert_lasts(renewed["expires_at"], TTL)


def test_a_job_with_time_left_gets_no_more(case):
    assert eventually_served(case, case.long)["expires_at"] == case.long_lease["expires_at"]


def test_a_job_that_expired_before_the_outage_stays_expired(case):
    assert eventually_served(case, case.gone)["status"] == "free"


def test_a_lock_gets_no_grace(case):
    eventually_served(case)
    assert case.caller.read_lock(case.lock).json["status"] == "free"
    refused(case.caller.renew(case.lock, case.lock_id), 404, "lease_not_current")


def test_after_a_clean_stop_there_is_no_grace(cases):
    case = cases["sqlite stopped"]
    assert eventually_served(case)["status"] == "free"
    assert lost(case.caller.heartbeat(case.job, case.lease_id))["ended"] == "expired"


def eventually_served(case, job=None):
    """The job as the server shows it once its store works again."""
    eventually(
        lambda: case.caller.claim(fresh("probe"), "me", ttl_seconds=1).status,
        lambda status: status == 200,
        within=sized(5, 30),
        every=0.05,
    )
    return case.caller.owner_of(job or case.job)
