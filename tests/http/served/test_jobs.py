"""Jobs over HTTP: claim, heartbeat, release, read, force-release."""

import json
import time

import pytest

from tests.compat.octostore.expect import acquired, assert_lasts, eventually, instant
from tests.compat.octostore.expect import held as lock_held
from tests.http.job_client import ABSENT_LEASE, claimed, fresh, held, job_path, lost, ok, problem

# -- claim -------------------------------------------------------------------------------------------------------


def test_a_free_job_goes_to_the_caller_that_claims_it(alice, job):
    body = claimed(alice.claim(job, "agent-7", ttl_seconds=90, metadata={"issue": 12, "tags": ["a", None]}))
    assert (body["job_id"], body["owner"], body["previous"]) == (job, "agent-7", None)
    assert body["metadata"] == {"issue": 12, "tags": ["a", None]}
    assert_lasts(body["expires_at"], 90)
    assert body["expires_in_seconds"] in {89, 90}
    assert body["heartbeat_every_seconds"] == 30
    contract = body["agent_contract"]
    assert contract["lease_valid"] is True
    assert contract["recommended_heartbeat_interval_seconds"] == 30
    assert [step["action"] for step in contract["next_actions"]] == ["heartbeat_job", "release_job"]


def test_the_defaults_are_two_minutes_and_no_metadata(alice, job):
    body = claimed(alice.claim(job))
    assert_lasts(body["expires_at"], 120)
    assert body["metadata"] is None


def test_metadata_may_be_a_plain_string(alice, job):
    claimed(alice.claim(job, metadata="https://example.org/run/7"))
    assert alice.owner_of(job)["metadata"] == "https://example.org/run/7"


def test_a_claim_of_a_held_job_answers_its_owner_and_when_to_retry(alice, bob, job):
    first = claimed(alice.claim(job, "first", ttl_seconds=60, metadata={"why": "nightly"}))
    body = held(bob.claim(job, "second"), by="first")
    assert body["metadata"] == {"why": "nightly"}
    assert (body["claimed_at"], body["expires_at"]) == (first["claimed_at"], first["expires_at"])
    assert body["retry_after_seconds"] in {59, 60}
    assert body["waiting"] == 0
    assert first["lease_id"] not in json.dumps(body)


def test_a_second_claim_under_the_same_owner_name_is_held(alice, job):
    first = claimed(alice.claim(job, "me"))
    held(alice.claim(job, "me"), by="me")
    ok(alice.heartbeat(job, first["lease_id"]))


def test_tokens_grow_from_claim_to_claim_also_over_several_names(alice, job):
    tokens = []
    for name in (job, fresh(), job, job):
        lease = claimed(alice.claim(name))
        tokens.append(lease["token"])
        ok(alice.release_job(name, lease["lease_id"]))
    assert tokens == sorted(set(tokens))


def test_ids_may_have_slashes_and_every_letter_of_the_grammar(alice, bob):
    job = f"github.com/acme/Repo_1/issues:7@{fresh()}/claim"
    lease = claimed(alice.claim(job, "me"))
    assert lease["job_id"] == job
    held(bob.claim(job, "other"), by="me")
    assert alice.owner_of(job)["owner"] == "me"
    ok(alice.heartbeat(job, lease["lease_id"]))
    assert ok(alice.release_job(job, lease["lease_id"]))["job_id"] == job


def test_a_slash_written_as_percent_2f_names_the_same_job(alice, job):
    claimed(alice.claim(f"a/{job}", "me"))
    held(alice.post(f"/v1/jobs/a%2F{job}/claim", {"owner": "other"}), by="me")


# -- heartbeat ---------------------------------------------------------------------------------------------------


def test_a_heartbeat_starts_the_time_again_and_keeps_the_rest(alice, job):
    lease = claimed(alice.claim(job, "me", ttl_seconds=10, metadata={"a": 1}))
    body = ok(alice.heartbeat(job, lease["lease_id"]))
    assert body["status"] == "claimed"
    assert instant(body["expires_at"]) > instant(lease["expires_at"])
    assert_lasts(body["expires_at"], 10)
    assert (body["claimed_at"], body["metadata"], body["owner"]) == (lease["claimed_at"], {"a": 1}, "me")
    assert not body.keys() & {"lease_id", "token"}


def test_a_heartbeat_may_change_the_ttl_for_itself_and_those_after_it(alice, job):
    lease = claimed(alice.claim(job, ttl_seconds=10))
    assert_lasts(ok(alice.heartbeat(job, lease["lease_id"], ttl_seconds=300))["expires_at"], 300)
    assert_lasts(ok(alice.heartbeat(job, lease["lease_id"]))["expires_at"], 300)
    assert_lasts(ok(alice.heartbeat(job, lease["lease_id"], ttl_seconds=5))["expires_at"], 5)


def test_note_and_progress_are_seen_by_others_while_the_job_runs(alice, bob, job):
    lease = claimed(alice.claim(job))
    ok(alice.heartbeat(job, lease["lease_id"], note="half way", progress={"done": 5, "of": 10}))
    seen = bob.owner_of(job)
    assert (seen["note"], seen["progress"]) == ("half way", {"done": 5, "of": 10})
    ok(alice.heartbeat(job, lease["lease_id"]))
    assert bob.owner_of(job)["note"] == "half way", "a heartbeat without a note keeps the last one"


def test_a_lease_id_is_proof_for_any_caller_and_the_token_must_match_if_sent(alice, bob, job):
    lease = claimed(alice.claim(job))
    ok(bob.heartbeat(job, lease["lease_id"], token=lease["token"]))
    problem(alice.heartbeat(job, lease["lease_id"], token=lease["token"] + 1), 409, "wrong_token")
    problem(alice.release_job(job, lease["lease_id"], token=lease["token"] - 1), 409, "wrong_token")
    ok(alice.release_job(job, lease["lease_id"], token=lease["token"]))


def test_another_spelling_of_a_lease_id_is_the_same_lease(alice, job):
    lease = claimed(alice.claim(job))
    ok(alice.heartbeat(job, lease["lease_id"].upper()))


# -- release and what the successor learns -----------------------------------------------------------------------


def test_note_and_checkpoint_of_a_release_reach_the_successor(alice, bob, job):
    lease = claimed(alice.claim(job, "first"))
    checkpoint = {"page": 7, "text": "é\n", "big": [1.5, -2, 10**15]}
    body = ok(alice.release_job(job, lease["lease_id"], note="page 7 is next", checkpoint=checkpoint))
    assert (body["status"], body["job_id"]) == ("released", job)
    previous = claimed(bob.claim(job, "second"))["previous"]
    assert (previous["owner"], previous["outcome"]) == ("first", "released")
    assert (previous["note"], previous["checkpoint"]) == ("page 7 is next", checkpoint)
    assert instant(lease["claimed_at"]) <= instant(previous["ended_at"]) <= time.time() + 1


def test_a_checkpoint_of_a_heartbeat_outlives_its_holder(alice, bob, job):
    lease = claimed(alice.claim(job, "mortal", ttl_seconds=1))
    ok(alice.heartbeat(job, lease["lease_id"], note="so far", checkpoint=[1, 2, 3]))
    previous = eventually(lambda: ok(bob.claim(job)), lambda body: body["status"] == "claimed", within=3)["previous"]
    assert (previous["owner"], previous["outcome"]) == ("mortal", "expired")
    assert (previous["note"], previous["checkpoint"]) == ("so far", [1, 2, 3])


def test_a_release_keeps_the_last_checkpoint_unless_it_brings_one(alice, job):
    lease = claimed(alice.claim(job))
    ok(alice.heartbeat(job, lease["lease_id"], checkpoint="old", note="old"))
    ok(alice.release_job(job, lease["lease_id"], note="new"))
    lease = claimed(alice.claim(job))
    assert (lease["previous"]["checkpoint"], lease["previous"]["note"]) == ("old", "new")
    ok(alice.release_job(job, lease["lease_id"]))
    assert claimed(alice.claim(job))["previous"]["checkpoint"] is None, "the story before the last one is over"


def test_a_released_job_is_free_and_a_second_release_is_too_late(alice, job):
    lease = claimed(alice.claim(job))
    ok(alice.release_job(job, lease["lease_id"]))
    assert alice.owner_of(job)["status"] == "free"
    assert lost(alice.release_job(job, lease["lease_id"]))["ended"] == "released"


# -- read --------------------------------------------------------------------------------------------------------


def test_a_job_nobody_ever_claimed_is_free(alice, job):
    body = alice.owner_of(job)
    assert (body["status"], body["job_id"], body["owner"], body["previous"]) == ("free", job, None, None)
    assert body["agent_contract"]["next_actions"][0]["action"] == "claim_job"


def test_looking_shows_the_owner_and_never_the_proof(alice, bob, job):
    lease = claimed(alice.claim(job, "me", metadata={"a": 1}))
    answer = bob.get(job_path(job))
    body = ok(answer)
    assert (body["status"], body["owner"], body["metadata"]) == ("claimed", "me", {"a": 1})
    assert (body["claimed_at"], body["expires_at"]) == (lease["claimed_at"], lease["expires_at"])
    assert lease["lease_id"].encode() not in answer.raw
    assert b'"token"' not in answer.raw
    assert answer.header("Cache-Control") == "no-store"


def test_reading_a_free_job_shows_how_the_last_lease_ended(alice, job):
    lease = claimed(alice.claim(job, "me"))
    ok(alice.release_job(job, lease["lease_id"], note="done", checkpoint={"at": 1}))
    previous = alice.owner_of(job)["previous"]
    assert (previous["owner"], previous["outcome"], previous["note"]) == ("me", "released", "done")
    assert previous["checkpoint"] == {"at": 1}


def test_a_lapsed_job_looks_free_at_once(alice, job):
    lease = claimed(alice.claim(job, "me", ttl_seconds=1))
    time.sleep(max(0.0, instant(lease["expires_at"]) - time.time()))
    body = eventually(lambda: alice.owner_of(job), lambda seen: seen["status"] == "free", within=0.1)
    assert (body["previous"]["owner"], body["previous"]["outcome"]) == ("me", "expired")


def test_head_answers_like_get_without_a_body(alice, job):
    answer = alice.send("HEAD", job_path(job))
    assert (answer.status, answer.raw) == (200, b"")


# -- lost leases -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["heartbeat", "release"])
def test_a_late_holder_learns_who_owns_the_job_now_and_no_secret(alice, bob, job, verb):
    old = claimed(alice.claim(job, "old"))
    ok(alice.release_job(job, old["lease_id"]))
    new = claimed(bob.claim(job, "new"))
    answer = alice.post(job_path(job, f"/{verb}"), {"lease_id": old["lease_id"]})
    body = lost(answer)
    assert (body["held_by"], body["held_since"]) == ("new", new["claimed_at"])
    assert body["expires_at"] == new["expires_at"]
    assert new["lease_id"].encode() not in answer.raw
    assert not holds_value({**body, "status": None}, new["token"])  # the token may be 409
    ok(bob.heartbeat(job, new["lease_id"]))


@pytest.mark.parametrize("verb", ["heartbeat", "release"])
def test_a_lease_that_ran_out_is_lost_although_nobody_took_the_job(alice, job, verb):
    lease = claimed(alice.claim(job, ttl_seconds=1))
    time.sleep(max(0.0, instant(lease["expires_at"]) - time.time()) + 0.01)
    body = lost(alice.post(job_path(job, f"/{verb}"), {"lease_id": lease["lease_id"]}))
    assert body["ended"] == "expired"
    assert "held_by" not in body


@pytest.mark.parametrize("verb", ["heartbeat", "release"])
def test_an_unknown_lease_id_is_refused(alice, bob, job, verb):
    mine = claimed(alice.claim(job, "me"))
    assert lost(bob.post(job_path(job, f"/{verb}"), {"lease_id": ABSENT_LEASE}))["held_by"] == "me"
    lost(bob.post(job_path(fresh(), f"/{verb}"), {"lease_id": mine["lease_id"]}))
    ok(alice.heartbeat(job, mine["lease_id"]))


# -- forced release ----------------------------------------------------------------------------------------------


def test_a_holder_that_lost_its_job_by_force_learns_by_whom_and_why(alice, bob, root, job):
    lease = claimed(alice.claim(job, "stuck"))
    ok(alice.heartbeat(job, lease["lease_id"], checkpoint={"row": 5}))
    body = ok(root.force_release(job, "asleep since noon"))
    assert body["previous"]["outcome"] == "forced"
    told = lost(alice.heartbeat(job, lease["lease_id"]))
    assert (told["ended"], told["ended_by"], told["reason"]) == ("forced", "root", "asleep since noon")
    previous = claimed(bob.claim(job, "next"))["previous"]
    assert (previous["owner"], previous["outcome"], previous["by"]) == ("stuck", "forced", "root")
    assert (previous["reason"], previous["checkpoint"]) == ("asleep since noon", {"row": 5})
    told = lost(alice.release_job(job, lease["lease_id"]))
    assert (told["held_by"], told["ended_by"], told["reason"]) == ("next", "root", "asleep since noon")


def test_only_a_key_with_the_admin_scope_may_take_a_job_away(alice, job):
    lease = claimed(alice.claim(job))
    answer = alice.force_release(job)
    problem(answer, 403, "forbidden")
    assert "insufficient_scope" in (answer.header("WWW-Authenticate") or "")
    ok(alice.heartbeat(job, lease["lease_id"]))


def test_a_forced_release_of_a_free_job_is_refused(root, job):
    body = problem(root.force_release(job), 409, "not_held")
    assert body["agent_contract"]["next_actions"][0]["action"] == "stop_work"


# -- the same names as locks -------------------------------------------------------------------------------------


def test_a_lock_call_sees_a_claimed_job_as_held_also_under_the_same_key(alice, bob, job):
    lease = claimed(alice.claim(job, "me", metadata={"a": 1}))
    for caller in (alice, bob):
        body = lock_held(caller.acquire(job))
        assert body["metadata"] == '{"a":1}'
    assert alice.read_lock(job).json["status"] == "held"
    assert alice.read_lock(job).json["fencing_token"] == lease["token"]
    ok(alice.release_job(job, lease["lease_id"]))
    acquired(bob.acquire(job))


def test_a_job_call_sees_an_acquired_lock_as_held_also_under_the_same_key(alice, bob, job):
    lock = acquired(alice.acquire(job, metadata="text"))
    for caller in (alice, bob):
        assert held(caller.claim(job))["metadata"] == "text"
    assert alice.owner_of(job)["status"] == "claimed"
    assert any(found["job_id"] == job for found in alice.jobs(f"?prefix={job}")["jobs"])
    assert alice.release(job, lock["lease_id"]).raw == b"null"
    claimed(bob.claim(job))


def test_a_lock_in_its_delay_is_answered_as_held_until_the_delay_ends(alice, job):
    lock = acquired(alice.acquire(job, lock_delay_seconds=1))
    alice.release(job, lock["lease_id"])
    assert held(alice.claim(job))["owner"] is None
    eventually(lambda: ok(alice.claim(job)), lambda body: body["status"] == "claimed", within=3)


def test_a_lock_with_an_access_list_keeps_jobs_out_too(alice, bob, job):
    lock = acquired(alice.acquire(job, acl={"acquire": [f"user:{alice.name}"]}))
    alice.release(job, lock["lease_id"])
    problem(bob.claim(job), 403, "forbidden")
    claimed(alice.claim(job))


# -- sessions ----------------------------------------------------------------------------------------------------


def test_a_job_claimed_for_a_session_goes_when_the_session_goes(alice, bob, job):
    session = alice.open_session().json["session_id"]
    lease = claimed(alice.claim(job, "me", session_id=session))
    assert lease["session_id"] == session
    free = fresh()
    claimed(alice.claim(free, "me"))
    assert alice.delete(f"/sessions/{session}").status == 204
    assert lost(alice.heartbeat(job, lease["lease_id"]))["ended"] == "session_ended"
    assert claimed(bob.claim(job))["previous"]["outcome"] == "session_ended"
    held(bob.claim(free), by="me")


@pytest.mark.parametrize("session", ["absent", "foreign"])
def test_a_claim_for_a_session_that_is_not_the_callers_is_refused(alice, bob, job, session):
    named = ABSENT_LEASE if session == "absent" else bob.open_session().json["session_id"]
    body = problem(alice.claim(job, session_id=named), 404, "session_not_found")
    assert body["agent_contract"]["next_actions"][0]["action"] == "begin_session"
    assert alice.owner_of(job)["status"] == "free"


def holds_value(document, value):
    """Whether a value appears anywhere inside."""
    if isinstance(document, dict):
        return any(holds_value(element, value) for element in document.values())
    if isinstance(document, list):
        return any(holds_value(element, value) for element in document)
    return document == value
