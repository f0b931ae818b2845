"""Rate limits by class of request: shown in every answer; repeated and refused requests are not counted."""

import re

import pytest

from tests.compat.octostore.wire import Caller
from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.expect import envelope
from tests.compat.orchestrion.states import pending
from tests.http.job_client import fresh, job_path
from tests.http.new_accounts import addresses, register_from_new_address
from tests.http.replies import done, refused_as_problem

pytest_plugins = ["tests.http.plan_servers"]

LIMITS = {"create": 5, "claim": 3, "read": 40, "mutation": 8, "heartbeat": 4}
POLICY = re.compile(r'"([a-z]+)";q=(\d+);w=(\d+)')
STATE = re.compile(r'"([a-z]+)";r=(\d+);t=(\d+)')


@pytest.fixture
def account(rate_limited_server):
    return register_from_new_address(rate_limited_server)


CALLS = {
    "create": lambda account: account.create(),
    "claim": lambda account: account.post(job_path(fresh(), "/claim"), {"owner": "me"}),
    "read": lambda account: account.get("/v1/tasks"),
    "mutation": lambda account: account.post("/v1/recover"),
    "heartbeat": lambda account: account.do("heartbeat", "tsk_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
}
"""One request of each class; whether it succeeds or not, it is counted."""


def left(answer):
    """(class, remaining requests) from the headers of an answer."""
    policy, state = POLICY.fullmatch(answer.header("RateLimit-Policy")), STATE.fullmatch(answer.header("RateLimit"))
    assert policy[1] == state[1]
    assert (int(policy[2]), policy[3]) == (LIMITS[policy[1]], "3600")
    assert 0 < int(state[3]) <= 3600
    return state[1], int(state[2])


def limited(answer, name):
    """A 429 whose header and `agent_contract` contain the same number of seconds."""
    assert answer.status == 429, str(answer)
    body = answer.json
    wait = int(answer.header("Retry-After"))
    assert 0 < wait <= 3600
    assert body["error"] == "rate_limited"
    assert body["violated-policies"] == [name]
    assert body["agent_contract"]["retryable"] is True
    assert body["agent_contract"]["next_actions"][0]["retry_after_seconds"] == wait
    assert left(answer) == (name, 0)
    return body


def spend(account, name, many):
    for _ in range(many):
        assert CALLS[name](account).status != 429


@pytest.mark.parametrize("name", LIMITS)
def test_each_class_has_its_own_budget_counted_down_in_every_answer(account, name):
    for more in range(LIMITS[name] - 1, -1, -1):
        answer = CALLS[name](account)
        assert left(answer) == (name, more), str(answer)
    for _ in range(2):
        limited(CALLS[name](account), name)
    for other in LIMITS.keys() - {name}:
        assert CALLS[other](account).status != 429, other


def test_a_refusal_on_our_own_routes_is_a_problem_of_quota(account):
    spend(account, "claim", 3)
    body = limited(CALLS["claim"](account), "claim")
    assert body["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert (body["status"], body["retry_after"]) == (
        429,
        body["agent_contract"]["next_actions"][0]["retry_after_seconds"],
    )


def test_a_refusal_on_task_routes_has_their_form(account):
    spend(account, "create", 5)
    envelope(account.create(), 429)


def test_all_keys_of_an_account_share_a_budget_which_rotation_does_not_renew(account):
    made = done(account.post("/v1/keys", {"name": "two", "scopes": ["tasks"]}), 201)
    other = Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})
    spend(account, "create", 2)
    assert left(other.create()) == ("create", 2)
    rotated = done(other.post("/v1/keys/rotate"))["apiKey"]
    again = Account(account.port, {"Authorization": f"Bearer {rotated}"})
    spend(again, "create", 2)
    limited(account.create(), "create")


def test_refused_callers_are_not_counted(account):
    made = done(account.post("/v1/keys", {"name": "reader", "scopes": ["read"]}), 201)
    reader = Account(account.port, {"Authorization": f"Bearer {made['apiKey']}"})
    for _ in range(7):
        answer = reader.create()
        assert (answer.status, answer.header("RateLimit")) == (403, None)
    for _ in range(7):
        answer = Caller(account.port).post("/v1/tasks", {"type": "x", "payload": {}})
        assert (answer.status, answer.header("RateLimit")) == (401, None)
    assert left(account.create()) == ("create", 4)


def test_a_request_that_is_wrong_is_counted(account):
    assert left(account.create(priority=1000)) == ("create", 4)
    assert left(account.read_task("tsk_01ARZ3NDEKTSV4RRFFQ69G5FAV")) == ("read", 39)


def test_a_repeated_request_is_not_counted(account):
    def once():
        return account.with_headers(Idempotency_Key="k").send_json("POST", "/v1/tasks", {"type": "work", "payload": {}})

    assert left(once()) == ("create", 4)
    for _ in range(8):
        assert left(once()) == ("create", 4)


def test_a_claim_of_several_tasks_counts_each_that_it_was_granted(account):
    for _ in range(4):
        account.create()
    answer = account.claim(limit=2)
    assert (done(answer)["count"], left(answer)) == (2, ("claim", 1))
    answer = account.claim(limit=4)
    assert (done(answer)["count"], left(answer)) == (2, ("claim", 0))
    limited(account.claim(), "claim")


def test_each_lease_of_many_renewals_is_counted(account):
    lease = {"task_id": "tsk_01ARZ3NDEKTSV4RRFFQ69G5FAV", "lease_id": "01234567-89ab-4def-8123-456789abcdef"}
    assert left(account.post("/v1/heartbeats", {"leases": [lease] * 3})) == ("heartbeat", 1)
    refusal = account.post("/v1/heartbeats", {"leases": [lease] * 2})
    assert (refusal.status, refusal.json["violated-policies"]) == (429, ["heartbeat"])
    assert left(account.post("/v1/heartbeats", {"leases": [lease]})) == ("heartbeat", 0)
    refused_as_problem(account.post("/v1/heartbeats", {"leases": [lease] * 5}), 400, "invalid_request")


def test_a_claim_without_a_task_counts_as_a_read(account):
    for more in range(39, 34, -1):
        assert left(account.claim()) == ("read", more)
    pending(account)
    assert left(account.claim()) == ("claim", 2)


def test_a_claim_that_waits_without_a_task_counts_as_one_read(account):
    assert left(account.claim(wait_seconds=0.2)) == ("read", 39)


def test_a_claim_that_finds_nothing_is_refused_once_the_reads_are_used_up(account):
    spend(account, "read", 40)
    limited(account.claim(), "read")
    pending(account)
    assert account.claim().status == 200


# -- batches -----------------------------------------------------------------------------------------------------


def batch(account, *items, **headers):
    return account.with_headers(**headers).send_json("POST", "/v1/tasks/batch", {"items": items})


CREATE = {"op": "create", "type": "work", "payload": {}}
CANCEL = {"op": "cancel", "id": "tsk_01ARZ3NDEKTSV4RRFFQ69G5FAV"}


def test_each_item_of_a_batch_costs_what_it_would_have_cost_alone(account):
    assert left(batch(account, *[CREATE] * 3)) == ("create", 2)
    assert left(batch(account, *[CANCEL] * 3)) == ("mutation", 5)
    assert left(account.create()) == ("create", 1)


def test_a_batch_that_is_too_large_does_nothing_and_costs_nothing(account):
    spend(account, "mutation", 1)
    for items in ([CREATE] * 6, [CANCEL, *[CREATE] * 6], [CREATE, *[CANCEL] * 9]):
        answer = batch(account, *items)
        assert answer.status == 400, "no hour is long enough for it"
        assert answer.json["agent_contract"]["retryable"] is False
    assert done(account.get("/v1/tasks"))["tasks"] == []
    for more in range(4, -1, -1):
        assert left(account.create()) == ("create", more)
    assert left(CALLS["mutation"](account)) == ("mutation", 6)


@pytest.mark.parametrize(
    ("scarce", "items"),
    [("mutation", [CREATE, CREATE, *[CANCEL] * 8]), ("create", [CANCEL, CANCEL, *[CREATE] * 5])],
)
def test_a_batch_refused_for_one_class_costs_nothing_in_any(account, scarce, items):
    """What was charged in one class is refunded there and in no other class."""
    spend(account, scarce, 1)
    for _ in range(3):
        assert batch(account, *items).status == 429
    for name in ("create", "mutation"):
        for more in range(LIMITS[name] - 1 - (name == scarce), -1, -1):
            assert left(CALLS[name](account)) == (name, more)
        limited(CALLS[name](account), name)


def test_a_repeated_batch_costs_nothing_in_any_class(account):
    for _ in range(4):
        assert batch(account, CREATE, CANCEL, Idempotency_Key="b").status == 200
    assert left(account.create()) == ("create", 3)
    assert left(CALLS["mutation"](account)) == ("mutation", 6)


# -- without a key -----------------------------------------------------------------------------------------------


def test_ten_accounts_an_hour_for_one_address(rate_limited_server):
    caller = rate_limited_server.anyone.with_headers(CF_Connecting_IP=next(addresses))
    for more in range(9, -1, -1):
        answer = caller.post("/v1/keys/register")
        assert answer.status == 201
        assert answer.header("RateLimit-Policy") == '"registration";q=10;w=3600'
        assert answer.header("RateLimit").startswith(f'"registration";r={more};t=')
    answer = caller.post("/v1/keys/register")
    body = envelope(answer, 429)
    assert (body["error"], body["violated-policies"]) == ("rate_limited", ["registration"])
    assert int(answer.header("Retry-After")) == body["agent_contract"]["next_actions"][0]["retry_after_seconds"]
    other = rate_limited_server.anyone.with_headers(CF_Connecting_IP=next(addresses))
    assert other.post("/v1/keys/register").status == 201


def test_a_server_without_plans_does_not_limit_registration(server):
    for _ in range(12):
        answer = server.anyone.post("/v1/keys/register")
        assert (answer.status, answer.header("RateLimit")) == (201, None)
