"""Limits of plans over HTTP: exact, shown in advance, and refused with what to do."""

import time
from datetime import UTC, datetime

import pytest

from holdfast.core.row import SECOND
from tests.compat.orchestrion.account import all_at_once
from tests.compat.orchestrion.expect import envelope, instant
from tests.compat.orchestrion.states import held, pending
from tests.http.new_accounts import buy, register_from_new_address
from tests.http.replies import done, nothing_changes
from tests.http.session_client import begin

pytest_plugins = ["tests.http.plan_servers"]

CYCLE_SECONDS = 30 * 24 * 3600


@pytest.fixture
def account(task_limited_server):
    return register_from_new_address(task_limited_server)


def read_account(account):
    """The answer of GET /v1/account."""
    return done(account.get("/v1/account"))


def refused(answer, status, code):
    body = envelope(answer, status)
    assert body["error"] == code, body
    return body


def steps(body):
    return [step["action"] for step in body["agent_contract"]["next_actions"]]


def now_microseconds():
    return int(time.time() * SECOND)


# -- the account document ----------------------------------------------------------------------------------------


def test_an_account_sees_its_plan_and_what_is_used_of_it(account):
    told = read_account(account)
    assert told["accountId"] == account.id
    assert told["plan"] == {"planId": "counted", "planName": "Counted", "expiresAt": None, "expired": False}
    assert told["usage"] == {"tasksCreated": 0, "tasksLeft": 3, "workersInUse": 0}
    assert told["limits"] == {
        "maxWorkers": 2, "maxTasksPerMonth": 3, "createsPerHour": 50, "claimsPerHour": 50, "readsPerHour": None,
        "mutationsPerHour": None, "heartbeatsPerHour": None, "retentionDays": None,
    }  # fmt: skip
    assert told["key"]["scopes"] == ["admin", "jobs", "tasks"]
    assert told["key"]["name"] == "first"
    cycle = told["cycle"]
    assert cycle["startedAt"] == told["createdAt"]
    assert instant(cycle["endsAt"]) - instant(cycle["startedAt"]) == CYCLE_SECONDS
    assert abs(instant(told["createdAt"]) - time.time()) < 10


def test_what_is_used_is_counted_as_it_happens(account):
    pending(account)
    task = held(account)
    assert read_account(account)["usage"] == {"tasksCreated": 2, "tasksLeft": 1, "workersInUse": 1}
    done(account.complete(task["id"]))
    assert read_account(account)["usage"] == {"tasksCreated": 2, "tasksLeft": 1, "workersInUse": 0}


def test_settling_an_account_tells_the_same(account):
    settled = done(account.send_json("PATCH", "/v1/account", {"requireLeaseId": True}))
    assert settled["requireLeaseId"] is True
    assert settled["limits"]["maxTasksPerMonth"] == 3
    assert read_account(account)["requireLeaseId"] is True


def test_a_server_without_plans_has_no_limits(server):
    account = register_from_new_address(server)
    told = read_account(account)
    assert told["plan"]["planId"] == "self-hosted"
    assert set(told["limits"].values()) == {None}
    assert told["usage"]["tasksLeft"] is None
    assert account.get("/v1/account").header("RateLimit") is None
    for _ in range(3):
        pending(account)
    assert read_account(account)["usage"]["tasksCreated"] == 3


def test_the_server_s_own_account_is_never_limited(task_limited_server):
    alice = task_limited_server.user("alice-1")
    for _ in range(5):
        assert alice.post("/v1/tasks", {"type": "own", "payload": {}}).status == 201
    told = done(alice.get("/v1/account"))
    assert (told["plan"]["planId"], told["accountId"]) == ("self-hosted", "default")


# -- tasks of a month --------------------------------------------------------------------------------------------


def test_one_task_too_many_is_402_and_changes_nothing(account):
    for _ in range(3):
        pending(account)
    with nothing_changes(account):
        answer = account.create()
        body = refused(answer, 402, "quota_exceeded")
    assert body["agent_contract"]["retryable"] is False
    assert steps(body)[0] == "upgrade_plan"
    assert answer.header("Retry-After") is None
    assert read_account(account)["usage"]["tasksLeft"] == 0


def test_what_is_refused_or_repeated_costs_nothing(account):
    """Neither a task of the month nor a request of the hour."""
    first = account.with_headers(Idempotency_Key="k").send_json("POST", "/v1/tasks", {"type": "work", "payload": {}})
    assert first.status == 201
    assert first.header("RateLimit").startswith('"create";r=49;')
    for _ in range(3):
        again = account.with_headers(Idempotency_Key="k").send_json(
            "POST", "/v1/tasks", {"type": "work", "payload": {}}
        )
        assert again.header("Idempotency-Replayed") == "true"
        assert again.header("RateLimit").startswith('"create";r=49;')
    pending(account, uniqueKey="u")
    assert account.create(uniqueKey="u").json["deduplicated"] is True
    assert read_account(account)["usage"]["tasksCreated"] == 2
    pending(account)
    left = account.create().header("RateLimit").split(";")[1]
    for _ in range(3):
        refusal = account.create()
        assert (refusal.status, refusal.header("RateLimit").split(";")[1]) == (402, left)
    assert account.create(uniqueKey="u").status == 200
    assert read_account(account)["usage"] == {"tasksCreated": 3, "tasksLeft": 0, "workersInUse": 0}


def test_twenty_who_want_the_last_two_tasks_at_once_get_two(account):
    pending(account)
    answers = all_at_once(20, lambda _: account.create())
    assert sorted(answer.status for answer in answers) == [201] * 2 + [402] * 18
    assert read_account(account)["usage"]["tasksCreated"] == 3


def test_a_batch_creates_what_is_left(account):
    items = [{"op": "create", "type": "work", "payload": {}}] * 5
    results = done(account.post("/v1/tasks/batch", {"items": items}))["results"]
    assert [result["status"] for result in results] == [201] * 3 + [402] * 2
    assert {result.get("error") for result in results[3:]} == {"quota_exceeded"}


# -- tasks held at once ------------------------------------------------------------------------------------------


def test_one_task_too_many_in_flight_is_429_with_the_plan(account):
    ids = [pending(account)["id"] for _ in range(3)]
    for task_id in ids[:2]:
        assert account.do("claim", task_id).status == 200
    with nothing_changes(account):
        answers = [account.claim(), account.do("claim", ids[2]), account.post("/v1/tasks/claim", {"limit": 5})]
    for answer in answers:
        body = refused(answer, 429, "max_workers_reached")
        assert answer.header("Retry-After") == "30"
        contract = body["agent_contract"]
        assert contract["retryable"] is True
        assert contract["next_actions"][0]["retry_after_seconds"] == 30
        assert contract["billing_context"] == {"plan": "counted", "workers_in_use": 2, "workers_limit": 2}
        assert answer.header("RateLimit").startswith('"claim";r=48;')
    done(account.complete(ids[0]))
    assert account.claim().status == 200


def test_a_claim_of_many_takes_what_is_free(account):
    for _ in range(3):
        pending(account)
    assert done(account.post("/v1/tasks/claim", {"limit": 10}))["count"] == 2
    assert read_account(account)["usage"]["workersInUse"] == 2


def test_parallel_claims_never_hold_more_than_the_plan_allows(account):
    for _ in range(3):
        pending(account)
    answers = all_at_once(12, lambda _: account.claim())
    assert sorted(answer.status for answer in answers) == [200] * 2 + [429] * 10
    assert read_account(account)["usage"]["workersInUse"] == 2


def test_a_session_that_ends_frees_its_places(account):
    life = begin(account)
    for _ in range(3):
        pending(account)
    bound = {"limit": 5, "session_id": life["session_id"]}
    assert done(account.post("/v1/tasks/claim", bound))["count"] == 2
    refused(account.claim(), 429, "max_workers_reached")
    done(account.send_json("DELETE", f"/v1/sessions/{life['session_id']}", {"lease_id": life["lease_id"]}))
    assert account.claim().status == 200


# -- plans that expire -------------------------------------------------------------------------------------------


def test_a_plan_that_was_bought_counts(task_limited_server, account):
    until = now_microseconds() + 3600 * SECOND
    buy(task_limited_server, account, "large", until)
    told = read_account(account)
    assert (told["plan"]["planId"], told["plan"]["expired"]) == ("large", False)
    expires = datetime.fromisoformat(told["plan"]["expiresAt"]).astimezone(UTC).timestamp()
    assert abs(expires - until / SECOND) < 0.002
    for _ in range(6):
        pending(account)
    refused(account.create(), 402, "quota_exceeded")


def test_after_a_lapse_a_refusal_asks_for_renewal(task_limited_server, account):
    buy(task_limited_server, account, "large", now_microseconds() - SECOND)
    told = read_account(account)
    assert told["plan"]["planId"] == "counted"
    assert told["plan"]["expired"] is True
    ids = [pending(account)["id"] for _ in range(3)]
    body = refused(account.create(), 402, "plan_expired")
    assert steps(body)[0] == "renew_plan"
    for task_id in ids[:2]:
        account.do("claim", task_id)
    refused(account.claim(), 402, "plan_expired")
    items = [{"op": "create", "type": "work", "payload": {}}]
    assert done(account.post("/v1/tasks/batch", {"items": items}))["results"][0]["error"] == "plan_expired"
