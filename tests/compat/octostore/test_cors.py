"""Browsers: every OPTIONS is answered, no origin is allowed unless it is configured."""

import pytest

ORIGINS = ["https://octostore.io", "http://localhost:3000", "http://127.0.0.1:4173", "https://evil.example", "null"]
PATHS = ["/locks", "/locks/name/acquire", "/locks//acquire", "/sessions/nonsense", "/elections", "/nowhere", "/health"]


@pytest.mark.parametrize("path", PATHS)
def test_options_has_an_empty_response_on_every_path(anyone, path):
    answer = anyone.send("OPTIONS", path)
    assert (answer.status, answer.raw) == (200, b"")
    assert answer.words("Access-Control-Allow-Methods") >= {"get", "post", "put", "delete"}
    assert answer.words("Access-Control-Allow-Headers") >= {
        "authorization",
        "content-type",
        "x-admin-key",
        "x-octostore-admin-key",
    }
    assert answer.header("Access-Control-Max-Age") == "600"


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_preflight_allows_no_origin(anyone, origin):
    caller = anyone.with_headers(Origin=origin, Access_Control_Request_Method="POST")
    answer = caller.send("OPTIONS", "/locks/name/acquire")
    assert answer.status == 200
    assert answer.header("Access-Control-Allow-Origin") is None
    assert answer.header("Access-Control-Allow-Credentials") is None


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_cross_origin_request_is_answered_without_allow_origin(anyone, origin):
    answer = anyone.with_headers(Origin=origin).get("/health")
    assert answer.status == 200
    assert answer.header("Access-Control-Allow-Origin") is None
    assert answer.header("Access-Control-Allow-Credentials") is None


CALLS = {
    "success": ("GET", "/health"),
    "refusal": ("GET", "/locks"),
    "route miss": ("GET", "/nowhere"),
    "wrong method": ("DELETE", "/health"),
    "bad body": ("POST", "/locks/name/acquire"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_answer_exposes_its_retry_advice_and_request_id(anyone, call):
    assert anyone.send(*call).words("Access-Control-Expose-Headers") >= {"retry-after", "x-request-id"}


@pytest.mark.parametrize("call", [*CALLS.values(), ("OPTIONS", "/locks")], ids=[*CALLS, "preflight"])
def test_every_answer_has_the_vary_header(anyone, call):
    assert anyone.send(*call).words("Vary") >= {
        "origin",
        "access-control-request-method",
        "access-control-request-headers",
    }
