"""After an outage of more than five seconds jobs get a grace period; locks and clean stops do not.

All stores are stopped at the same time, so that the test waits only once.
"""

import time
from types import SimpleNamespace

import pytest

from tests.compat.octostore.expect import acquired, assert_lasts, instant, refused
from tests.compat.octostore.server import Server
from tests.http.job_client import ROOT_KEY, agent, claimed, fresh, lost, ok
from tests.postgres import Postgres

pytestmark = pytest.mark.waits(12)

AWAY_SECONDS = 6.0
TTL = 3
GRACE_SECONDS = 10
ROUNDING_SECONDS = 0.1
"""The store's clock and ours may be so far apart."""


@pytest.fixture(scope="module")
def stories(tmp_path_factory):
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
        stories = {name: hold(server) for name, server in servers.items()}
        time.sleep(1.3)  # the server writes once a second that it serves the store
        for server in servers.values():
            ok(agent(server).heartbeat(stories_of(stories, server).job, stories_of(stories, server).lease_id))
        servers["sqlite killed"].kill()
        servers["sqlite stopped"].process.terminate()
        servers["sqlite stopped"].process.wait(10)
        postgres.stop()
        time.sleep(AWAY_SECONDS)
        stories["postgres stopped"].returned = time.time()
        postgres.start()
        stories["sqlite killed"].returned = time.time()
        servers["sqlite killed"].start()
        servers["sqlite stopped"].start()
        yield stories
    finally:
        for server in servers.values():
            server.close()
        postgres.remove()


def hold(server):
    """Claim a short job, a long job, a lock, and a job that expires before the outage."""
    caller = agent(server)
    story = SimpleNamespace(server=server, caller=caller, job=fresh(), long=fresh(), lock=fresh("lock"), gone=fresh())
    claimed(caller.claim(story.gone, "gone", ttl_seconds=1))
    story.lease_id = claimed(caller.claim(story.job, "me", ttl_seconds=TTL))["lease_id"]
    story.long_lease = claimed(caller.claim(story.long, "me", ttl_seconds=600))
    story.lock_id = acquired(caller.acquire(story.lock, ttl_seconds=TTL))["lease_id"]
    return story


def stories_of(stories, server):
    return next(story for story in stories.values() if story.server is server)


@pytest.fixture(params=["sqlite killed", "postgres stopped"])
def story(request, stories):
    return stories[request.param]


def test_a_job_whose_holder_could_not_renew_keeps_its_holder(story):
    seen = eventually_served(story)
    assert (seen["status"], seen["owner"]) == ("claimed", "me")
    # Counted from a moment between the store's return and this read.
    earliest, latest = story.returned + GRACE_SECONDS, time.time() + GRACE_SECONDS
    assert earliest - ROUNDING_SECONDS <= instant(seen["expires_at"]) <= latest + ROUNDING_SECONDS
    renewed = ok(story.caller.heartbeat(story.job, story.lease_id))
    assert_lasts(renewed["expires_at"], TTL)


def test_a_job_with_time_left_gets_no_more(story):
    assert eventually_served(story, story.long)["expires_at"] == story.long_lease["expires_at"]


def test_a_job_that_expired_before_the_outage_stays_expired(story):
    assert eventually_served(story, story.gone)["status"] == "free"


def test_a_lock_gets_no_grace(story):
    eventually_served(story)
    assert story.caller.look(story.lock).json["status"] == "free"
    refused(story.caller.renew(story.lock, story.lock_id), 404, "lease_not_current")


def test_after_a_clean_stop_there_is_no_grace(stories):
    story = stories["sqlite stopped"]
    assert eventually_served(story)["status"] == "free"
    assert lost(story.caller.heartbeat(story.job, story.lease_id))["ended"] == "expired"


def eventually_served(story, job=None):
    """The job as the server shows it once its store works again."""
    deadline = time.monotonic() + 5
    while True:
        answer = story.caller.claim(fresh("probe"), "me", ttl_seconds=1)
        if answer.status == 200 or time.monotonic() > deadline:
            return story.caller.owner_of(job or story.job)
        time.sleep(0.05)
