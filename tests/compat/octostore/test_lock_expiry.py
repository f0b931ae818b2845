"""A lease that is not renewed expires; the lock delay then blocks its name for a while."""

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

lapsed_locks = {}


@pytest.fixture
def lapsed(server, store):
    """Expired locks of the user `lapser`, one for each purpose; created once for all tests."""
    if store not in lapsed_locks:
        lapser = server.user("lapser")
        names = {
            kind: f"lapsed-{uuid.uuid4().hex}" for kind in ("plain", "delayed_name", "reserved", "listed", "taken")
        }
        extras = {"delayed_name": {"lock_delay_seconds": 30}, "reserved": {"acl": {"acquire": [f"user:{lapser.name}"]}}}
        leases = {
            kind: acquired(lapser.acquire(name, ttl_seconds=1, **extras.get(kind, {}))) for kind, name in names.items()
        }
        for name in names.values():
            eventually(
                lambda name=name: lapser.read_lock(name).json["status"], lambda observed: observed == "free", within=5
            )
        lapsed_locks[store] = SimpleNamespace(lapser=lapser, leases=leases, **names)
    return lapsed_locks[store]


def test_an_expired_lock_is_free(lapsed):
    observed = success(lapsed.lapser.read_lock(lapsed.plain))
    assert (observed["status"], observed["holder_id"], observed["expires_at"]) == ("free", None, None)


def test_an_expired_lock_is_not_listed(lapsed):
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
    assert success(bob.read_lock(lapsed.taken))["fencing_token"] == successor["fencing_token"]
    released(bob.release(lapsed.taken, successor["lease_id"]))


def test_the_lock_delay_after_an_expiry_applies_to_every_user(lapsed, bob):
    for caller in (bob, lapsed.lapser):
        assert delayed(caller.acquire(lapsed.delayed_name))["lock_delay_seconds"] == 30


def test_an_acl_remains_after_its_lease_expired(lapsed, bob):
    assert success(bob.read_lock(lapsed.reserved))["acl"] == {"acquire": ["user:lapser"]}
    refused(bob.acquire(lapsed.reserved), 403, "forbidden")


def test_a_successor_gets_the_lock_when_the_lease_ends_and_not_before(alice, bob, lock):
    end = instant(acquired(alice.acquire(lock, ttl_seconds=1))["expires_at"])
    eventually(
        lambda: bob.acquire(lock, ttl_seconds=5).json, lambda observed: observed["status"] == "acquired", within=5
    )
    late = time.time() - end
    assert -0.05 < late < 1.0, f"taken over {late:.3f} s after its end"


# The delay.


def test_the_lock_delay_after_a_release_applies_to_every_user(alice, bob, lock):
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


def test_a_lock_in_its_delay_is_free(alice, lock):
    released(alice.release(lock, acquired(alice.acquire(lock, lock_delay_seconds=20))["lease_id"]))
    observed = success(alice.read_lock(lock))
    assert (observed["status"], observed["holder_id"], observed["expires_at"]) == ("free", None, None)
    assert success(alice.get(f"/locks?prefix={lock}"))["total"] == 0


def test_a_held_lock_with_a_delay_is_held_not_delayed(alice, bob, lock):
    acquired(alice.acquire(lock, lock_delay_seconds=20))
    held(bob.acquire(lock))


def test_a_lock_can_be_acquired_after_its_delay(alice, bob, lock):
    released(alice.release(lock, acquired(alice.acquire(lock, lock_delay_seconds=1))["lease_id"]))
    available = instant(delayed(bob.acquire(lock))["available_at"])
    eventually(lambda: bob.acquire(lock).status, lambda status: status == 200, within=5)
    late = time.time() - available
    assert -0.05 < late < 1.0, f"to be had {late:.3f} s after its delay"
