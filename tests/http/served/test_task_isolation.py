"""Tasks and sessions of another account are answered exactly like absent ones."""

import uuid

import pytest

from tests.compat.orchestrion.expect import ABSENT, created
from tests.compat.orchestrion.states import held, pending
from tests.http.job_client import fresh, job_path, problem
from tests.http.replies import done, events, nothing_changes, refused, refused_as_problem
from tests.http.session_client import begin

pytest_plugins = ["tests.http.fresh_accounts"]

TASK_ROUTES = {
    "events": lambda caller, task: caller.get(f"/v1/tasks/{task}/events"),
    "attempts": lambda caller, task: caller.get(f"/v1/tasks/{task}/attempts"),
    "wait": lambda caller, task: caller.get(f"/v1/tasks/{task}?wait_seconds=30"),
    "release": lambda caller, task: caller.do("release", task),
    "snooze": lambda caller, task: caller.do("snooze", task, seconds=5),
    "resolve": lambda caller, task: caller.do("resolve", task),
    "force": lambda caller, task: caller.do("cancel", task, mode="force"),
}
SESSION_ROUTES = {
    "read": lambda caller, session, proof: caller.get(f"/v1/sessions/{session}"),
    "heartbeat": lambda caller, session, proof: caller.post(f"/v1/sessions/{session}/heartbeat", proof),
    "context": lambda caller, session, proof: caller.post(f"/v1/sessions/{session}/context", {**proof, "turn": 1}),
    "close": lambda caller, session, proof: caller.send_json("DELETE", f"/v1/sessions/{session}", proof),
    "close without proof": lambda caller, session, proof: caller.delete(f"/v1/sessions/{session}"),
}


def comparable(body):
    """A refusal without the fields that differ in every request."""
    return {name: value for name, value in body.items() if name not in {"request_id", "instance", "agent_contract"}}


@pytest.mark.parametrize("route", TASK_ROUTES)
def test_a_task_of_another_account_is_answered_like_an_absent_one(account, stranger, route):
    theirs = held(stranger)
    with nothing_changes(stranger):
        foreign = refused(TASK_ROUTES[route](account, theirs["id"]), 404, "task_not_found")
        absent = refused(TASK_ROUTES[route](account, ABSENT), 404, "task_not_found")
    assert comparable(foreign) == comparable(absent)


@pytest.mark.parametrize("verb", ["heartbeat", "complete", "fail", "release", "snooze", "cancel", "requeue", "resolve"])
def test_an_item_about_a_foreign_task_is_refused_even_with_its_lease_id(account, stranger, verb):
    theirs = held(stranger)
    fields = {"seconds": 1} if verb == "snooze" else {}
    proof = {} if verb in {"cancel", "requeue", "resolve"} else {"lease_id": theirs["leaseId"]}
    items = [{"op": verb, "id": task, **proof, **fields} for task in (theirs["id"], ABSENT)]
    with nothing_changes(stranger):
        foreign, absent = done(account.post("/v1/tasks/batch", {"items": items}))["results"]
    assert (foreign["status"], foreign["error"]) == (404, "task_not_found")
    assert comparable(foreign) == comparable(absent)


@pytest.mark.parametrize("route", SESSION_ROUTES)
def test_a_session_of_another_account_is_answered_like_an_absent_one(account, stranger, route):
    life = begin(stranger)
    proof = {"lease_id": life["lease_id"]}
    with nothing_changes(stranger):
        foreign = refused_as_problem(
            SESSION_ROUTES[route](account, life["session_id"], proof), 404, "session_not_found"
        )
        absent = refused_as_problem(SESSION_ROUTES[route](account, str(uuid.uuid4()), proof), 404, "session_not_found")
    assert comparable(foreign) == comparable(absent)


def test_the_same_name_is_another_session_in_another_account(account, stranger):
    mine, theirs = begin(account, "agent", turn=1), begin(stranger, "agent", turn=2)
    assert mine["session_id"] != theirs["session_id"]
    assert [life["turn"] for life in done(account.get("/v1/sessions"))["sessions"]] == [1]


def test_the_secret_of_a_session_of_another_account_is_refused(account, stranger):
    theirs = begin(stranger, "agent")
    begin(account, "agent")
    answer = account.post("/v1/sessions", {"name": "agent", "secret": theirs["secret"]})
    refused_as_problem(answer, 409, "session_taken")


def test_a_job_cannot_be_claimed_for_a_session_of_another_account(account, stranger):
    life = begin(stranger)
    bound = {"owner": "me", "session_id": life["session_id"]}
    problem(account.post(job_path(fresh(), "/claim"), bound), 404, "session_not_found")


def test_the_same_job_is_another_one_in_another_account(account, stranger):
    job = fresh()
    assert done(account.post(job_path(job, "/claim"), {"owner": "me"}))["status"] == "claimed"
    assert done(stranger.post(job_path(job, "/claim"), {"owner": "me"}))["status"] == "claimed"
    assert [shown["job_id"] for shown in done(stranger.get("/v1/jobs"))["jobs"]] == [job]


def test_logs_counts_and_lists_contain_only_the_account_s_own(account, stranger):
    pending(stranger, tag="theirs", uniqueKey="theirs")
    begin(stranger)
    assert [event["seq"] for event in events(account)] == [1, 2]
    assert done(account.get("/v1/tasks/counts"))["types"] == {}
    assert done(account.list("tag=theirs"))["tasks"] == []
    assert done(account.list("key=theirs"))["tasks"] == []
    assert done(account.get("/v1/sessions"))["sessions"] == []
    assert events(account, f"request_id={events(stranger)[-1]['request_id']}") == []


def test_unique_keys_of_two_accounts_are_separate(account, stranger):
    assert created(stranger.create(uniqueKey="k"))["id"] != created(account.create(uniqueKey="k"))["id"]


@pytest.mark.parametrize("call", ["claim", "batch", "verb"])
def test_idempotency_keys_of_two_accounts_are_separate(account, stranger, call):
    key = fresh()

    def send(caller):
        caller = caller.with_headers(Idempotency_Key=key)
        if call == "claim":
            return caller.claim()
        if call == "batch":
            return caller.post("/v1/tasks/batch", {"items": [{"op": "create", "type": "work", "payload": {}}]})
        return caller.do("cancel", pending(caller.with_headers(Idempotency_Key=fresh()))["id"])

    for caller in (account, stranger):
        pending(caller)
        answer = send(caller)
        done(answer)
        assert answer.header("Idempotency-Replayed") is None


def test_recovery_does_not_affect_another_account(account, stranger):
    begin(stranger)
    with nothing_changes(stranger):
        assert done(account.post("/v1/recover"))["recovered"] == 0


def test_waiting_claims_get_no_work_of_others(account, stranger):
    pending(stranger)
    assert done(account.post("/v1/tasks/claim", {"wait_seconds": 0.2}))["message"] == "no_tasks"
