"""Each user holds at most 100 locks."""

import pytest

from tests.compat.octostore.expect import ABSENT_LEASE, acquired, held, no_such_session, refused, released, success

LIMIT = 100
full = {}


@pytest.fixture
def quota_user(server, store):
    """A user with ninety-nine durable locks and one ephemeral lock."""
    caller = server.user("hoarder")
    if store not in full:
        full[store] = fill(caller, ephemeral=1)
    return caller


def fill(caller, *, ephemeral):
    """Take locks up to the limit; the session that holds the ephemeral ones."""
    session = success(caller.open_session(ttl_seconds=300), 201)["session_id"]
    for number in range(LIMIT):
        bound = {"session_id": session, "ephemeral": True} if number < ephemeral else {}
        acquired(caller.acquire(f"{caller.name}-{number}", ttl_seconds=600, **bound))
    return session


def test_one_lock_more_than_a_hundred_is_refused(quota_user, lock):
    assert str(LIMIT) in refused(quota_user.acquire(lock), 403, "lock_limit_exceeded")["details"]
    assert success(quota_user.read_lock(lock))["status"] == "free"


def test_an_ephemeral_lock_counts_against_the_same_quota(quota_user, lock, store):
    refused(quota_user.acquire(lock, session_id=full[store], ephemeral=True), 403, "lock_limit_exceeded")


def test_acquiring_again_is_exempt_from_the_quota(quota_user, store):
    acquired(quota_user.acquire("hoarder-99"))
    acquired(quota_user.acquire("hoarder-0", session_id=full[store], ephemeral=True))


def test_the_quota_is_reported_before_contention(quota_user, bob, lock):
    acquired(bob.acquire(lock))
    refused(quota_user.acquire(lock), 403, "lock_limit_exceeded")


def test_a_lock_of_the_user_under_another_holder_counts_as_new(quota_user):
    refused(quota_user.acquire("hoarder-0"), 403, "lock_limit_exceeded")


def test_a_missing_session_is_reported_before_the_quota(quota_user, lock):
    no_such_session(quota_user.acquire(lock, session_id=ABSENT_LEASE))


def test_each_user_has_a_separate_quota(quota_user, alice, lock):
    acquired(alice.acquire(lock))
    held(alice.acquire("hoarder-99"))


def test_renewing_is_possible_at_the_quota(quota_user):
    lease = acquired(quota_user.acquire("hoarder-98"))
    success(quota_user.renew("hoarder-98", lease["lease_id"], ttl_seconds=600))


def test_releasing_and_ending_a_session_free_the_quota(server, lock):
    packrat = server.user("packrat")
    session = fill(packrat, ephemeral=2)
    refused(packrat.acquire(f"{lock}.a"), 403, "lock_limit_exceeded")
    released(packrat.release("packrat-99", acquired(packrat.acquire("packrat-99"))["lease_id"]))
    acquired(packrat.acquire(f"{lock}.a"))
    refused(packrat.acquire(f"{lock}.b"), 403, "lock_limit_exceeded")
    assert packrat.delete(f"/sessions/{session}").status == 204
    acquired(packrat.acquire(f"{lock}.b"))
    acquired(packrat.acquire(f"{lock}.c"))
    refused(packrat.acquire(f"{lock}.d"), 403, "lock_limit_exceeded")
