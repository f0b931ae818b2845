"""One key, one task: replays, conflicts, and duplicates that come at once."""

import json
import time

import pytest

from tests.compat.orchestrion.account import all_at_once
from tests.compat.orchestrion.expect import claimed, created, in_seconds, page, refused, seconds_left, task
from tests.compat.orchestrion.states import pending

CARRIERS = {
    "header": lambda account, key, **fields: account.with_headers(Idempotency_Key=key).create(**fields),
    "body": lambda account, key, **fields: account.create(idempotencyKey=key, **fields),
    "body, other spelling": lambda account, key, **fields: account.create(idempotency_key=key, **fields),
    "both": lambda account, key, **fields: account.with_headers(Idempotency_Key=key).create(
        idempotencyKey=key, **fields
    ),
}


@pytest.fixture(params=CARRIERS.values(), ids=CARRIERS)
def create(request, account):
    """Create with a key, however it is carried."""
    return lambda key, **fields: request.param(account, key, **fields)


def replayed(answer):
    return answer.header("Idempotency-Replayed")


def count(account):
    return len(page(account.list("limit=100"))["tasks"])


def test_a_repeated_request_is_answered_byte_for_byte_and_creates_nothing(account, create):
    first = create("k", payload={"n": 1.50, "text": "ü"})
    created(first)
    assert replayed(first) is None
    for _ in range(2):
        again = create("k", payload={"n": 1.50, "text": "ü"})
        assert (again.status, again.raw, replayed(again)) == (201, first.raw, "true")
    assert count(account) == 1


def test_another_body_with_the_same_key_is_a_conflict_and_creates_nothing(account, create):
    first = create("k", priority=1)
    for change in ({"priority": 2}, {"priority": 1, "payload": {"a": 1}}, {"type": "other", "priority": 1}, {}):
        answer = create("k", **change)
        refused(answer, 409, "idempotency_conflict")
        assert replayed(answer) is None
    assert create("k", priority=1).raw == first.raw
    assert count(account) == 1


@pytest.mark.parametrize("one", CARRIERS)
@pytest.mark.parametrize("other", CARRIERS)
def test_a_key_in_the_header_equals_a_key_in_the_body(account, one, other):
    first, again = CARRIERS[one](account, "k"), CARRIERS[other](account, "k")
    assert created(first) == created(again)
    assert (again.raw, replayed(again)) == (first.raw, "true")
    assert count(account) == 1


@pytest.mark.parametrize("spelling", ["idempotencyKey", "idempotency_key"])
def test_two_keys_that_differ_are_refused(account, spelling):
    refused(account.with_headers(Idempotency_Key="a").create(**{spelling: "b"}), 400, "invalid_request")
    refused(account.with_headers(Idempotency_Key="a").create(**{spelling: "A"}), 400, "invalid_request")
    assert count(account) == 0
    assert replayed(account.create(idempotencyKey="a")) is None


def test_the_order_of_fields_and_white_space_are_not_part_of_the_body_hash(account):
    body = {"type": "work", "payload": {"a": 1, "b": {"c": [1, 2], "d": None}}, "priority": 3}
    turned = {"priority": 3, "payload": {"b": {"d": None, "c": [1, 2]}, "a": 1}, "type": "work"}
    first = account.with_headers(Idempotency_Key="k").post("/v1/tasks", body)
    created(first)
    for text in (json.dumps(turned), json.dumps(turned, indent=2), json.dumps(body, separators=(",", ":"))):
        again = account.send("POST", "/v1/tasks", text.encode(), Content_Type="application/json", Idempotency_Key="k")
        assert (again.status, again.raw, replayed(again)) == (201, first.raw, "true")
    assert count(account) == 1


def test_the_order_of_a_list_is_part_of_the_body_hash(account):
    created(account.create(idempotencyKey="k", payload={"a": [1, 2]}))
    refused(account.create(idempotencyKey="k", payload={"a": [2, 1]}), 409, "idempotency_conflict")


def test_a_replay_returns_the_first_response_even_if_the_task_has_changed(account):
    first = account.create(idempotencyKey="k")
    claimed(account.claim())
    task(account.complete(created(first)["id"]))
    again = account.create(idempotencyKey="k")
    assert again.raw == first.raw
    assert created(again)["status"] == "pending"
    assert task(account.read_task(created(first)["id"]))["status"] == "completed"


def test_a_replay_does_not_check_scheduled_at_again(account):
    due = in_seconds(0.3)
    first = account.create(idempotencyKey="k", scheduledAt=due)
    created(first)
    time.sleep(max(0.0, seconds_left(due) + 0.02))
    again = account.create(idempotencyKey="k", scheduledAt=due)
    assert (again.status, again.raw, replayed(again)) == (201, first.raw, "true")


def test_other_keys_create_other_tasks_with_the_same_body(account):
    assert len({created(account.create(idempotencyKey=key))["id"] for key in ("k", "K", "k2", "k ")}) == 4


def test_without_a_key_every_call_creates(account):
    assert len({pending(account)["id"] for _ in range(3)}) == 3


def test_a_key_of_another_account_has_no_effect(account, other_account):
    mine, theirs = account.create(idempotencyKey="k"), other_account.create(idempotencyKey="k")
    assert created(mine)["id"] != created(theirs)["id"]
    assert (replayed(mine), replayed(theirs)) == (None, None)
    created(other_account.create(idempotencyKey="their own", priority=1))
    created(account.create(idempotencyKey="their own", priority=2))


def test_a_refused_request_does_not_use_its_key(account):
    refused(account.create(idempotencyKey="k", priority=101), 400, "invalid_request")
    answer = account.create(idempotencyKey="k", priority=100)
    assert created(answer)["priority"] == 100
    assert replayed(answer) is None


def test_twenty_duplicates_at_once_create_one_task(account, create):
    answers = all_at_once(20, lambda _: create("k", payload={"n": 1}))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.raw for answer in answers}) == 1
    assert sorted(replayed(answer) or "" for answer in answers) == ["", *["true"] * 19]
    assert count(account) == 1


def test_of_twenty_different_bodies_at_once_one_wins_and_the_others_conflict(account):
    answers = all_at_once(20, lambda place: account.create(idempotencyKey="k", priority=place))
    (winner,) = [created(answer) for answer in answers if answer.status == 201]
    for answer in answers:
        if answer.status != 201:
            refused(answer, 409, "idempotency_conflict")
    assert page(account.list())["tasks"] == [winner]
