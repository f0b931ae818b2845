"""Health and status."""

from tests.compat.octostore.expect import acquired, held, instant, released, success
from tests.compat.octostore.server import TOKENS

COUNTERS = ("active_locks", "total_acquires", "total_releases", "total_users", "uptime_seconds")


def test_health_needs_no_credential(anyone):
    answer = anyone.get("/health")
    assert answer.status == 200
    assert answer.header("Content-Type") == "application/json"
    assert b'"status":"ok"' in answer.raw
    assert answer.json["storage"] == "wal"
    assert type(answer.json["db_size_bytes"]) is int
    assert answer.json["db_size_bytes"] >= 0


def test_health_ignores_credentials(anyone):
    assert anyone.with_headers(Authorization="Bearer nonsense").get("/health").status == 200


def test_status_needs_no_credential_and_has_integers(anyone):
    status = success(anyone.get("/status"))
    assert status["status"] == "ok"
    for counter in COUNTERS:
        assert type(status[counter]) is int
        assert status[counter] >= 0
    assert status["total_users"] >= len(TOKENS)


def test_status_counts_since_the_start(new_server, lock, election):
    """A separate server, so that other tests do not change the counters."""
    server = new_server().start()
    alice, bob, anyone = server.user("alice-1"), server.user("bob-1"), server.anyone

    def counts():
        status = success(anyone.get("/status"))
        return status["active_locks"], status["total_acquires"], status["total_releases"]

    assert counts() == (0, 0, 0)
    lease = acquired(alice.acquire(lock))
    assert counts() == (1, 1, 0)
    acquired(alice.acquire(lock))
    held(bob.acquire(lock))
    success(alice.renew(lock, lease["lease_id"]))
    assert counts() == (1, 2, 0)
    leadership = success(anyone.campaign(election))
    assert counts() == (2, 3, 0)
    success(anyone.campaign(election, "follower"))
    success(anyone.renew_leadership(election, leadership["leader_token"]))
    assert counts() == (2, 3, 0)
    released(alice.release(lock, lease["lease_id"]))
    assert counts() == (1, 3, 1)
    success(anyone.resign(election, leadership["leader_token"]))
    assert counts() == (0, 3, 2)


def test_times_on_the_wire_are_utc_with_a_z(alice, lock, session):
    """`instant` accepts nothing but RFC 3339 in UTC with 0, 3, 6 or 9 digits of fraction."""
    instant(acquired(alice.acquire(lock))["expires_at"])
    instant(success(alice.read_lock(lock))["expires_at"])
    instant(success(alice.get(f"/sessions/{session}"))["expires_at"])
    instant(success(alice.keep_alive(session))["expires_at"])
