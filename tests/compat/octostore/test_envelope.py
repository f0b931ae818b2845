"""Routes, methods, request ids and content types: checks that come before the operation."""

import json
import re

import pytest

from tests.compat.octostore.expect import ABSENT_LEASE, REQUEST_ID, acquired, malformed, no_such_route, refused, success

MISSING = [
    "/nowhere",
    "/locks/",
    "/locks//",
    "/locks/name/",
    "/locks/name/acquire/",
    "/locks/name//acquire",
    "/locks/name/steal",
    "/locks/a/b",
    "/locks/a/b/c",
    "//locks",
    "/Locks",
    "/lock",
    "/sessions/",
    f"/sessions/{ABSENT_LEASE}/",
    f"/sessions/{ABSENT_LEASE}/close",
    f"/sessions/{ABSENT_LEASE}/keepalive/",
    "/elections/",
    "/elections/some-room/",
    "/elections/some-room/win",
    "/health/",
    "/status/",
]


@pytest.mark.parametrize("path", MISSING)
def test_an_unknown_path_is_404_before_authentication(anyone, alice, path):
    no_such_route(anyone.get(path))
    no_such_route(alice.post(path, {}))


WRONG_METHODS = {
    "PATCH /locks": {"GET"},
    "POST /locks": {"GET"},
    "DELETE /locks/name": {"GET"},
    "POST /locks/name": {"GET"},
    "GET /locks/name/acquire": {"POST"},
    "PUT /locks/name/acquire": {"POST"},
    "GET /locks//acquire": {"POST"},
    "DELETE /locks/name/release": {"POST"},
    "GET /locks/name/renew": {"POST"},
    "GET /locks/name/acl": {"PUT"},
    "POST /locks/name/acl": {"PUT"},
    "GET /sessions": {"POST"},
    f"POST /sessions/{ABSENT_LEASE}": {"GET", "DELETE"},
    "PATCH /sessions/nonsense": {"GET", "DELETE"},
    f"GET /sessions/{ABSENT_LEASE}/keepalive": {"POST"},
    "GET /elections": {"POST"},
    "DELETE /elections/some-room": {"GET"},
    "GET /elections/some-room/campaign": {"POST"},
    "PUT /elections/some-room/renew": {"POST"},
    "DELETE /elections/some-room/resign": {"POST"},
    "POST /health": {"GET"},
    "DELETE /status": {"GET"},
}


@pytest.mark.parametrize(("call", "allowed"), WRONG_METHODS.items(), ids=WRONG_METHODS)
def test_a_wrong_method_is_405_before_authentication(anyone, call, allowed):
    answer = anyone.send(*call.split())
    malformed(answer, 405)
    assert {word.upper() for word in answer.words("Allow")} - {"HEAD", "OPTIONS"} == allowed


# Paths that are not UTF-8, repeated query parameters.


@pytest.mark.parametrize("path", ["/locks/%FF", "/locks/a%C3", "/locks/%ED%A0%80"], ids=["byte", "cut", "surrogate"])
def test_a_name_that_is_not_utf_8_is_refused_before_authentication(anyone, alice, path):
    for caller in (anyone, alice):
        malformed(caller.get(path), 400)
        malformed(caller.post(f"{path}/acquire", {}), 400)


def test_a_name_that_is_no_text_is_reported_before_a_missing_body(anyone):
    malformed(anyone.post("/locks/%FF/acquire"), 400)


@pytest.mark.parametrize("query", ["prefix=a&prefix=b", "prefix=a&prefix=a", "prefix=&x=1&prefix="])
def test_a_repeated_prefix_is_refused(anyone, alice, query):
    malformed(alice.get(f"/locks?{query}"), 400)
    malformed(anyone.get(f"/locks?{query}"), 400)


# Request ids.

ANSWERS = {
    "success": lambda caller: caller.get("/health"),
    "refusal": lambda caller: caller.get("/locks"),
    "route miss": lambda caller: caller.get("/nowhere"),
    "wrong method": lambda caller: caller.delete("/health"),
    "bad body": lambda caller: caller.post("/locks/name/acquire"),
    "preflight": lambda caller: caller.send("OPTIONS", "/locks"),
    "head": lambda caller: caller.send("HEAD", "/health"),
}


@pytest.mark.parametrize("ask", ANSWERS.values(), ids=ANSWERS)
def test_every_answer_has_a_request_id_of_the_server(anyone, ask):
    mine = f"req_{'0' * 32}"
    ids = {ask(anyone.with_headers(X_Request_Id=mine)).header("X-Request-Id") for _ in range(3)}
    assert len(ids - {mine}) == 3
    assert all(REQUEST_ID.fullmatch(request_id) for request_id in ids)


def test_an_empty_answer_has_a_request_id_too(alice, session):
    answer = alice.delete(f"/sessions/{session}")
    assert REQUEST_ID.fullmatch(answer.header("X-Request-Id"))


# HEAD.


@pytest.mark.parametrize("path", ["/health", "/status", "/locks", "/locks/name", "/elections/some-room"])
def test_head_answers_like_get_without_a_body(alice, path):
    answer = alice.send("HEAD", path)
    assert (answer.status, answer.raw) == (200, b"")
    assert answer.header("Content-Type") == "application/json"


def test_head_works_on_sessions(alice, session):
    assert alice.send("HEAD", f"/sessions/{session}").status == 200


def test_head_is_refused_like_get(anyone):
    assert anyone.send("HEAD", "/locks").status == 401
    assert anyone.send("HEAD", "/nowhere").status == 404
    assert anyone.send("HEAD", "/locks/name/acquire").status == 405


# Bodies of answers.


def test_answers_are_compact_json(alice, bob, anyone, lock, election):
    answers = [
        alice.acquire(lock, metadata="a note"),
        bob.acquire(lock),
        alice.read_lock(lock),
        alice.get(f"/locks?prefix={lock}"),
        alice.open_session(),
        anyone.campaign(election),
        anyone.get("/health"),
        anyone.get("/status"),
        anyone.get("/locks"),
        anyone.get("/nowhere"),
    ]
    for answer in answers:
        outside_strings = re.sub(rb'"(\\.|[^"\\])*"', b'""', answer.raw)
        assert not re.search(rb"\s", outside_strings), answer.raw
        json.loads(answer.raw)


def test_no_ordinary_answer_carries_retry_advice_in_a_header(alice, bob, lock):
    acquired(alice.acquire(lock))
    for answer in (bob.acquire(lock), alice.get("/nowhere"), alice.release(lock, ABSENT_LEASE)):
        assert answer.header("Retry-After") is None


def test_a_body_where_none_is_read_is_ignored(alice, anyone, lock, election, session):
    noise = b"\xff{not json"
    success(alice.send("POST", f"/sessions/{session}/keepalive", noise))
    success(alice.send("GET", f"/sessions/{session}", noise))
    success(alice.send("GET", f"/locks/{lock}", noise))
    success(alice.send("GET", "/locks", noise, Content_Type="application/json"))
    success(anyone.send("POST", "/elections", noise, Content_Type="text/plain"), 201)
    success(anyone.send("GET", f"/elections/{election}", noise))
    assert alice.send("DELETE", f"/sessions/{session}", noise).status == 204


def test_a_lease_id_that_is_missing_wrong_or_malformed_has_three_different_answers(alice, lock):
    refused(alice.release(lock, ABSENT_LEASE), 404, "lease_not_current")
    acquired(alice.acquire(lock))
    refused(alice.release(lock, ABSENT_LEASE), 400, "lease_not_current")
    malformed(alice.release(lock, "nonsense"), 422)
