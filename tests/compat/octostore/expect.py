"""Assertions about responses: the fields and headers that every response must have."""

import re
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from tests.compat.octostore.wire import Answer

T = TypeVar("T")

REQUEST_ID = re.compile(r"req_[0-9a-f]{32}")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.(\d{3}|\d{6}|\d{9}))?Z")
LARGEST_TOKEN = 2**53 - 1
CLOCK_SLACK_SECONDS = 2.0

ABSENT_LEASE = "00000000-0000-4000-8000-000000000000"

LABELS = {
    "authentication_required": "Authorization header required",
    "authentication_failed": "Authentication failed",
    "forbidden": "Forbidden",
    "lock_limit_exceeded": "Lock limit exceeded",
    "invalid_ttl": "Invalid TTL",
    "invalid_lock_name": "Invalid lock name",
    "invalid_input": "Invalid input",
    "lease_not_current": "Lease is not current",
    "session_expired": "Session expired",
    "conflict": "Conflict",
    "capacity_exceeded": "Capacity exceeded",
    "rate_limited": "Rate limit exceeded",
}

EXACT_DETAILS = {
    (401, "authentication_required"): "Bearer token required",
    (401, "authentication_failed"): "Authentication failed",
    (400, "lease_not_current"): "Invalid lease ID",
    (404, "lease_not_current"): "Lease is not current",
    (410, "session_expired"): "Session expired",
}

EXPLAINED = {"forbidden", "invalid_ttl", "invalid_lock_name", "invalid_input", "conflict", "capacity_exceeded"}

LOCK_KEYS = {"name", "status", "holder_id", "fencing_token", "expires_at", "metadata"}


def success(answer: Answer, status: int = 200) -> dict[str, Any]:
    """A JSON object with the given status, well formed in everything all answers share."""
    assert answer.status == status, str(answer)
    body = json_object(answer)
    assert answer.header("Retry-After") is None
    return body


def exact(answer: Answer) -> dict[str, Any]:
    """A success whose body has only the fields of the original: no `agent_contract`."""
    assert answer.status == 200, str(answer)
    assert answer.header("Content-Type") == "application/json"
    assert_request_id(answer)
    body: dict[str, Any] = answer.json
    assert "agent_contract" not in body
    return body


def acquired(answer: Answer) -> dict[str, Any]:
    """The caller holds the lock."""
    body = success(answer)
    assert body["status"] == "acquired", body
    assert body.keys() >= {"lease_id", "fencing_token", "expires_at", "renew_after_ms", "metadata"}
    assert body["lease_id"] == str(uuid.UUID(body["lease_id"]))
    assert type(body["fencing_token"]) is int
    assert 1 <= body["fencing_token"] <= LARGEST_TOKEN
    assert_halfway(body)
    return body


def held(answer: Answer) -> dict[str, Any]:
    """Another user holds the lock: 200, without a proof of ownership."""
    body = success(answer)
    assert body["status"] == "held", body
    assert body.keys() >= {"holder_id", "expires_at", "retry_after_ms", "metadata"}
    assert not body.keys() & {"fencing_token", "lease_id", "session_id"}
    assert_wait(body["retry_after_ms"], until=body["expires_at"])
    return body


def delayed(answer: Answer) -> dict[str, Any]:
    """The lock delay has not passed: 409 without an error envelope."""
    assert answer.status == 409, str(answer)
    body = json_object(answer)
    assert body["status"] == "delayed", body
    assert body.keys() >= {"available_at", "lock_delay_seconds", "retry_after_ms"}
    assert not body.keys() & {"error", "code", "details", "request_id"}
    assert answer.header("Retry-After") is None
    assert_wait(body["retry_after_ms"], until=body["available_at"])
    return body


def released(answer: Answer) -> None:
    """The body is exactly `null`, which clients compare."""
    assert answer.status == 200, str(answer)
    assert answer.raw == b"null"
    assert answer.header("Content-Type") == "application/json"
    assert_request_id(answer)


def leads(answer: Answer) -> dict[str, Any]:
    """The caller leads."""
    body = success(answer)
    assert body["status"] == "leader", body
    assert body.keys() >= {"election_id", "leader", "leader_token", "renew_after_ms"}
    assert body["leader"].keys() >= {"candidate_id", "term", "expires_at"}
    return body


def refused(answer: Answer, status: int, code: str, label: str | None = None) -> dict[str, Any]:
    """A semantic refusal: status, code, label and the form of its details."""
    body = error_envelope(answer, status, code)
    label = label or LABELS[code]
    assert body["error"] == label
    exact = EXACT_DETAILS.get((status, code))
    if exact is not None:
        assert body["details"] == exact
    elif code in EXPLAINED:
        assert body["details"].startswith(f"{label}: "), body["details"]
    return body


def no_such_session(answer: Answer) -> dict[str, Any]:
    """The session does not exist, or belongs to another user."""
    body = refused(answer, 404, "not_found", "Session not found")
    assert body["details"] == "Session not found"
    return body


def no_such_route(answer: Answer) -> dict[str, Any]:
    body = refused(answer, 404, "not_found", "Resource not found")
    assert body["details"] == "Resource not found"
    return body


def malformed(answer: Answer, status: int) -> dict[str, Any]:
    """A refusal of a request that cannot be parsed."""
    body = error_envelope(answer, status, "invalid_input")
    assert body["error"] == "Invalid input"
    return body


def error_envelope(answer: Answer, status: int, code: str) -> dict[str, Any]:
    """The envelope of every 4xx and 5xx."""
    assert answer.status == status, str(answer)
    body = json_object(answer)
    assert body["code"] == code, body
    assert isinstance(body["error"], str)
    assert isinstance(body["details"], str)
    assert body["details"]
    assert body["request_id"] == answer.header("X-Request-Id")
    if code in {"rate_limited", "capacity_exceeded"}:
        assert 1 <= body["retry_after_ms"] <= 300_000
        assert answer.header("Retry-After") == str(body["retry_after_ms"] // 1000)
        assert body["retry_after_ms"] % 1000 == 0
    else:
        assert "retry_after_ms" not in body
        assert answer.header("Retry-After") is None
    return body


def json_object(answer: Answer) -> dict[str, Any]:
    assert answer.header("Content-Type") == "application/json"
    assert_request_id(answer)
    body = answer.json
    assert isinstance(body, dict), str(answer)
    assert_agent_contract(body, error=answer.status >= 400)
    return body


def assert_agent_contract(body: dict[str, Any], *, error: bool) -> None:
    """Every JSON object has an agent_contract; that of a refusal has at least one action."""
    contract = body["agent_contract"]
    assert contract["version"] == "1"
    assert isinstance(contract["retryable"], bool)
    assert isinstance(contract["next_actions"], list)
    assert contract["next_actions"] or not error, "an error without a next action"
    for action in contract["next_actions"]:
        assert isinstance(action["action"], str)
        assert isinstance(action["available"], bool)
        assert isinstance(action["recommended"], bool)


def assert_request_id(answer: Answer) -> None:
    assert REQUEST_ID.fullmatch(answer.header("X-Request-Id") or ""), answer.headers.items()


def assert_wait(retry_after_ms: object, *, until: str) -> None:
    """A whole number of milliseconds that agrees with the end time."""
    assert type(retry_after_ms) is int
    assert retry_after_ms >= 0
    assert abs(retry_after_ms / 1000 - max(0.0, seconds_left(until))) < CLOCK_SLACK_SECONDS


def assert_halfway(body: dict[str, Any]) -> None:
    """`renew_after_ms` is half of the remaining time, so slightly less than half of the TTL."""
    assert type(body["renew_after_ms"]) is int
    assert abs(body["renew_after_ms"] / 500 - seconds_left(body["expires_at"])) < CLOCK_SLACK_SECONDS


def assert_lasts(expires_at: str, seconds: float) -> None:
    assert abs(seconds_left(expires_at) - seconds) < CLOCK_SLACK_SECONDS, (expires_at, seconds)


def seconds_left(timestamp: str) -> float:
    return instant(timestamp) - time.time()


def instant(timestamp: str) -> float:
    """RFC 3339 in UTC, ending in Z, with 0, 3, 6 or 9 digits of fraction."""
    assert TIMESTAMP.fullmatch(timestamp), timestamp
    whole, _, fraction = timestamp[:-1].partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{fraction or 0}")


def eventually(read_lock: Callable[[], T], good: Callable[[T], bool], *, within: float, every: float = 0.02) -> T:
    """Read until the value is good, or fail with the last value."""
    deadline = time.monotonic() + within
    while True:
        observed = read_lock()
        if good(observed):
            return observed
        assert time.monotonic() < deadline, f"still {observed} after {within} s"
        time.sleep(every)
