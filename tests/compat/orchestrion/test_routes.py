"""Paths, methods, request ids and health: checks that come before the operation."""

import pytest

from tests.compat.orchestrion.account import BY_ID
from tests.compat.orchestrion.expect import ABSENT, MILLISECONDS, created, envelope, page, refused, success

NOWHERE = [
    "GET /v1/nothing",
    "POST /v1/task",
    "GET /v1/tasks/",
    f"GET /v1/tasks/{ABSENT}/",
    f"POST /v1/tasks/{ABSENT}/explode",
    f"POST /v1/tasks/{ABSENT}/claim/again",
    f"GET /v1/tasks/{ABSENT}/a/b/c",
    "POST /v1/keyring",
    "POST /v1/keys/register/now",
    "GET /v1/Tasks",
]


@pytest.mark.parametrize("call", NOWHERE)
def test_an_unknown_path_is_not_found_and_points_to_the_list(account, call):
    refused(account.send(*call.split()), 404, "not_found")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_registering_with_a_wrong_method_advises_to_register(anyone, method):
    answer = anyone.send(method, "/v1/keys/register")
    refused(answer, 405, "wrong_method")
    assert answer.words("Allow") - {"options"} == {"post"}


WRONG_METHODS = {
    "PUT /v1/tasks": {"get", "post"},
    "DELETE /v1/tasks": {"get", "post"},
    f"DELETE /v1/tasks/{ABSENT}": {"get"},
    f"POST /v1/tasks/{ABSENT}": {"get"},
    f"PATCH /v1/tasks/{ABSENT}": {"get"},
    **{f"GET /v1/tasks/{ABSENT}/{verb}": {"post"} for verb in BY_ID},
    f"PUT /v1/tasks/{ABSENT}/complete": {"post"},
}


@pytest.mark.parametrize(("call", "allowed"), WRONG_METHODS.items(), ids=WRONG_METHODS)
def test_a_wrong_method_is_refused_with_allow_and_without_advice_to_register(account, call, allowed):
    answer = account.send(*call.split())
    body = envelope(answer, 405)
    assert answer.words("Allow") - {"head", "options"} == allowed
    assert "authenticate" not in {step["action"] for step in body["agent_contract"]["next_actions"]}


def test_every_answer_has_a_unique_request_id(account, anyone):
    answers = [
        account.create(),
        account.create(),
        account.claim(),
        account.list(),
        account.read_task(ABSENT),
        anyone.get("/v1/tasks"),
        anyone.get("/v1/nothing"),
        anyone.post("/v1/keys/register"),
        anyone.get("/v1/keys/register"),
    ]
    assert len({answer.header("X-Request-Id") for answer in answers}) == len(answers)


UNREADABLE = {
    "cut": b'{"type": "work", "payload": {',
    "no JSON": b"type=work&payload=1",
    "not UTF-8": b'{"type": "work", "payload": {"a": "\xff"}}',
    "a list": b"[]",
    "a string": b'"work"',
    "null": b"null",
    "two documents": b'{"type": "work", "payload": {}} {}',
    "NaN": b'{"type": "work", "payload": {"a": NaN}}',
    "Infinity": b'{"type": "work", "payload": {"a": -Infinity}}',
    "U+0000": b'{"type": "work", "payload": {"a": "\\u0000"}}',
    "U+0000 in a name": b'{"type": "work", "payload": {"\\u0000": 1}}',
    "half a surrogate": b'{"type": "work", "payload": {"a": "\\ud800"}}',
    "nothing": b"",
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_a_body_that_cannot_be_read_creates_nothing(account, body):
    refused(account.send("POST", "/v1/tasks", body, Content_Type="application/json"), 400, "invalid_request")
    assert page(account.list())["tasks"] == []


@pytest.mark.parametrize("verb", ["claim", "complete", "fail"])
def test_a_body_that_cannot_be_read_changes_nothing(account, verb):
    made = created(account.create())
    for body in (b"{", b"[]", b'"x"'):
        path = f"/v1/tasks/{made['id']}/{verb}"
        refused(account.send("POST", path, body, Content_Type="application/json"), 400, "invalid_request")
    assert success(account.read_task(made["id"])) == made


def test_health_reports_both_background_jobs_without_a_contract(anyone):
    answer = anyone.get("/health")
    assert answer.status == 200
    body = answer.json
    assert body["status"] == "ok"
    assert "agent_contract" not in body
    expiry, cleanup = body["leaseExpiryJob"], body["retentionCleanupJob"]
    assert (expiry["healthy"], cleanup["healthy"]) == (True, True)
    assert MILLISECONDS.fullmatch(expiry["lastRunAt"])
    assert type(expiry["staleSec"]) is int
    assert 0 <= expiry["staleSec"] < 90
    # The cleanup runs once a minute, so it may not have run yet.
    assert (cleanup["lastRunAt"] is None) == (cleanup["staleSec"] is None)
