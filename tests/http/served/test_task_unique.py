"""Unique keys: a second create returns the live task, or replaces its work."""

import pytest

from tests.compat.orchestrion.expect import claimed, created, in_seconds, task
from tests.compat.orchestrion.states import held
from tests.http.job_client import Callers
from tests.http.replies import done, events, nothing_changes, refused

pytest_plugins = ["tests.http.fresh_accounts"]


def make(account, **fields):
    return account.create(uniqueKey="report", **fields)


def found(answer):
    """The live task under the key, and not a new one."""
    body = task(answer)
    assert body["deduplicated"] is True
    return body


def test_a_second_create_answers_with_the_first(account):
    first = created(make(account, payload={"n": 1}))
    with nothing_changes(account):
        again = found(make(account, payload={"n": 2}))
    assert (again["id"], again["payload"], again["uniqueKey"]) == (first["id"], {"n": 1}, "report")


def test_a_held_task_still_has_its_key(account):
    first = created(make(account))
    claimed(account.claim())
    assert found(make(account))["id"] == first["id"]


@pytest.mark.parametrize(
    "finish",
    [
        lambda account, made: [account.do("claim", made["id"]), account.complete(made["id"])],
        lambda account, made: account.do("cancel", made["id"]),
        lambda account, made: [account.do("claim", made["id"]), account.fail(made["id"], permanent=True)],
    ],
    ids=["completed", "cancelled", "dead"],
)
def test_a_finished_task_gives_its_key_free(account, finish):
    first = created(make(account))
    finish(account, first)
    assert created(make(account))["id"] != first["id"]


def test_the_key_is_the_same_in_every_type(account):
    first = created(make(account, type="one"))
    assert found(make(account, type="two"))["id"] == first["id"]


def test_twenty_creates_at_once_make_one_task(account):
    with Callers(20) as callers:
        sent = [callers.send(make, account) for _ in range(20)]
        answers = [future.result(10)[0] for future in sent]
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert len(events(account, "kind=task.created")) == 1


def test_replace_changes_the_fields_of_the_pending_task(account):
    first = created(make(account, payload={"n": 1}, tag="old"))
    other = {"payload": {"n": 2}, "priority": 7, "maxAttempts": 9, "leaseDurationSeconds": 60, "tag": "new"}
    again = found(make(account, onDuplicate="replace", **other))
    assert {name: again[name] for name in other} == other
    assert (again["id"], again["createdAt"]) == (first["id"], first["createdAt"])
    assert done(account.read_task(first["id"]))["payload"] == {"n": 2}
    assert [event["kind"] for event in events(account, f"subject=task:{first['id']}")] == [
        "task.created",
        "task.replaced",
    ]


def test_replace_can_change_the_schedule(account):
    first = created(make(account))
    later = in_seconds(3600)
    assert found(make(account, onDuplicate="replace", scheduledAt=later))["scheduledAt"] == later
    refused(account.do("claim", first["id"]), 409, "not_yet_claimable")


def test_a_held_task_keeps_its_work(account):
    mine = held(account, uniqueKey="report", payload={"n": 1})
    with nothing_changes(account):
        again = found(make(account, onDuplicate="replace", payload={"n": 2}))
    assert (again["id"], again["status"], again["payload"]) == (mine["id"], "claimed", {"n": 1})


def test_a_dead_letter_is_not_requeued_while_another_lives_under_its_key(account):
    dead = held(account, uniqueKey="report")
    done(account.fail(dead["id"], permanent=True))
    twin = created(make(account))
    with nothing_changes(account):
        body = refused(account.do("requeue", dead["id"]), 409, "invalid_transition")
    assert body["twin"] == twin["id"]
    done(account.do("cancel", twin["id"]))
    assert done(account.do("requeue", dead["id"]))["status"] == "pending"


def test_an_idempotency_key_still_answers_byte_for_byte(account):
    caller = account.with_headers(Idempotency_Key="first try")
    first = make(caller)
    assert make(caller).raw == first.raw
    assert found(make(account))["id"] == created(first)["id"]


def test_a_key_means_nothing_to_another_account(account, stranger):
    assert created(make(account))["id"] != created(make(stranger))["id"]
