"""A lease that is not renewed ends by itself; a lock delay keeps its name cool for a while."""

import time
import uuid
from types import SimpleNamespace

import pytest

from tests.compat.octostore.expect import (
    acquired,
    assert_lasts,
    delayed,
    eventually,
    held,
    instant,
    refused,
    released,
    success,
)

stories = {}


@pytest.fixture
def lapsed(server, store):
    """Locks of the lapser's, each taken for one second and left alone; one wait serves all tests here."""
    if store not in stories:
        lapser = server.user("lapser")
        names = {kind: f"lapsed-{uuid.uuid4().hex}" for kind in ("plain", "cooling", "reserved", "listed", "taken")}
        extras = {"cooling": {"lock_delay_seconds": 30}, "reserved": {"acl": {"acquire": [f"user:{lapser.name}"]}}}
        leases = {
            kind: acquired(lapser.acquire(name, ttl_seconds=1, **extras.get(kind, {}))) for kind, name in names.items()
        }
        for name in names.values():
            eventually(lambda name=name: lapser.look(name).json["status"], lambda seen: seen == "free", within=5)
        stories[store] = SimpleNamespace(lapser=lapser, leases=leases, **names)
    return stories[store]


def test_a_lapsed_lock_shows_as_free(lapsed):
    seen = success(lapsed.lapser.look(lapsed.plain))
    assert (seen["status"], seen["holder_id"], seen["expires_at"]) == ("free", None, None)


def test_a_lapsed_lock_is_not_listed(lapsed):
    assert success(lapsed.lapser.get(f"/locks?prefix={lapsed.listed}"))["total"] == 0


@pytest.mark.parametrize("verb", ["renew", "release"])
def test_a_lapsed_lease_is_not_current(lapsed, verb):
    lease = lapsed.leases["plain"]
    refused(getattr(lapsed.lapser, verb)(lapsed.plain, lease["lease_id"]), 404, "lease_not_current")


def test_a_late_holder_is_refused_once_another_has_the_lock(lapsed, bob):
    successor = acquired(bob.acquire(lapsed.taken))
    former = lapsed.leases["taken"]
    assert successor["fencing_token"] > former["fencing_token"]
    refused(lapsed.lapser.renew(lapsed.taken, former["lease_id"]), 400, "lease_not_current")
    refused(lapsed.lapser.release(lapsed.taken, former["lease_id"]), 400, "lease_not_current")
    assert success(bob.look(lapsed.taken))["fencing_token"] == successor["fencing_token"]
    released(bob.release(lapsed.taken, successor["lease_id"]))


def test_a_lapsed_lock_cools_for_everybody_also_its_former_holder(lapsed, bob):
    for caller in (bob, lapsed.lapser):
        assert delayed(caller.acquire(lapsed.cooling))["lock_delay_seconds"] == 30


def test_an_acl_outlives_the_lease_it_came_with(lapsed, bob):
    assert success(bob.look(lapsed.reserved))["acl"] == {"acquire": ["user:lapser"]}
    refused(bob.acquire(lapsed.reserved), 403, "forbidden")


def test_a_successor_gets_the_lock_when_the_lease_ends_and_not_before(alice, bob, lock):
    end = instant(acquired(alice.acquire(lock, ttl_seconds=1))["expires_at"])
    eventually(lambda: bob.acquire(lock, ttl_seconds=5).json, lambda seen: seen["status"] == "acquired", within=5)
    late = time.time() - end
    assert -0.05 < late < 1.0, f"taken over {late:.3f} s after its end"


# The delay.


def test_a_released_lock_cools_for_everybody_also_its_releaser(alice, bob, lock):
    lease = acquired(alice.acquire(lock, lock_delay_seconds=20))
    released(alice.release(lock, lease["lease_id"]))
    for caller in (alice, bob):
        answer = delayed(caller.acquire(lock))
        assert answer["lock_delay_seconds"] == 20
        assert_lasts(answer["available_at"], 20)
        assert 18_000 <= answer["retry_after_ms"] <= 20_000


def test_asking_again_does_not_prolong_the_delay(alice, bob, lock):
    released(alice.release(lock, acquired(alice.acquire(lock, lock_delay_seconds=20))["lease_id"]))
    first = delayed(bob.acquire(lock))
    assert delayed(bob.acquire(lock))["available_at"] == first["available_at"]


def test_a_cooling_lock_shows_as_free(alice, lock):
    released(alice.release(lock, acquired(alice.acquire(lock, lock_delay_seconds=20))["lease_id"]))
    seen = success(alice.look(lock))
    assert (seen["status"], seen["holder_id"], seen["expires_at"]) == ("free", None, None)
    assert success(alice.get(f"/locks?prefix={lock}"))["total"] == 0


def test_a_held_lock_with_a_delay_is_held_not_delayed(alice, bob, lock):
    acquired(alice.acquire(lock, lock_delay_seconds=20))
    held(bob.acquire(lock))


def test_a_cooled_lock_is_to_be_had_again(alice, bob, lock):
    released(alice.release(lock, acquired(alice.acquire(lock, lock_delay_seconds=1))["lease_id"]))
    available = instant(delayed(bob.acquire(lock))["available_at"])
    eventually(lambda: bob.acquire(lock).status, lambda status: status == 200, within=5)
    late = time.time() - available
    assert -0.05 < late < 1.0, f"to be had {late:.3f} s after its delay"
