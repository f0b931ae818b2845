"""A session nobody keeps alive: expired for five seconds, then forgotten. And a room whose leader fell silent.

These tests read what `lifetimes` recorded.
"""

import pytest

from tests.compat.octostore.expect import acquired, no_such_session, refused, success

pytestmark = pytest.mark.waits(16)


def test_a_session_is_inactive_from_its_end_on_and_still_shown(lifetimes):
    seen = success(lifetimes.inactive)
    assert (seen["session_id"], seen["active"]) == (lifetimes.session["session_id"], False)
    assert -0.05 < lifetimes.inactive_after < 1.0


@pytest.mark.parametrize("call", ["keepalive", "ephemeral acquire", "durable acquire", "renew", "release"])
def test_an_expired_session_has_no_authority(lifetimes, call):
    refused(lifetimes.expired[call], 410, "session_expired")


def test_an_expired_session_can_still_be_ended(lifetimes):
    assert success(lifetimes.second_inactive)["active"] is False
    assert lifetimes.late_delete.status == 204
    no_such_session(lifetimes.after_late_delete)


def test_an_expired_session_lets_go_of_its_ephemeral_locks_promptly(lifetimes, bob):
    assert -0.05 < lifetimes.free_after < 1.0
    successor = acquired(bob.acquire(lifetimes.ephemeral))
    assert successor["fencing_token"] > lifetimes.lease["fencing_token"]


def test_an_expired_session_leaves_its_durable_locks(lifetimes, bob):
    assert success(bob.look(lifetimes.durable))["fencing_token"] == lifetimes.durable_lease["fencing_token"]


def test_an_expired_session_honours_the_delay_of_its_locks(lifetimes):
    assert lifetimes.cooling_lock["status"] == "delayed"


def test_an_expired_session_is_forgotten_after_about_five_seconds(lifetimes):
    assert 4.0 < lifetimes.forgotten_after < 7.0


@pytest.mark.parametrize("call", ["keepalive", "get", "delete", "acquire"])
def test_a_forgotten_session_is_absent(lifetimes, call):
    no_such_session(lifetimes.forgotten[call])


def test_the_lease_of_a_forgotten_session_is_not_current(lifetimes):
    refused(lifetimes.late_renew, 404, "lease_not_current")


def test_a_room_is_vacant_from_the_end_of_its_leaders_lease_on(lifetimes):
    seen = success(lifetimes.vacant_room)
    assert "leader" not in seen
    assert seen["retry_after_ms"] == 0
    assert -0.05 < lifetimes.room_vacant_after < 1.0


def test_a_silent_leader_is_not_current(lifetimes):
    refused(lifetimes.late_renewal, 404, "lease_not_current")
    refused(lifetimes.late_resignation, 404, "lease_not_current")


def test_a_vacant_room_elects_a_new_leader_under_a_later_term(lifetimes, anyone):
    successor = success(anyone.campaign(lifetimes.room, "successor", ttl_seconds=5))
    assert successor["status"] == "leader"
    assert successor["leader"]["term"] > lifetimes.leadership["leader"]["term"]
