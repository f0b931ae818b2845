"""A repeated request under one Idempotency-Key has one effect and one answer."""

import time

import pytest

from tests.compat.octostore.expect import instant
from tests.http.job_client import claimed, fresh, held, lost, ok, problem, together


@pytest.fixture
def key():
    return fresh("key")


def replayed(answer):
    assert answer.header("Idempotency-Replayed") == "true", str(answer)
    return answer


def test_a_retried_claim_gives_the_same_lease_and_no_more_time(alice, job, key):
    first = alice.under_key(key).claim(job, "me", ttl_seconds=30)
    lease = claimed(first)
    assert first.header("Idempotency-Replayed") is None
    time.sleep(0.05)
    again = claimed(replayed(alice.under_key(key).claim(job, "me", ttl_seconds=30)))
    for field in ("lease_id", "token", "claimed_at", "expires_at", "owner", "previous"):
        assert again[field] == lease[field], field


def test_a_replay_tells_the_times_as_they_are_now(alice, job, key):
    lease = claimed(alice.under_key(key).claim(job, "me", ttl_seconds=30))
    renewed = ok(alice.heartbeat(job, lease["lease_id"], ttl_seconds=600))
    again = claimed(replayed(alice.under_key(key).claim(job, "me", ttl_seconds=30)))
    assert again["expires_at"] == renewed["expires_at"]


def test_a_replay_after_the_release_says_that_the_lease_is_lost(alice, bob, job, key):
    lease = claimed(alice.under_key(key).claim(job, "me"))
    ok(alice.release_job(job, lease["lease_id"]))
    assert lost(alice.under_key(key).claim(job, "me"))["ended"] == "released"
    claimed(bob.claim(job, "next"))
    assert lost(alice.under_key(key).claim(job, "me"))["held_by"] == "next"


def test_a_replay_after_the_lease_ran_out_grants_nothing(alice, job, key):
    lease = claimed(alice.under_key(key).claim(job, "me", ttl_seconds=1))
    time.sleep(max(0.0, instant(lease["expires_at"]) - time.time()) + 0.01)
    lost(alice.under_key(key).claim(job, "me", ttl_seconds=1))
    assert alice.owner_of(job)["status"] == "free"


@pytest.mark.parametrize("other", ["body", "path", "verb"])
def test_the_same_key_for_another_request_is_422(alice, job, key, other):
    agent = alice.under_key(key)
    lease = claimed(agent.claim(job, "me"))
    if other == "body":
        answer = agent.claim(job, "me", ttl_seconds=60)
    elif other == "path":
        answer = agent.claim(fresh(), "me")
    else:
        answer = agent.release_job(job, lease["lease_id"])
    problem(answer, 422, "idempotency_conflict")
    ok(alice.heartbeat(job, lease["lease_id"]))


def test_an_answer_that_changed_nothing_is_not_kept(alice, bob, job, key):
    lease = claimed(bob.claim(job, "other"))
    held(alice.under_key(key).claim(job, "me"), by="other")
    ok(bob.release_job(job, lease["lease_id"]))
    answer = alice.under_key(key).claim(job, "me")
    assert answer.header("Idempotency-Replayed") is None
    claimed(answer)


def test_heartbeat_and_release_replay_their_answer_to_the_byte(alice, job, key):
    lease = claimed(alice.claim(job))
    beat = alice.under_key(key).heartbeat(job, lease["lease_id"], note="once")
    assert replayed(alice.under_key(key).heartbeat(job, lease["lease_id"], note="once")).raw == beat.raw
    release = alice.under_key(key + "2").release_job(job, lease["lease_id"], note="end")
    ok(release)
    claimed(alice.claim(job))
    assert replayed(alice.under_key(key + "2").release_job(job, lease["lease_id"], note="end")).raw == release.raw


def test_fifty_at_once_under_one_key_get_one_lease(alice, job, key):
    calls = [lambda: claimed(alice.under_key(key).claim(job, "me")) for _ in range(50)]
    leases = together(*calls)
    assert len({(lease["lease_id"], lease["token"]) for lease in leases}) == 1


def test_duplicates_on_two_servers_get_one_lease(postgres_server, second_postgres_server, job, key):
    from tests.http.job_client import agent

    both = [agent(postgres_server), agent(second_postgres_server)]
    calls = [lambda caller=caller: claimed(caller.under_key(key).claim(job, "me")) for caller in both * 8]
    leases = together(*calls)
    assert len({(lease["lease_id"], lease["token"]) for lease in leases}) == 1


def test_another_caller_that_sends_the_same_key_does_not_get_the_lease(alice, bob, job, key):
    lease = claimed(alice.under_key(key).claim(job, "me"))
    answer = bob.under_key(key).claim(job, "me")
    problem(answer, 422, "idempotency_conflict")
    assert lease["lease_id"].encode() not in answer.raw


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
def test_a_key_is_1_to_255_visible_characters(alice, job, key):
    body = problem(alice.under_key(key).claim(job, "me"), 400, "invalid_request")
    assert body["errors"][0]["code"] == "invalid_header"
    assert alice.owner_of(job)["status"] == "free"
