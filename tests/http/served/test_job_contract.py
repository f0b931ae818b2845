"""Following the first recommended action of `agent_contract` leads from the claim of a job to its release."""

import pytest

from tests.http.job_client import ABSENT_LEASE, claimed, fresh, held, job_path, lost, ok, problem


def advice(body):
    """The first recommended action, as an agent reads it."""
    return next(step for step in body["agent_contract"]["next_actions"] if step["recommended"])


def follow(caller, body, **fields):
    """Send the request of the first recommended action."""
    step = advice(body)
    if step["method"] == "GET":
        return caller.get(step["endpoint"])
    return caller.post(step["endpoint"], fields)


def test_the_whole_life_of_a_job_by_advice_alone(alice, bob):
    job = f"org/repo:{fresh()}"
    free = alice.owner_of(job)
    lease = claimed(follow(alice, free, owner="me"))
    beat = ok(follow(alice, lease, lease_id=lease["lease_id"]))
    assert advice(beat)["action"] == "heartbeat_job"
    other = held(bob.claim(job, "other"))
    assert advice(other)["retry_after_seconds"] == other["retry_after_seconds"]
    assert held(follow(bob, other, owner="other"))["owner"] == "me"
    seen = bob.owner_of(job)
    assert held(follow(bob, seen, owner="other"))["owner"] == "me"
    released = ok(alice.release_job(job, lease["lease_id"]))
    assert advice(released)["action"] == "stop_work", "whoever is done is not sent back to the same job"
    assert claimed(follow(bob, bob.owner_of(job), owner="other"))["owner"] == "other"


def test_a_list_leads_to_its_first_job_and_an_empty_one_to_no_claim(alice, job):
    claimed(alice.claim(job, "me"))
    assert ok(follow(alice, alice.jobs(f"?prefix={job}")))["owner"] == "me"
    assert advice(alice.jobs(f"?prefix={fresh()}"))["action"] == "continue_work"


def test_after_a_loss_the_advice_is_to_stop_and_the_rest_can_be_followed(alice, root, job):
    lease = claimed(alice.claim(job))
    ok(root.force_release(job))
    body = lost(alice.heartbeat(job, lease["lease_id"]))
    assert advice(body)["action"] == "stop_work"
    assert body["agent_contract"]["retryable"] is False
    steps = {step["action"]: step for step in body["agent_contract"]["next_actions"]}
    assert ok(alice.get(steps["get_job_owner"]["endpoint"]))["status"] == "free"
    claimed(alice.post(steps["claim_job"]["endpoint"], {"owner": "again"}))


def test_a_second_release_advises_nothing_more_to_do(alice, job):
    lease = claimed(alice.claim(job))
    ok(alice.release_job(job, lease["lease_id"]))
    again = lost(alice.release_job(job, lease["lease_id"]))
    assert (advice(again)["action"], "already" in advice(again)["description"]) == ("stop_work", True)


def test_releasing_what_was_never_held_does_not_call_the_lease_over(alice, job):
    refused = lost(alice.release_job(job, ABSENT_LEASE))
    assert refused["message"] == f"this lease id does not hold {job}: nobody has claimed it yet"


def test_a_session_that_is_not_there_leads_to_a_new_one(alice, job):
    body = problem(alice.claim(job, session_id="00000000-0000-4000-8000-000000000000"), 404, "session_not_found")
    assert advice(body)["endpoint"] == "/v1/sessions"
    answer = follow(alice, body, name=fresh("session"))
    assert answer.status == 201
    session = answer.json
    claimed(alice.claim(job, session_id=session["session_id"], session_lease_id=session["lease_id"]))


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/claim", {}, 400),
        ("/claim", {"owner": "me", "metadata": "x" * 5000}, 413),
        ("/force-release", {"reason": "x"}, 403),
        ("/nonsense", {}, 404),
    ],
)
def test_an_invalid_request_advises_to_fix_it_and_is_not_retryable(alice, job, path, body, status):
    answer = alice.post(job_path(job, path), body)
    assert answer.status == status, str(answer)
    contract = problem(answer, status, answer.json["error"])["agent_contract"]
    assert contract["retryable"] is False
    assert contract["next_actions"][0]["action"] == "fix_request"
    assert contract["next_actions"][0]["description"]


def test_locks_and_sessions_and_elections_can_be_followed_too(alice, job):
    session = alice.open_session().json
    assert follow(alice, session).status == 200
    lock = alice.acquire(job).json
    renewed = follow(alice, lock, lease_id=lock["lease_id"])
    assert renewed.status == 200
    looked = alice.read_lock(job).json
    assert follow(alice, looked).json["status"] in {"held", "acquired"}
    led = alice.campaign(fresh("room")).json
    assert follow(alice, led, leader_token=led["leader_token"]).status == 200
