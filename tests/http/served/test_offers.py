"""Offers over HTTP: a worker hands a job or a task to another one, which takes it over with a code."""

import pytest

from tests.compat.octostore.expect import assert_lasts
from tests.compat.orchestrion.expect import claimed as claimed_task
from tests.compat.orchestrion.states import pending
from tests.http.job_client import Callers, claimed, held, lost, ok, pointers, problem
from tests.http.replies import done, refused
from tests.http.session_client import begin, close

pytest_plugins = ["tests.http.fresh_accounts"]

LEFT = {"note": "the migration is half way", "checkpoint": {"table": 3}}


@pytest.fixture
def offered(alice, job):
    """(The claim of a job, the answer to its offer)."""
    mine = claimed(alice.claim(job, "giver", ttl_seconds=30))
    return mine, ok(alice.offer(job, mine["lease_id"], **LEFT))


def test_an_offer_is_answered_with_its_code_and_its_end(offered, bob, job):
    mine, offer = offered
    assert offer["status"] == "offered"
    assert offer["offer"].startswith("hfo_")
    assert_lasts(offer["offered"]["until"], 3600)
    assert_lasts(offer["expires_at"], 3600)
    assert (offer["offered"]["to"], offer["owner"], offer["ttl_seconds"]) == (None, "giver", 30)
    shown = bob.owner_of(job)
    assert shown["offered"] == offer["offered"]
    assert offer["offer"] not in str(shown), "only the answer to the offer contains the code"
    assert mine["lease_id"] not in str(offer)


def test_a_taker_claims_with_the_code_and_the_giver_is_told(offered, alice, bob, job):
    mine, offer = offered
    held(bob.claim(job, "taker"))
    taken = claimed(bob.claim(job, "taker", ttl_seconds=30, offer=offer["offer"], wait_seconds=5))
    assert taken["token"] > mine["token"]
    assert "offered" not in taken
    previous = taken["previous"]
    assert (previous["outcome"], previous["owner"]) == ("handed_over", "giver")
    assert {name: previous[name] for name in LEFT} == LEFT
    told = lost(alice.heartbeat(job, mine["lease_id"]))
    assert (told["ended"], told["ended_by"], told["held_by"]) == ("handed_over", "taker", "taker")
    assert "taker accepted your offer" in told["message"]


def test_a_code_that_accepts_nothing_is_refused(offered, alice, bob, job):
    mine, offer = offered
    body = problem(bob.claim(job, "taker", offer="hfo_wrong"), 409, "offer_refused")
    assert body["reason"] == "wrong_code"
    newer = ok(alice.offer(job, mine["lease_id"]))
    assert problem(bob.claim(job, offer=offer["offer"]), 409, "offer_refused")["reason"] == "wrong_code"
    ok(alice.withdraw_offer(job, mine["lease_id"]))
    assert problem(bob.claim(job, offer=newer["offer"]), 409, "offer_refused")["reason"] == "no_offer"
    assert alice.owner_of(job)["owner"] == "giver"


def test_withdrawing_an_offer_leaves_the_ordinary_deadline(offered, alice, job):
    mine, _ = offered
    body = ok(alice.withdraw_offer(job, mine["lease_id"]))
    assert (body["status"], "offered" in body) == ("claimed", False)
    assert_lasts(body["expires_at"], 30)


def test_an_offer_with_wrong_fields_changes_nothing(alice, job):
    mine = claimed(alice.claim(job, "giver"))
    body = problem(
        alice.offer(job, "no-uuid", expires_in_seconds=86_401, to="", note="x" * 5000), 400, "invalid_request"
    )
    assert pointers(body) == {"/lease_id", "/expires_in_seconds", "/to", "/note"}
    lost(alice.offer(job, "00000000-0000-4000-8000-000000000000"))
    assert "offered" not in alice.owner_of(job)
    assert mine["expires_at"] == alice.owner_of(job)["expires_at"]


def test_an_offer_repeated_under_an_idempotency_key_replaces_the_first(alice, bob, job):
    mine = claimed(alice.claim(job, "giver"))
    first, second = (ok(alice.under_key("offer").offer(job, mine["lease_id"])) for _ in range(2))
    assert first["offer"] != second["offer"], "an answer with a secret is never stored"
    problem(bob.claim(job, offer=first["offer"]), 409, "offer_refused")
    claimed(bob.claim(job, offer=second["offer"]))


def test_a_repeated_claim_with_an_offer_gets_the_same_lease(offered, bob, job):
    taker = bob.under_key("take")
    first = claimed(taker.claim(job, "taker", offer=offered[1]["offer"]))
    again = claimed(taker.claim(job, "taker", offer=offered[1]["offer"]))
    assert (again["lease_id"], again["token"]) == (first["lease_id"], first["token"])


def test_a_taker_overtakes_those_that_wait(offered, bob, job):
    with Callers() as callers:
        waiting = callers.send(bob.claim, job, "waiter", wait_seconds=30)
        while not held(bob.claim(job, "other"))["waiting"]:
            pass
        taken = claimed(bob.claim(job, "taker", offer=offered[1]["offer"]))
        assert not waiting.done()
        ok(bob.release_job(job, taken["lease_id"]))
        assert claimed(waiting.result(30)[0])["owner"] == "waiter"


def test_events_of_an_offer_show_no_proof(offered, bob, job):
    claimed(bob.claim(job, "taker", offer=offered[1]["offer"]))
    events = ok(bob.get(f"/v1/events?subject=lease:{job}"))["events"]
    assert [event["kind"] for event in events] == [
        "lease.claimed",
        "lease.offered",
        "lease.handed_over",
        "lease.claimed",
    ]
    assert events[1]["data"]["offer"].keys() == {"until", "lasts"}
    assert events[1]["data"]["offer"]["until"] == offered[1]["offered"]["until"]


# -- tasks -------------------------------------------------------------------------------------------------------


@pytest.fixture
def offered_task(account):
    """(The claim of a task, the answer to its offer)."""
    mine = claimed_task(account.do("claim", pending(account)["id"], worker_id="giver"))
    return mine, done(account.do("offer", mine["id"], lease_id=mine["leaseId"], expires_in_seconds=7200, **LEFT))


def test_a_taker_continues_an_offered_task(account, offered_task):
    mine, offer = offered_task
    assert offer["offer"].startswith("hfo_")
    assert offer["offered"]["until"] == offer["leaseExpiresAt"]
    shown = done(account.read_task(mine["id"]))
    assert shown["offered"] == {"until": offer["leaseExpiresAt"], "to": None}
    refused(account.do("claim", mine["id"], worker_id="taker"), 409, "task_currently_claimed")
    body = refused(account.do("claim", mine["id"], worker_id="taker", offer="hfo_wrong"), 409, "offer_refused")
    assert body["reason"] == "wrong_code"
    taken = claimed_task(account.do("claim", mine["id"], worker_id="taker", offer=offer["offer"]))
    assert (taken["attemptCount"], taken["attempt"]) == (mine["attemptCount"], mine["attempt"] + 1)
    assert taken["fencingToken"] > mine["fencingToken"]
    previous = taken["previousAttempt"]
    assert (previous["outcome"], previous["worker"]) == ("handed_over", "giver")
    assert {name: previous[name] for name in LEFT} == LEFT
    body = refused(account.do("complete", mine["id"], lease_id=mine["leaseId"]), 409, "lease_superseded")
    assert body["heldBy"] == "taker"
    assert "taker accepted your offer" in body["message"]
    done(account.do("complete", mine["id"], lease_id=taken["leaseId"]))


def test_an_offer_of_a_task_needs_its_lease_id(account):
    mine = claimed_task(account.do("claim", pending(account)["id"], worker_id="giver"))
    refused(account.do("offer", mine["id"]), 400, "invalid_request")
    refused(account.do("offer", mine["id"], lease_id="wrong"), 409, "lease_superseded")
    refused(account.do("withdraw-offer", mine["id"], lease_id="wrong"), 409, "lease_superseded")


def test_withdrawing_the_offer_of_a_task_leaves_its_ordinary_deadline(account, offered_task):
    mine, offer = offered_task
    body = done(account.do("withdraw-offer", mine["id"], lease_id=mine["leaseId"]))
    assert body["leaseExpiresAt"] < offer["leaseExpiresAt"]
    refused(account.do("claim", mine["id"], offer=offer["offer"]), 409, "offer_refused")


def test_an_offer_to_a_session_and_the_end_of_the_givers_session(account):
    giver = begin(account, "giver")
    mine = claimed_task(account.do("claim", pending(account)["id"], session_id=giver["session_id"]))
    offer = done(account.do("offer", mine["id"], lease_id=mine["leaseId"], to="taker"))
    assert "sessionId" not in offer
    assert close(account, giver).status == 200
    body = refused(account.do("claim", mine["id"], offer=offer["offer"]), 403, "offer_restricted")
    assert body["to"] == "taker"
    taker = begin(account, "taker")
    taken = claimed_task(account.do("claim", mine["id"], offer=offer["offer"], session_id=taker["session_id"]))
    assert taken["sessionId"] == taker["session_id"]
