"""Done jobs over HTTP: agents that see the same work later learn that it is done."""

import pytest

from tests.compat.octostore.expect import acquired, assert_lasts, eventually
from tests.http.job_client import Callers, claimed, fresh, held, lost, ok, pointers, problem

RESULT = {"pull_request": 12, "files": ["a.py"]}
WEEK = 7 * 24 * 3600


@pytest.fixture
def finished(alice, job):
    """A job that alice has done."""
    lease = claimed(alice.claim(job, "solver"))
    released = alice.release_job(job, lease["lease_id"], outcome="done", result=RESULT, note="see the pull request")
    assert ok(released)["previous"]["outcome"] == "done"
    return job


def done(answer):
    body = ok(answer)
    assert body["status"] == "done", body
    assert not body.keys() & {"lease_id", "token"}
    assert body["agent_contract"]["next_actions"][0]["action"] == "stop_work"
    return body


def test_five_agents_that_see_the_same_issue_learn_that_it_is_done(bob, finished):
    for number in range(5):
        body = done(bob.claim(finished, f"agent-{number}"))
        assert (body["by"], body["result"], body["note"]) == ("solver", RESULT, "see the pull request")
        assert_lasts(body["until"], WEEK)


def test_a_done_job_can_be_claimed_again(bob, finished):
    body = claimed(bob.claim(finished, "again", again=True))
    assert body["previous"]["outcome"] == "done"
    held(bob.claim(finished, "other"))


def test_the_owner_of_a_done_job_is_nobody_and_its_result_is_shown(bob, finished):
    body = done(bob.get(f"/v1/jobs/{finished}"))
    assert (body["owner"], body["result"], body["previous"]["outcome"]) == (None, RESULT, "done")


def test_a_job_may_be_done_for_good_or_for_some_time(alice, job):
    for seconds, until in ((None, None), (90, 90)):
        lease = claimed(alice.claim(job, "solver", again=True))
        ok(alice.release_job(job, lease["lease_id"], outcome="done", done_for_seconds=seconds))
        body = done(alice.claim(job))
        assert body["until"] is None if until is None else assert_lasts(body["until"], until) is None


def test_a_job_that_was_done_for_a_second_is_free_again(alice, job):
    lease = claimed(alice.claim(job, "solver"))
    ok(alice.release_job(job, lease["lease_id"], outcome="done", done_for_seconds=1))
    done(alice.claim(job))
    body = eventually(lambda: ok(alice.claim(job, "next")), lambda seen: seen["status"] == "claimed", within=5)
    assert body["previous"]["outcome"] == "done"


def test_waiters_learn_at_once_that_it_is_done(alice, bob, job):
    lease = claimed(alice.claim(job, "solver"))
    with Callers() as callers:
        waiters = [callers.send(bob.claim, job, f"waiter-{number}", wait_seconds=20) for number in range(5)]
        eventually(lambda: held(bob.claim(job, "x"))["waiting"], lambda seen: seen == 5, within=10)
        ok(alice.release_job(job, lease["lease_id"], outcome="done", result=RESULT))
        assert [done(waiter.result(10)[0])["result"] for waiter in waiters] == [RESULT] * 5


def test_a_failed_job_is_free_and_the_next_owner_learns_it(alice, bob, job):
    lease = claimed(alice.claim(job, "solver"))
    ok(alice.release_job(job, lease["lease_id"], outcome="failed", result={"error": "no disk"}))
    assert claimed(bob.claim(job))["previous"]["outcome"] == "failed"


def test_done_jobs_are_listed_apart(alice, bob):
    prefix = fresh("list")
    names = [f"{prefix}/{number}" for number in range(3)]
    leases = {name: claimed(alice.claim(name)) for name in names}
    for name in names[:2]:
        ok(alice.release_job(name, leases[name]["lease_id"], outcome="done", result=name))
    assert [job["job_id"] for job in bob.jobs(f"?prefix={prefix}")["jobs"]] == names[2:]
    page = bob.jobs(f"?prefix={prefix}&state=done&limit=1")
    assert [(job["job_id"], job["status"], job["result"]) for job in page["jobs"]] == [(names[0], "done", names[0])]
    following = page["agent_contract"]["next_actions"][0]["endpoint"]
    assert [job["job_id"] for job in ok(bob.get(following))["jobs"]] == [names[1]]


def test_a_lock_of_that_name_is_free_and_clears_it(alice, finished):
    lease = acquired(alice.acquire(finished))
    alice.release(finished, lease["lease_id"])
    claimed(alice.claim(finished))


def test_a_second_release_says_that_it_was_released(alice, job):
    lease = claimed(alice.claim(job, "solver"))
    ok(alice.release_job(job, lease["lease_id"], outcome="done"))
    assert problem(alice.release_job(job, lease["lease_id"]), 409, "lease_lost")["ended"] == "done"
    body = problem(alice.heartbeat(job, lease["lease_id"]), 409, "lease_lost")
    assert "already" in body["agent_contract"]["next_actions"][0]["description"]


def test_a_former_holder_of_work_that_is_done_is_told_to_stop(alice, bob, job):
    first = claimed(alice.claim(job, "slow", ttl_seconds=1))
    second = eventually(lambda: ok(bob.claim(job, "fast")), lambda seen: seen["status"] == "claimed", within=5)
    ok(bob.release_job(job, second["lease_id"], outcome="done"))
    lost(alice.heartbeat(job, first["lease_id"]))


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"outcome": "finished"}, "/outcome"),
        ({"result": 1}, "/result"),
        ({"outcome": "done", "done_for_seconds": 0}, "/done_for_seconds"),
    ],
)
def test_a_wrong_outcome_is_refused_and_the_job_stays_held(alice, job, fields, pointer):
    lease = claimed(alice.claim(job))
    assert pointers(problem(alice.release_job(job, lease["lease_id"], **fields), 400, "invalid_request")) == {pointer}
    assert alice.owner_of(job)["status"] == "claimed"


def test_a_result_that_is_too_large_is_refused(alice, job):
    lease = claimed(alice.claim(job))
    refused = alice.release_job(job, lease["lease_id"], outcome="done", result="x" * 65_536)
    assert pointers(problem(refused, 413, "too_large")) == {"/result"}
    assert alice.owner_of(job)["status"] == "claimed"


def test_a_state_that_does_not_exist_is_refused(alice):
    assert pointers(problem(alice.get("/v1/jobs?state=free"), 400, "invalid_request")) == {"/state"}


def test_a_repeated_release_under_a_key_gets_the_first_answer(alice, job):
    lease, once = claimed(alice.claim(job)), alice.under_key(fresh("key"))
    fields = {"outcome": "done", "result": RESULT}
    first = once.release_job(job, lease["lease_id"], **fields)
    again = once.release_job(job, lease["lease_id"], **fields)
    assert again.json == first.json
