"""Acquire, renew, release, read and list locks."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.compat.octostore.expect import (
    ABSENT_LEASE,
    LOCK_KEYS,
    acquired,
    assert_halfway,
    assert_lasts,
    delayed,
    held,
    instant,
    refused,
    released,
    success,
)


def test_a_free_lock_is_acquired_for_sixty_seconds(alice, lock):
    lease = acquired(alice.acquire(lock))
    assert_lasts(lease["expires_at"], 60)
    assert 28_000 <= lease["renew_after_ms"] <= 30_000
    assert lease["metadata"] is None


def test_a_lease_id_is_a_random_uuid(alice, lock):
    assert uuid.UUID(acquired(alice.acquire(lock))["lease_id"]).version == 4


@pytest.mark.parametrize("ttl", [1, 2, 59, 3600])
def test_a_lease_lasts_as_long_as_asked(alice, lock, ttl):
    assert_lasts(acquired(alice.acquire(lock, ttl_seconds=ttl))["expires_at"], ttl)


def test_null_for_an_optional_field_means_omitted(alice, lock):
    nothing = {"ttl_seconds": None, "metadata": None, "session_id": None, "lock_delay_seconds": None, "acl": None}
    assert_lasts(acquired(alice.acquire(lock, **nothing))["expires_at"], 60)


def test_unknown_fields_are_ignored(alice, lock):
    acquired(alice.acquire(lock, colour="blue", owner={"deep": [1, 2]}))


def test_a_held_lock_is_answered_200(alice, bob, lock):
    lease = acquired(alice.acquire(lock, ttl_seconds=30, metadata="mine"))
    answer = held(bob.acquire(lock, metadata="his"))
    assert answer["expires_at"] == lease["expires_at"]
    assert 28_000 <= answer["retry_after_ms"] <= 30_000
    assert answer["metadata"] == "mine"


def test_a_held_lock_without_metadata_has_null(alice, bob, lock):
    acquired(alice.acquire(lock))
    assert held(bob.acquire(lock))["metadata"] is None


def test_of_many_at_once_exactly_one_acquires(server, lock):
    callers = [server.user(f"{who}-{number}") for number in range(1, 13) for who in ("alice", "bob")]
    with ThreadPoolExecutor(len(callers)) as pool:
        answers = list(pool.map(lambda caller: caller.acquire(lock, ttl_seconds=5).json["status"], callers))
    assert sorted(answers) == ["acquired"] + ["held"] * (len(callers) - 1)


def test_names_are_case_sensitive(alice, bob, lock):
    acquired(alice.acquire(lock))
    acquired(bob.acquire(lock.upper()))


# Acquiring again.


def test_acquiring_again_gives_the_same_lease(alice, lock):
    first = acquired(alice.acquire(lock))
    again = acquired(alice.acquire(lock))
    assert again["lease_id"] == first["lease_id"]
    assert again["fencing_token"] == first["fencing_token"]


def test_acquiring_again_extends(alice, lock):
    acquired(alice.acquire(lock, ttl_seconds=10))
    assert_lasts(acquired(alice.acquire(lock, ttl_seconds=100))["expires_at"], 100)


def test_acquiring_again_never_shortens(alice, lock):
    first = acquired(alice.acquire(lock, ttl_seconds=100))
    assert acquired(alice.acquire(lock, ttl_seconds=5))["expires_at"] == first["expires_at"]


def test_acquiring_again_keeps_the_stored_metadata(alice, lock):
    acquired(alice.acquire(lock, metadata="first"))
    assert acquired(alice.acquire(lock, metadata="second"))["metadata"] == "first"
    assert acquired(alice.acquire(lock))["metadata"] == "first"


def test_acquiring_again_adds_no_lock_delay(alice, lock):
    lease = acquired(alice.acquire(lock))
    acquired(alice.acquire(lock, lock_delay_seconds=30))
    released(alice.release(lock, lease["lease_id"]))
    acquired(alice.acquire(lock))


def test_acquiring_again_drops_no_lock_delay(alice, lock):
    lease = acquired(alice.acquire(lock, lock_delay_seconds=30))
    acquired(alice.acquire(lock, lock_delay_seconds=0))
    released(alice.release(lock, lease["lease_id"]))
    delayed(alice.acquire(lock))


# Renewing.


def test_renewing_answers_lease_and_times_only(alice, lock):
    lease = acquired(alice.acquire(lock, metadata="note"))
    renewed = success(alice.renew(lock, lease["lease_id"], ttl_seconds=120))
    assert renewed["lease_id"] == lease["lease_id"]
    assert_lasts(renewed["expires_at"], 120)
    assert_halfway(renewed)
    assert not renewed.keys() & {"fencing_token", "metadata"}


def test_renewing_may_shorten(alice, lock):
    lease = acquired(alice.acquire(lock, ttl_seconds=100))
    renewed = success(alice.renew(lock, lease["lease_id"], ttl_seconds=10))
    assert_lasts(renewed["expires_at"], 10)
    assert success(alice.read_lock(lock))["expires_at"] == renewed["expires_at"]


@pytest.mark.parametrize("fields", [{}, {"ttl_seconds": None}], ids=["absent", "null"])
def test_renewing_defaults_to_sixty_seconds_whatever_was_asked_first(alice, lock, fields):
    lease = acquired(alice.acquire(lock, ttl_seconds=300))
    assert_lasts(success(alice.renew(lock, lease["lease_id"], **fields))["expires_at"], 60)


def test_renewing_leaves_token_and_metadata_as_they_were(alice, lock):
    lease = acquired(alice.acquire(lock, metadata="note"))
    success(alice.renew(lock, lease["lease_id"]))
    observed = success(alice.read_lock(lock))
    assert (observed["fencing_token"], observed["metadata"]) == (lease["fencing_token"], "note")


# Releasing.


def test_releasing_answers_null_and_frees_the_lock(alice, bob, lock):
    released(alice.release(lock, acquired(alice.acquire(lock))["lease_id"]))
    assert success(alice.read_lock(lock))["status"] == "free"
    acquired(bob.acquire(lock))


def test_a_lock_taken_again_after_release_is_a_new_lease(alice, lock):
    first = acquired(alice.acquire(lock))
    released(alice.release(lock, first["lease_id"]))
    second = acquired(alice.acquire(lock))
    assert second["lease_id"] != first["lease_id"]
    assert second["fencing_token"] > first["fencing_token"]


@pytest.fixture(params=["renew", "release"])
def holder_write(request):
    """Both calls share one matrix of refusals."""
    return lambda caller, *arguments: getattr(caller, request.param)(*arguments)


def test_an_unused_name_has_no_current_lease(alice, lock, holder_write):
    refused(holder_write(alice, lock, ABSENT_LEASE), 404, "lease_not_current")


def test_a_released_lease_is_not_current(alice, lock, holder_write):
    lease = acquired(alice.acquire(lock))
    released(alice.release(lock, lease["lease_id"]))
    refused(holder_write(alice, lock, lease["lease_id"]), 404, "lease_not_current")


def test_a_name_in_its_delay_has_no_current_lease(alice, lock, holder_write):
    lease = acquired(alice.acquire(lock, lock_delay_seconds=30))
    released(alice.release(lock, lease["lease_id"]))
    refused(holder_write(alice, lock, lease["lease_id"]), 404, "lease_not_current")


def test_the_wrong_lease_id_is_refused_even_to_the_holder(alice, lock, holder_write):
    acquired(alice.acquire(lock))
    refused(holder_write(alice, lock, ABSENT_LEASE), 400, "lease_not_current")


def test_the_lease_id_is_refused_to_another_user(alice, bob, lock, holder_write):
    lease = acquired(alice.acquire(lock))
    refused(holder_write(bob, lock, lease["lease_id"]), 400, "lease_not_current")
    assert success(alice.read_lock(lock))["expires_at"] == lease["expires_at"]


def test_a_former_lease_is_refused_once_another_holds_the_lock(alice, bob, lock, holder_write):
    former = acquired(alice.acquire(lock))
    released(alice.release(lock, former["lease_id"]))
    acquired(bob.acquire(lock))
    refused(holder_write(alice, lock, former["lease_id"]), 400, "lease_not_current")


# Reading.


def test_an_unknown_lock_is_free(alice, lock):
    observed = success(alice.read_lock(lock))
    assert observed.keys() >= LOCK_KEYS
    assert (observed["name"], observed["status"]) == (lock, "free")
    assert (observed["holder_id"], observed["expires_at"], observed["metadata"]) == (None, None, None)
    assert "acl" not in observed


def test_every_user_may_read_a_held_lock(alice, bob, lock):
    lease = acquired(alice.acquire(lock, metadata="visible"))
    observed = success(bob.read_lock(lock))
    assert observed.keys() >= LOCK_KEYS
    assert (observed["name"], observed["status"], observed["metadata"]) == (lock, "held", "visible")
    assert (observed["fencing_token"], observed["expires_at"]) == (lease["fencing_token"], lease["expires_at"])
    assert "acl" not in observed
    assert lease["lease_id"] not in bob.read_lock(lock).raw.decode()


def test_a_lock_named_like_a_verb_is_a_lock(alice):
    assert success(alice.get("/locks/acquire"))["name"] == "acquire"


def test_times_grow_with_the_lease(alice, lock):
    first = acquired(alice.acquire(lock, ttl_seconds=10))
    renewed = success(alice.renew(lock, first["lease_id"], ttl_seconds=20))
    assert instant(renewed["expires_at"]) > instant(first["expires_at"])
