"""Resuming a session by name and secret: it keeps what it holds, and the previous process is refused."""

import pytest

from tests.compat.octostore.expect import assert_lasts, instant
from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.expect import claimed
from tests.http.job_client import Callers, fresh, job_path, lost, pointers
from tests.http.replies import done, events, nothing_changes, refused, refused_as_problem
from tests.http.session_client import beat, begin, claim_job, claim_task, close, path, resume, write

pytestmark = pytest.mark.waits(9)

pytest_plugins = ["tests.http.fresh_accounts"]

CONTEXT = {
    "turn": 7,
    "last_action": "wrote the plan",
    "next_action": "run the tests",
    "context_hash": "sha256:abc",
    "memory_ref": "s3://bucket/memory",
    "context": {"files": ["a.py"], "budget": 3},
}


# -- opening -----------------------------------------------------------------------------------------------------


def test_a_new_name_opens_a_session(account):
    life = begin(account, "agent-7", ttl_seconds=30, **CONTEXT)
    assert (life["status"], life["name"], life["generation"], life["lane"]) == ("opened", "agent-7", 1, False)
    assert_lasts(life["expires_at"], 30)
    assert (life["ttl_seconds"], life["heartbeat_every_seconds"]) == (30, 10)
    assert {name: life[name] for name in CONTEXT} == CONTEXT
    assert life["context_version"] == 1
    assert life["secret"]
    assert life["lease_id"] != life["secret"]


def test_a_session_lasts_two_minutes_by_default(account):
    assert_lasts(begin(account)["expires_at"], 120)


def test_anybody_in_the_account_may_look_at_it(account):
    life = begin(account, **CONTEXT)
    seen = done(account.get(path(life)))
    assert seen["status"] == "live"
    assert {name: seen[name] for name in CONTEXT} == CONTEXT
    assert not seen.keys() & {"secret", "lease_id", "token"}
    (listed,) = done(account.get("/v1/sessions"))["sessions"]
    assert (listed["session_id"], listed["status"], listed["context"]) == (
        life["session_id"],
        "live",
        CONTEXT["context"],
    )


def test_a_key_bound_to_some_names_sees_and_touches_only_what_it_opened(account):
    made = done(account.post("/v1/keys", {"name": "x", "scopes": ["jobs", "tasks"], "prefix": "web/"}), 201)
    bound = Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})
    foreign, own = begin(account, **CONTEXT), begin(bound, "mine")
    assert [session["name"] for session in done(bound.get("/v1/sessions"))["sessions"]] == ["mine"]
    assert done(bound.get(path(own)))["name"] == "mine"
    absent = bound.get("/v1/sessions/00000000-0000-4000-8000-000000000000")
    told = bound.get(path(foreign))
    assert (told.status, told.json["error"]) == (absent.status, absent.json["error"]) == (404, "session_not_found")
    for answer in (beat(bound, foreign), write(bound, foreign, turn=1), close(bound, foreign)):
        assert answer.status == 404
    assert {session["name"] for session in done(account.get("/v1/sessions"))["sessions"]} == {"me", "mine"}


def test_the_list_has_pages(account):
    names = {f"agent-{number}" for number in range(5)}
    for name in names:
        begin(account, name)
    account.open_session()  # a session without a name is not listed here
    seen, cursor = [], ""
    while cursor is not None:
        body = done(account.get(f"/v1/sessions?limit=2{cursor}"))
        seen += [life["name"] for life in body["sessions"]]
        cursor = body["nextCursor"] and f"&cursor={body['nextCursor']}"
    assert sorted(seen) == sorted(names)


# -- resuming ----------------------------------------------------------------------------------------------------


def test_the_secret_gives_everything_back_under_new_leases_and_larger_tokens(account):
    life = begin(account, **CONTEXT)
    task, job = claim_task(account, life, payload={"n": 1}), claim_job(account, life)
    done(account.do("heartbeat", task["id"], checkpoint={"page": 3}, note="half way"))
    again = resume(account, life)
    assert (again["status"], again["generation"], again["session_id"]) == ("resumed", 2, life["session_id"])
    assert {name: again[name] for name in CONTEXT} == CONTEXT
    assert "secret" not in again, "it has not changed"
    ((task_again,), (job_again,)) = again["tasks"], again["jobs"]
    assert (task_again["id"], task_again["payload"]) == (task["id"], {"n": 1})
    assert (task_again["checkpoint"], task_again["note"]) == ({"page": 3}, "half way")
    assert job_again["job_id"] == job["job_id"]
    assert task_again["leaseId"] != task["leaseId"]
    assert job_again["lease_id"] != job["lease_id"]
    assert min(again["token"], task_again["fencingToken"], job_again["token"]) > max(
        life["token"], task["fencingToken"], job["token"]
    )
    done(account.do("complete", task["id"], lease_id=task_again["leaseId"], fencing_token=task_again["fencingToken"]))
    done(account.post(job_path(job["job_id"], "/release"), {"lease_id": job_again["lease_id"]}))
    done(close(account, again))


def test_the_previous_process_of_a_session_is_refused_everywhere(account):
    life = begin(account)
    task, job = claim_task(account, life), claim_job(account, life)
    again = resume(account, life)
    with nothing_changes(account):
        for answer in (beat(account, life), write(account, life, turn=1), close(account, life)):
            body = refused_as_problem(answer, 409, "lease_lost")
            assert body["held_since"] == again["opened_at"]
            assert body["agent_contract"]["next_actions"][0]["action"] == "stop_work"
        for verb in ("heartbeat", "complete", "fail", "release"):
            refused(account.do(verb, task["id"], lease_id=task["leaseId"]), 409, "lease_superseded")
        for verb in ("/heartbeat", "/release"):
            lost(account.post(job_path(job["job_id"], verb), {"lease_id": job["lease_id"]}))
    done(beat(account, again))


def test_resuming_starts_every_lease_again(account):
    life = begin(account, ttl_seconds=300)
    claim_task(account, life, leaseDurationSeconds=60)
    claim_job(account, life, ttl_seconds=50)
    again = resume(account, life, ttl_seconds=200)
    assert_lasts(again["expires_at"], 200)
    assert_lasts(again["tasks"][0]["leaseExpiresAt"], 60)
    assert_lasts(again["jobs"][0]["expires_at"], 50)


def test_of_many_who_resume_at_once_the_last_one_holds_everything(account):
    life = begin(account)
    task = claim_task(account, life)
    with Callers() as callers:
        sent = [callers.send(account.post, "/v1/sessions", {"name": "me", "secret": life["secret"]}) for _ in range(6)]
        lives = sorted((done(future.result(10)[0]) for future in sent), key=lambda life: life["generation"])
    assert [again["generation"] for again in lives] == list(range(2, 8))
    tokens = [again["tasks"][0]["fencingToken"] for again in lives]
    assert tokens == sorted(set(tokens))
    for former in lives[:-1]:
        refused_as_problem(beat(account, former), 409, "lease_lost")
        refused(account.do("complete", task["id"], lease_id=former["tasks"][0]["leaseId"]), 409, "lease_superseded")
    done(account.do("complete", task["id"], lease_id=lives[-1]["tasks"][0]["leaseId"]))


def test_resuming_may_change_the_context(account):
    life = begin(account, **CONTEXT)
    again = resume(account, life, turn=8, context={"new": True})
    assert (again["turn"], again["context"], again["context_version"]) == (8, {"new": True}, 2)
    assert again["last_action"] == CONTEXT["last_action"], "what is not mentioned stays"


@pytest.mark.parametrize("secret", [None, "", "wrong", "0" * 64])
def test_a_live_session_is_not_resumed_without_its_secret(account, secret):
    life = begin(account)
    task = claim_task(account, life)
    with nothing_changes(account):
        body = refused_as_problem(account.post("/v1/sessions", {"name": "me", "secret": secret}), 409, "session_taken")
    assert instant(body["expires_at"]) == instant(life["expires_at"])
    done(account.do("complete", task["id"], lease_id=task["leaseId"]))


def test_the_lease_id_is_not_the_secret(account):
    life = begin(account)
    refused_as_problem(account.post("/v1/sessions", {"name": "me", "secret": life["lease_id"]}), 409, "session_taken")
    refused_as_problem(account.post(path(life, "/heartbeat"), {"lease_id": life["secret"]}), 409, "lease_lost")


def test_a_name_belongs_to_the_key_that_used_it_first(alice, bob):
    """Two keys of one account: not even the secret helps, nor the end of the session."""
    name = fresh()
    life = begin(alice, name)
    for _ in range(2):
        for fields in ({}, {"secret": life["secret"]}):
            refused_as_problem(bob.post("/v1/sessions", {"name": name, **fields}), 409, "session_taken")
        refused_as_problem(beat(bob, life), 404, "session_not_found")
        close(alice, life)


# -- heartbeat ---------------------------------------------------------------------------------------------------


def test_a_heartbeat_renews_the_session_and_all_that_it_holds(account):
    life = begin(account, ttl_seconds=100)
    task, job = claim_task(account, life, leaseDurationSeconds=60), claim_job(account, life, ttl_seconds=50)
    renewed = done(beat(account, life))
    assert renewed["status"] == "live"
    assert renewed["expires_at"] > life["expires_at"]
    assert renewed["jobs"][0]["expires_at"] > job["expires_at"]
    task_now = done(account.read_task(task["id"]))
    assert task_now["leaseExpiresAt"] > task["leaseExpiresAt"]
    assert int(instant(renewed["tasks"][0]["leaseExpiresAt"])) == int(instant(task_now["leaseExpiresAt"]))
    assert_lasts(renewed["expires_at"], 100)
    assert_lasts(task_now["leaseExpiresAt"], 60)
    assert_lasts(renewed["jobs"][0]["expires_at"], 50)
    done(account.do("complete", task["id"], lease_id=task["leaseId"]))
    done(account.post(job_path(job["job_id"], "/release"), {"lease_id": job["lease_id"]}))
    empty = done(beat(account, life))
    assert (empty["tasks"], empty["jobs"]) == ([], [])


def test_a_heartbeat_leaves_what_others_hold_alone(account):
    life, other = begin(account), begin(account, "other")
    task = claim_task(account, other)
    done(beat(account, life))
    assert done(account.read_task(task["id"]))["leaseExpiresAt"] == task["leaseExpiresAt"]


def test_a_heartbeat_may_carry_the_context(account):
    life = begin(account)
    renewed = done(beat(account, life, turn=3, next_action="sleep"))
    assert (renewed["turn"], renewed["next_action"], renewed["context_version"]) == (3, "sleep", 1)
    assert done(beat(account, life))["context_version"] == 1, "without news it is not written"


@pytest.mark.parametrize("verb", ["/heartbeat", "/context"])
def test_only_the_newest_generation_may_write(account, verb):
    life = begin(account)
    with nothing_changes(account):
        assert pointers(refused_as_problem(account.post(path(life, verb), {}), 400, "invalid_request")) == {"/lease_id"}
        refused_as_problem(account.post(path(life, verb), {"lease_id": "wrong"}), 409, "lease_lost")


# -- the end -----------------------------------------------------------------------------------------------------


def test_ending_a_session_gives_everything_back_each_with_an_event(account):
    life = begin(account, **CONTEXT)
    task, job = claim_task(account, life), claim_job(account, life)
    answer = close(account, life)
    body = done(answer)
    assert (body["status"], body["tasks"], body["jobs"]) == ("ended", [], [])
    told = events(account, f"request_id={answer.header('X-Request-Id')}")
    assert [event["kind"] for event in told] == ["session.ended", "lease.released", "task.released"]
    assert claimed(account.claim())["previousAttempt"]["outcome"] == "session_ended"
    assert (
        done(account.post(job_path(job["job_id"], "/claim"), {"owner": "next"}))["previous"]["outcome"]
        == "session_ended"
    )
    refused(account.do("complete", task["id"], lease_id=task["leaseId"]), 409, "lease_superseded")
    lost(account.post(job_path(job["job_id"], "/heartbeat"), {"lease_id": job["lease_id"]}))


def test_an_ended_session_can_be_read_and_its_name_be_opened_again(account):
    life = begin(account, **CONTEXT)
    done(close(account, life))
    seen = done(account.get(path(life)))
    assert seen["status"] == "ended"
    assert {name: seen[name] for name in CONTEXT} == CONTEXT
    refused_as_problem(beat(account, life), 410, "session_expired")
    again = begin(account, status=200)
    assert (again["status"], again["generation"], again["session_id"]) == ("resumed", 2, life["session_id"])
    assert {name: again[name] for name in CONTEXT} == CONTEXT
    assert again["secret"] != life["secret"]
    refused_as_problem(account.post("/v1/sessions", {"name": "me", "secret": life["secret"]}), 409, "session_taken")
    refused_as_problem(beat(account, life), 409, "lease_lost")
    done(beat(account, again))


def test_resuming_an_ended_session_keeps_its_secret(account):
    life = begin(account)
    done(close(account, life))
    assert "secret" not in resume(account, life)


def test_a_session_can_be_ended_without_its_lease_id_by_its_owner(account):
    life = begin(account)
    assert done(account.delete(path(life)))["status"] == "ended"


def test_an_expired_session_releases_all_it_held(expired_session):
    account, life = expired_session.account, expired_session.session
    seen = done(account.get(path(life)))
    assert (seen["status"], seen["tasks"], seen["jobs"], seen["turn"]) == ("expired", [], [], 3)
    assert done(account.get(f"/v1/jobs/{expired_session.job}"))["status"] == "free"
    idle = done(account.read_task(expired_session.tasks["idle"]["id"]))
    assert (idle["status"], idle["attemptCount"], idle["previousAttempt"]["outcome"]) == ("pending", 1, "expired")
    assert idle["previousAttempt"]["reason"] == "session expired"
    refused_as_problem(beat(account, life), 410, "session_expired")
    late = account.do("complete", idle["id"], lease_id=expired_session.tasks["idle"]["leaseId"])
    refused(late, 409, "lease_expired")


def test_a_session_expires_within_a_second_with_all_its_events_at_once(expired_session):
    told = events(expired_session.account, "kind=session.expired")
    assert [event["subject"] for event in told] == [f"session:{expired_session.session['session_id']}"]
    late = instant(told[0]["at"]) - instant(expired_session.session["expires_at"])
    assert 0 <= late < 1
    with_it = [event for event in events(expired_session.account) if event["at"] == told[0]["at"]]
    assert sorted(event["kind"] for event in with_it) == [
        "lease.released", "session.expired", "task.cancelled", "task.dead_lettered", "task.expired", "task.expired",
        "task.expired",
    ]  # fmt: skip


def test_another_session_is_not_touched(expired_session):
    assert done(expired_session.account.get(path(expired_session.other_session)))["status"] == "live"
    other = done(expired_session.account.read_task(expired_session.tasks["of another"]["id"]))
    assert (other["status"], other["sessionId"]) == ("claimed", expired_session.other_session["session_id"])
