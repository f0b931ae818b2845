"""A session that is not renewed expires and is removed after five seconds; an expired leadership ends.

These tests read what `lifetimes` recorded.
"""

import pytest

from tests.compat.octostore.expect import acquired, no_such_session, refused, success

pytestmark = pytest.mark.waits(16)


def test_an_expired_session_is_inactive_and_can_be_read(lifetimes):
    observed = success(lifetimes.inactive)
    assert (observed["session_id"], observed["active"]) == (lifetimes.session["session_id"], False)
    assert -0.05 < lifetimes.inactive_after < 1.0


@pytest.mark.parametrize("call", ["keepalive", "ephemeral acquire", "durable acquire", "renew", "release"])
def test_an_expired_session_is_refused(lifetimes, call):
    refused(lifetimes.expired[call], 410, "session_expired")


def test_an_expired_session_can_still_be_ended(lifetimes):
    assert success(lifetimes.second_inactive)["active"] is False
    assert lifetimes.late_delete.status == 204
    no_such_session(lifetimes.after_late_delete)


def test_an_expired_session_releases_its_ephemeral_locks(lifetimes, bob):
    assert -0.05 < lifetimes.free_after < 1.0
    successor = acquired(bob.acquire(lifetimes.ephemeral))
    assert successor["fencing_token"] > lifetimes.lease["fencing_token"]


def test_an_expired_session_leaves_its_durable_locks(lifetimes, bob):
    assert success(bob.read_lock(lifetimes.durable))["fencing_token"] == lifetimes.durable_lease["fencing_token"]


def test_an_expired_session_starts_the_delay_of_its_locks(lifetimes):
    assert lifetimes.delayed_lock["status"] == "delayed"


def test_an_expired_session_is_removed_after_about_five_seconds(lifetimes):
    assert 4.0 < lifetimes.forgotten_after < 7.0


@pytest.mark.parametrize("call", ["keepalive", "get", "delete", "acquire"])
def test_a_removed_session_is_not_found(lifetimes, call):
    no_such_session(lifetimes.forgotten[call])


def test_the_lease_of_a_removed_session_is_not_current(lifetimes):
    refused(lifetimes.late_renew, 404, "lease_not_current")


def test_an_election_is_vacant_when_the_lease_of_its_leader_ends(lifetimes):
    observed = success(lifetimes.vacant_election)
    assert "leader" not in observed
    assert observed["retry_after_ms"] == 0
    assert -0.05 < lifetimes.vacant_after < 1.0


def test_a_leader_that_does_not_renew_is_not_current(lifetimes):
    refused(lifetimes.late_renewal, 404, "lease_not_current")
    refused(lifetimes.late_resignation, 404, "lease_not_current")


def test_a_vacant_election_gets_a_new_leader_with_a_later_term(lifetimes, anyone):
    successor = success(anyone.campaign(lifetimes.election, "successor", ttl_seconds=5))
    assert successor["status"] == "leader"
    assert successor["leader"]["term"] > lifetimes.leadership["leader"]["term"]
