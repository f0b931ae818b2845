"""Assertions about responses of the task API."""

import re
import time
from datetime import UTC, datetime
from typing import Any

from tests.compat.octostore.wire import Answer
from tests.compat.orchestrion import contracts
from tests.proof_size import FULL

ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
TASK_ID = re.compile(f"tsk_{ULID}")
ACCOUNT_ID = re.compile(f"acct_{ULID}")
API_KEY = re.compile(r"hf_live_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}")
REQUEST_ID = re.compile(r"req_[0-9A-Za-z]{26,32}")
MILLISECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CLOCK_SLACK_SECONDS = 10.0 if FULL else 2.0
"""How long an answer may take to arrive, among other things; at full size many tests run at the same time."""

ABSENT = "tsk_01ARZ3NDEKTSV4RRFFQ69G5FAV"

TEXTS = {"id", "type", "status"}
WHOLE_NUMBERS = {"priority", "maxAttempts", "attemptCount", "leaseDurationSeconds"}
TIMES = {"createdAt", "updatedAt"}
PERHAPS_TIMES = {"scheduledAt", "leaseExpiresAt"}
PERHAPS_TEXTS = {"failureReason", "outputId", "claimedBy"}
TASK_KEYS = TEXTS | WHOLE_NUMBERS | TIMES | PERHAPS_TIMES | PERHAPS_TEXTS | {"payload", "result", "agent_contract"}
SPELLED_TWICE = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key) for key in TASK_KEYS} - TASK_KEYS


def task(answer: Answer, status: int = 200) -> dict[str, Any]:
    """One task at top level, well formed, with exactly the contract of its state."""
    body = success(answer, status)
    assert_task(body)
    return body


def created(answer: Answer) -> dict[str, Any]:
    body = task(answer, 201)
    assert body["status"] == "pending"
    return body


def claimed(answer: Answer) -> dict[str, Any]:
    """The claim was won: the task twice, flat and wrapped, and the live contract."""
    body = success(answer)
    actual = body["agent_contract"]
    assert actual.pop("task_claimable") is True
    assert_task(body)
    assert body["status"] == "claimed"
    wrapped = body["task"]
    assert wrapped.keys() >= TASK_KEYS - {"agent_contract"}
    assert bare(wrapped) == {key: body[key] for key in bare(wrapped)}
    return body


def no_tasks(answer: Answer) -> dict[str, Any]:
    """There was nothing to claim, which is no error."""
    body = success(answer)
    assert (body["task"], body["message"]) == (None, "no_tasks")
    assert contracts.plain(body["agent_contract"]) == contracts.of_an_empty_claim()
    return body


def page(answer: Answer) -> dict[str, Any]:
    """A page of whole tasks, newest first, and a hint what to do with them."""
    body = success(answer)
    assert type(body["hasMore"]) is bool
    assert isinstance(body["nextCursor"], str) if body["hasMore"] else body["nextCursor"] is None
    for listed in body["tasks"]:
        assert_task(listed)
    ids = ids_of(body)
    assert ids == sorted(set(ids), reverse=True)
    waiting = any(listed["status"] == "pending" for listed in body["tasks"])
    advice = contracts.action(*(contracts.CLAIM if waiting else contracts.CREATE), best=True)
    assert contracts.begins_with(body["agent_contract"], contracts.contract(advice)), body["agent_contract"]
    return body


def refused(answer: Answer, status: int, code: str, task_id: str = "") -> dict[str, Any]:
    """An error with its envelope and exactly the contract of its code."""
    body = envelope(answer, status)
    assert body["error"] == code, body
    assert contracts.plain(body["agent_contract"]) == contracts.of_error(code, task_id)
    return body


def not_yet_claimable(answer: Answer, task_id: str, due: str) -> None:
    """Refused for now, with the seconds until it is due."""
    body = envelope(answer, 409)
    assert body["error"] == "not_yet_claimable", body
    wait = body["agent_contract"]["next_actions"][0]["retry_after_seconds"]
    assert contracts.plain(body["agent_contract"]) == contracts.of_error("not_yet_claimable", task_id, wait)
    assert type(wait) is int
    assert seconds_left(due) - 1 <= wait <= seconds_left(due) + 1 + CLOCK_SLACK_SECONDS


def envelope(answer: Answer, status: int) -> dict[str, Any]:
    """What all errors share."""
    assert answer.status == status, str(answer)
    body = json_object(answer)
    assert isinstance(body["error"], str)
    assert isinstance(body["message"], str)
    assert body["message"]
    assert body["request_id"] == answer.header("X-Request-Id")
    assert body["agent_contract"]["next_actions"], "an error without a next action"
    return body


def success(answer: Answer, status: int = 200) -> dict[str, Any]:
    assert answer.status == status, str(answer)
    assert answer.header("Content-Type") == "application/json"
    return json_object(answer)


def json_object(answer: Answer) -> dict[str, Any]:
    assert REQUEST_ID.fullmatch(answer.header("X-Request-Id") or ""), answer.headers.items()
    assert (answer.header("Content-Type") or "").endswith("json")
    body = answer.json
    assert isinstance(body, dict), str(answer)
    actual = body["agent_contract"]
    assert actual["version"] == "1"
    assert isinstance(actual["retryable"], bool)
    assert isinstance(actual["next_actions"], list)
    return body


def assert_task(body: dict[str, Any]) -> None:
    """Every field of the resource, in one spelling, agreeing with the others."""
    assert body.keys() >= TASK_KEYS, TASK_KEYS - body.keys()
    assert not body.keys() & SPELLED_TWICE
    assert TASK_ID.fullmatch(body["id"])
    assert all(type(body[key]) is int for key in WHOLE_NUMBERS)
    assert all(MILLISECONDS.fullmatch(body[key]) for key in TIMES)
    assert all(body[key] is None or MILLISECONDS.fullmatch(body[key]) for key in PERHAPS_TIMES)
    assert all(body[key] is None or isinstance(body[key], str) for key in PERHAPS_TEXTS)
    assert isinstance(body["payload"], dict)
    assert body["result"] is None or (isinstance(body["result"], dict) and body["status"] == "completed")
    assert body["createdAt"] <= body["updatedAt"]
    assert (body["leaseExpiresAt"] is None) == (body["status"] != "claimed")
    assert_task_contract(body)


def assert_task_contract(body: dict[str, Any]) -> None:
    actual, golden = body["agent_contract"], contracts.of_task(body)
    if body["status"] == "claimed" and not actual["lease_valid"]:
        assert contracts.begins_with(actual, golden), actual
        return
    assert contracts.plain(actual) == golden
    if body["status"] == "claimed":
        left, shown = seconds_left(body["leaseExpiresAt"]), actual["lease_expires_in_seconds"]
        assert type(shown) is int
        assert max(0, left - 1) <= shown <= min(left + CLOCK_SLACK_SECONDS, body["leaseDurationSeconds"])


def bare(body: dict[str, Any]) -> dict[str, Any]:
    """A task without its contract, which changes with the time."""
    return {key: value for key, value in body.items() if key != "agent_contract"}


def ids_of(body: dict[str, Any]) -> list[str]:
    return [listed["id"] for listed in body["tasks"]]


def assert_lasts(timestamp: str, seconds: float) -> None:
    assert abs(seconds_left(timestamp) - seconds) < CLOCK_SLACK_SECONDS, (timestamp, seconds)


def seconds_left(timestamp: str) -> float:
    return instant(timestamp) - time.time()


def instant(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def in_seconds(seconds: float) -> str:
    """A timestamp that far from now, as the API writes it."""
    then = datetime.fromtimestamp(time.time() + seconds, UTC)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
