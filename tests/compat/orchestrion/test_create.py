"""Creating a task: its fields and defaults, and both spellings of each field."""

import pytest

from tests.compat.orchestrion.account import TYPE
from tests.compat.orchestrion.expect import (
    TASK_ID,
    assert_lasts,
    bare,
    claimed,
    created,
    in_seconds,
    instant,
    page,
    success,
    task,
)
from tests.compat.orchestrion.states import held, pending

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def test_a_minimal_task_is_pending_with_the_defaults(account):
    made = created(account.post("/v1/tasks", {"type": "summarise", "payload": {"url": "https://example.org"}}))
    assert (made["type"], made["payload"]) == ("summarise", {"url": "https://example.org"})
    assert (made["priority"], made["maxAttempts"], made["leaseDurationSeconds"]) == (0, 3, 300)
    assert made["attemptCount"] == 0
    for key in ("result", "scheduledAt", "leaseExpiresAt", "failureReason", "outputId", "claimedBy"):
        assert made[key] is None, key
    assert "warnings" not in made or made["warnings"] == []


def test_a_task_has_the_fields_it_was_created_with(account):
    due = in_seconds(3600)
    given = {"type": "a-Z_9", "payload": {"a": [1, {"b": None}]}, "priority": 7, "maxAttempts": 2}
    made = created(account.create(**given, leaseDurationSeconds=45, scheduledAt=due))
    assert {key: made[key] for key in given} == given
    assert (made["leaseDurationSeconds"], made["scheduledAt"]) == (45, due)


def test_reading_a_created_task_returns_the_created_document(account):
    made = created(account.create(payload={"n": 1}))
    assert task(account.read_task(made["id"])) == made


def test_ids_are_ulids_of_the_current_time_in_ascending_order(account):
    ids = [pending(account)["id"] for _ in range(3)]
    assert all(TASK_ID.fullmatch(task_id) for task_id in ids)
    for task_id in ids:
        milliseconds = 0
        for letter in task_id.removeprefix("tsk_")[:10]:
            milliseconds = milliseconds * 32 + CROCKFORD.index(letter)
        made = task(account.read_task(task_id))
        assert abs(milliseconds / 1000 - instant(made["createdAt"])) < 1


def test_times_are_current_and_in_milliseconds(account):
    made = created(account.create())
    assert made["createdAt"] == made["updatedAt"]
    assert_lasts(made["createdAt"], 0)


PAYLOADS = {
    "empty": {},
    "unicode": {"grüße": "日本語 🦀", "quote": '"\\/'},
    "numbers": {"large": 2**53 - 1, "negative": -1, "fraction": 0.1, "zero": 0},
    "kinds": {"yes": True, "no": False, "none": None, "list": [1, "two", [3]]},
    "control": {"text": "line\nline\ttab\u007f\u2028"},
    "fields of ours": {"id": "tsk_x", "agent_contract": {}, "type": 5, "idempotencyKey": "k"},
    "sql": {"x": "'; DROP TABLE tasks; --"},
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_comes_back_as_it_was_sent(account, payload):
    made = created(account.create(payload=payload))
    assert made["payload"] == payload
    assert task(account.read_task(made["id"]))["payload"] == payload
    assert claimed(account.claim())["payload"] == payload


@pytest.mark.parametrize("result", PAYLOADS.values(), ids=PAYLOADS)
def test_a_result_comes_back_as_it_was_sent(account, result):
    mine = held(account)
    assert task(account.complete(mine["id"], result=result))["result"] == result
    assert task(account.read_task(mine["id"]))["result"] == result


# Two spellings of every field, and unknown fields.

SPELLINGS = {
    "maxAttempts": ("max_attempts", 5),
    "leaseDurationSeconds": ("lease_duration_seconds", 60),
    "scheduledAt": ("scheduled_at", "2026"),
}


@pytest.mark.parametrize("camel", SPELLINGS)
def test_both_spellings_of_a_field_create_the_same_task(account, camel):
    snake, value = SPELLINGS[camel]
    value = in_seconds(900) if camel == "scheduledAt" else value
    for spelling in (camel, snake):
        made = created(account.create(**{spelling: value}))
        assert made[camel] == value
        assert not made.get("warnings")


@pytest.mark.parametrize("spelling", ["worker_id", "workerId"])
def test_both_spellings_of_the_worker_label_are_kept(account, spelling):
    pending(account)
    assert claimed(account.claim(**{spelling: "anna"}))["claimedBy"] == "anna"
    by_id = claimed(account.do("claim", pending(account)["id"], **{spelling: "ben"}))
    assert by_id["claimedBy"] == "ben"
    assert not by_id.get("warnings")


@pytest.mark.parametrize("spelling", ["output_id", "outputId"])
def test_both_spellings_of_the_output_are_kept(account, spelling):
    done = task(account.complete(held(account)["id"], **{spelling: "out_1"}))
    assert done["outputId"] == "out_1"
    assert not done.get("warnings")


@pytest.mark.parametrize("spelling", ["retry_after_seconds", "retryAfterSeconds"])
def test_both_spellings_of_the_delay_are_kept(account, spelling):
    failed = task(account.fail(held(account)["id"], **{spelling: 600}))
    assert_lasts(failed["scheduledAt"], 600)
    assert not failed.get("warnings")


UNKNOWN_FIELDS = {
    "create": lambda account, more: account.create(**more),
    "claim": lambda account, more: pending(account) and account.claim(**more),
    "claim nothing": lambda account, more: account.claim(**more),
    "claim by id": lambda account, more: account.do("claim", pending(account)["id"], **more),
    "heartbeat": lambda account, more: account.do("heartbeat", held(account)["id"], **more),
    "complete": lambda account, more: account.complete(held(account)["id"], **more),
    "fail": lambda account, more: account.fail(held(account)["id"], **more),
    "cancel": lambda account, more: account.do("cancel", pending(account)["id"], **more),
    "requeue": lambda account, more: account.do(
        "requeue", task(account.fail(held(account, maxAttempts=1)["id"]))["id"], **more
    ),
    "register": lambda account, more: account.post("/v1/keys/register", more),
}


@pytest.mark.parametrize("call", UNKNOWN_FIELDS)
def test_unknown_fields_are_ignored_and_named(account, call):
    answer = UNKNOWN_FIELDS[call](account, {"pritority": 5, "x-note": {"deep": [1]}})
    body = success(answer, 201 if call in {"create", "register"} else 200)
    warnings = body["warnings"]
    assert isinstance(warnings, list)
    for field in ("pritority", "x-note"):
        assert any(field in str(warning) for warning in warnings), warnings


def test_warnings_are_not_stored_with_the_task(account):
    made = created(account.create(pritority=5))
    assert made["warnings"]
    observed = task(account.read_task(made["id"]))
    assert not observed.get("warnings")
    assert bare(observed) == {key: made[key] for key in bare(observed)}
    assert page(account.list(f"type={TYPE}"))["tasks"] == [observed]
