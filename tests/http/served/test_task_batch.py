"""Many verbs in one request: one transaction, and for each item the answer it would have had alone."""

import json
import threading

import pytest

from tests.compat.orchestrion.account import Account
from tests.compat.orchestrion.expect import assert_task, claimed, created
from tests.compat.orchestrion.states import completed, dead, held, pending
from tests.http.job_client import Callers, fresh
from tests.http.replies import caused_by, done, events, nothing_changes, refused

pytest_plugins = ["tests.http.fresh_accounts"]


def batch(account: Account, *items, **fields):
    return account.post("/v1/tasks/batch", {"items": items, **fields})


def results(answer):
    body = done(answer)
    statuses = [result["status"] for result in body["results"]]
    assert body["succeeded"] == sum(status < 400 for status in statuses)
    assert body["failed"] == len(statuses) - body["succeeded"]
    return body["results"]


def making(**fields):
    return {"op": "create", "type": "work", "payload": {}, **fields}


def test_a_batch_does_every_verb_and_answers_each_in_its_place(account):
    mine = {verb: held(account) for verb in ("heartbeat", "complete", "fail", "release", "snooze")}
    more = {"cancel": pending(account), "requeue": dead(account), "resolve": dead(account)}
    fields = {"snooze": {"seconds": 60}, "fail": {"reason": "it broke"}}
    items = [{"op": verb, "id": task["id"], "lease_id": task["leaseId"]} for verb, task in mine.items()]
    items += [{"op": verb, "id": task["id"]} for verb, task in more.items()]
    items = [making(), *({**item, **fields.get(item["op"], {})} for item in items)]
    answered = results(batch(account, *items))
    assert [result["status"] for result in answered] == [201] + [200] * 8
    states = [result["task"]["status"] for result in answered]
    assert states == ["pending", "claimed", "completed", "pending", "pending", "pending", "cancelled", "pending",
                      "dead_letter"]  # fmt: skip
    for item, result in zip(items[1:], answered[1:], strict=True):
        assert result["task"]["id"] == item["id"]
        assert done(account.read_task(item["id"]))["status"] == result["task"]["status"]
    assert done(account.read_task(mine["fail"]["id"]))["failureReason"] == "it broke"


def test_a_short_answer_tells_what_changed_and_a_full_one_the_whole_task(account):
    mine = held(account)
    item = {"op": "heartbeat", "id": mine["id"], "lease_id": mine["leaseId"]}
    (short,) = results(batch(account, item))
    assert short["task"].keys() == {"id", "status", "attemptCount", "leaseExpiresAt", "cancelRequested"}
    (full,) = results(batch(account, item, full=True))
    assert_task(full["task"])


def test_a_thousand_creates_are_one_transaction_also_while_others_write(account):
    stop = threading.Event()

    def noise():
        while not stop.is_set():
            created(account.create(type="noise"))

    noisy = threading.Thread(target=noise)
    noisy.start()
    answer = batch(account, *(making(payload={"n": n}) for n in range(1000)))
    stop.set()
    noisy.join()
    ids = [result["task"]["id"] for result in results(answer)]
    told = caused_by(account, answer)
    assert [event["subject"] for event in told] == [f"task:{task_id}" for task_id in ids]
    seqs = [event["seq"] for event in told]
    assert seqs == list(range(seqs[0], seqs[0] + 1000)), "nobody came in between"
    assert len({event["at"] for event in told}) == 1
    assert done(account.get("/v1/tasks/counts"))["types"]["work"]["pending"] == 1000


def test_a_refused_item_changes_nothing_and_stops_nobody(account, stranger):
    mine, ended, foreign = held(account), completed(account), pending(stranger)
    items = [
        making(),
        {"op": "complete", "id": mine["id"], "lease_id": "00000000-0000-4000-8000-000000000000"},
        {"op": "cancel", "id": ended["id"]},
        {"op": "cancel", "id": foreign["id"]},
        making(priority=101),
        making(type="no dots."),
        {"op": "snooze", "id": mine["id"]},
        {"op": "heartbeat"},
        {"op": "claim", "id": mine["id"]},
        {"id": mine["id"]},
        "not an object",
        making(),
    ]
    answer = batch(account, *items)
    answered = results(answer)
    assert [result["status"] for result in answered] == [201, 409, 409, 404, 400, 400, 400, 400, 400, 400, 400, 201]
    assert [result["error"] for result in answered[1:4]] == ["lease_superseded", "invalid_transition", "task_not_found"]
    for result in answered[1:-1]:
        assert result["message"]
        assert result["agent_contract"]["next_actions"]
    assert answered[4]["errors"][0]["pointer"] == "/priority"
    assert answered[6]["errors"][0]["pointer"] == "/seconds"
    assert [event["subject"] for event in caused_by(account, answer)] == [
        f"task:{result['task']['id']}" for result in (answered[0], answered[-1])
    ]
    assert done(account.read_task(mine["id"]))["status"] == "claimed"


def test_an_id_that_no_store_can_hold_is_refused_alone(account):
    answered = results(batch(account, making(), {"op": "cancel", "id": "tsk_\0"}))
    assert [result["status"] for result in answered] == [201, 404]
    assert answered[1]["error"] == "task_not_found"


def test_items_see_what_the_items_before_them_did(account):
    mine = held(account)
    proof = {"id": mine["id"], "lease_id": mine["leaseId"]}
    items = [{"op": "heartbeat", **proof, "note": "last"}, {"op": "fail", **proof}, {"op": "cancel", "id": mine["id"]}]
    answered = results(batch(account, *items, {"op": "complete", **proof}))
    assert [result["status"] for result in answered] == [200, 200, 200, 409]
    assert done(account.read_task(mine["id"]))["previousAttempt"]["note"] == "last"


def test_what_a_batch_makes_can_be_claimed_at_once(account):
    made = [result["task"]["id"] for result in results(batch(account, making(), making(priority=1)))]
    assert [claimed(account.claim())["id"] for _ in made] == made[::-1]


def test_a_unique_key_holds_within_a_batch_too(account):
    first, second = results(batch(account, making(uniqueKey="one"), making(uniqueKey="one")))
    assert (first["status"], second["status"], second["deduplicated"]) == (201, 200, True)
    assert first["task"]["id"] == second["task"]["id"]


# -- repeated ----------------------------------------------------------------------------------------------------


def test_a_repeated_batch_is_answered_byte_for_byte_and_does_nothing(account):
    mine = held(account)
    caller = account.with_headers(Idempotency_Key=fresh())
    items = [making(), {"op": "complete", "id": mine["id"]}, {"op": "cancel", "id": mine["id"]}]
    first = batch(caller, *items)
    assert [result["status"] for result in results(first)] == [201, 200, 409]
    with nothing_changes(account):
        again = batch(caller, *items)
    assert (again.raw, again.header("Idempotency-Replayed")) == (first.raw, "true")


def test_another_batch_under_the_same_key_is_a_conflict(account):
    caller = account.with_headers(Idempotency_Key=fresh())
    results(batch(caller, making()))
    with nothing_changes(account):
        refused(batch(caller, making(), making()), 409, "idempotency_conflict")


def test_eight_equal_batches_at_once_are_one(account):
    caller = account.with_headers(Idempotency_Key=fresh())
    with Callers() as callers:
        sent = [callers.send(batch, caller, *[making()] * 20) for _ in range(8)]
        bodies = {answer.result(10)[0].raw for answer in sent}
    assert len(bodies) == 1
    assert len(events(account, "kind=task.created")) == 20


def test_an_item_with_a_key_is_created_once_in_any_batch_and_alone(account):
    key = fresh()
    (first,) = results(batch(account, making(idempotencyKey=key)))
    with nothing_changes(account):
        (again,) = results(batch(account, making(idempotencyKey=key)))
        alone = account.create(idempotencyKey=key)
    assert (again["status"], again["replayed"], again["task"]["id"]) == (201, True, first["task"]["id"])
    assert (created(alone)["id"], alone.header("Idempotency-Replayed")) == (first["task"]["id"], "true")


def test_an_item_repeats_a_create_of_its_own(account):
    key = fresh()
    made = created(account.with_headers(Idempotency_Key=key).create())
    with nothing_changes(account):
        (again,) = results(batch(account, making(idempotencyKey=key)))
    assert again["task"]["id"] == made["id"]


def test_two_items_under_one_key_in_one_batch_are_one_task(account):
    key = fresh()
    answer = batch(account, making(idempotencyKey=key), making(idempotencyKey=key))
    first, second = results(answer)
    assert first["task"]["id"] == second["task"]["id"]
    assert len(caused_by(account, answer)) == 1


def test_an_item_whose_key_was_used_for_something_else_is_refused_alone(account):
    key = fresh()
    made = created(account.create(idempotencyKey=key))
    first, second = results(batch(account, making(idempotencyKey=key, priority=5), making()))
    assert (first["status"], first["error"], second["status"]) == (409, "idempotency_conflict", 201)
    assert done(account.read_task(made["id"]))["priority"] == 0


def test_a_batch_that_was_cut_off_can_be_sent_again_item_by_item(account):
    """Half of the items came through in an earlier request; the whole is sent again."""
    items = [making(idempotencyKey=fresh(), payload={"n": n}) for n in range(10)]
    before = results(batch(account, *items[:5]))
    after = results(batch(account, *items))
    assert [result["task"]["id"] for result in after[:5]] == [result["task"]["id"] for result in before]
    assert [result.get("replayed", False) for result in after] == [True] * 5 + [False] * 5
    assert len(events(account, "kind=task.created")) == 10


# -- bounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1001])
def test_a_batch_has_1_to_1000_items(account, count):
    with nothing_changes(account):
        body = refused(batch(account, *[making()] * count), 400, "invalid_request")
    assert [error["pointer"] for error in body["errors"]] == ["/items"]


@pytest.mark.parametrize("items", [None, {}, "create", 5])
def test_items_are_a_list(account, items):
    with nothing_changes(account):
        body = refused(account.post("/v1/tasks/batch", {"items": items}), 400, "invalid_request")
    assert [error["pointer"] for error in body["errors"]] == ["/items"]


def test_a_batch_of_eight_megabytes_is_taken_and_a_larger_one_is_not(account):
    items = [making(payload={"text": "x" * 60_000})] * 130
    body = json.dumps({"items": items}).encode().ljust(8 * 1024 * 1024)
    with nothing_changes(account):
        refused(account.send("POST", "/v1/tasks/batch", body + b" "), 400, "invalid_request")
    assert {result["status"] for result in results(account.send("POST", "/v1/tasks/batch", body))} == {201}
