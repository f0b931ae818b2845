"""Through the client: a worker gets only what it can do, and nothing from a queue that is paused or full."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.client.errors import HoldfastError


@pytest.fixture
def client():
    with holdfast.open("memory:") as client:
        yield client


def test_a_worker_runs_what_its_capabilities_allow(client):
    ids = [client.create_task("paint", {}, requires=words)["id"] for words in (["gpu"], ["cpu", "gpu"], [])]
    worker = holdfast.Worker(client, capabilities=["gpu", "gpu", "ssd"])
    seen = []
    worker.task("paint")(lambda context: seen.append(context.id))
    worker.run_until_idle()
    assert sorted(seen) == sorted([ids[0], ids[2]])
    assert client.check_task_status(ids[1])["requires"] == ["cpu", "gpu"]


def test_a_session_lends_its_capabilities(client):
    session = client.begin_session("agent", capabilities=["gpu"])
    assert session["capabilities"] == ["gpu"]
    task = client.create_task("paint", {}, requires=["gpu"])["id"]
    assert client.claim_task()["task"] is None
    with pytest.raises(HoldfastError, match="requires gpu") as caught:
        client.claim_task_by_id(task)
    assert (caught.value.code, caught.value.document["missing"]) == ("capability_missing", ["gpu"])
    assert client.claim_task(session_id=session["session_id"])["id"] == task


def test_a_queue_is_paused_limited_and_listed(client):
    for _ in range(3):
        client.create_task("paint", {})
    assert client.read_queue("paint")["max_running"] is None
    assert client.set_queue("paint", max_running=1)["pending"] == 3
    assert client.claim_task(type="paint")["task"] is not None
    assert client.claim_task()["task"] is None
    assert client.set_queue("paint", paused=True, max_running=0)["running"] == 1
    (listed,) = client.list_queues()["queues"]
    assert (listed["type"], listed["paused"], listed["max_running"]) == ("paint", True, None)
    assert client.claim_task(type="paint")["task"] is None
    client.set_queue("paint", paused=False)
    assert client.claim_task(type="paint", limit=5)["count"] == 2


def test_tasks_of_a_full_key_or_queue_wait_for_room_and_are_listed(client):
    first, second = (client.create_task("paint", {}, concurrency_key="red")["id"] for _ in range(2))
    other = client.create_task("paint", {}, concurrency_key="blue")["id"]
    assert client.set_queue("paint", max_running_per_key=1)["max_running_per_key"] == 1
    assert client.claim_task(type="paint")["id"] == first
    shown = client.check_task_status(second)
    assert (shown["waitingFor"], shown["concurrencyKey"]) == ("room", "red")
    assert "waitingFor" not in client.check_task_status(other)
    waiting = {task["id"]: task.get("waitingFor") for task in client.list_tasks()["tasks"]}
    assert waiting == {first: None, second: "room", other: None}
    assert [task["id"] for task in client.list_tasks(waiting="room")["tasks"]] == [second]
    with pytest.raises(HoldfastError, match="concurrency key red") as caught:
        client.claim_task_by_id(second)
    assert (caught.value.code, caught.value.document["reason"]) == ("not_yet_claimable", "key_full")
    client.set_queue("paint", paused=True)
    assert {task["id"] for task in client.list_tasks(waiting="room")["tasks"]} == {second, other}
    client.set_queue("paint", paused=False, max_running_per_key=0)
    assert client.list_tasks(waiting="room")["tasks"] == []


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda it: it.create_task("t", {}, requires=["a b"]), "requires"),
        (lambda it: it.create_task("t", {}, requires=[str(n) for n in range(11)]), "requires"),
        (lambda it: it.claim_task(capabilities=["a,b"]), "capabilities"),
        (lambda it: it.begin_session("agent", capabilities=[""]), "capabilities"),
        (lambda it: it.set_queue("t", max_running=-1), "max_running"),
        (lambda it: it.set_queue("t", max_running_per_key=-1), "max_running_per_key"),
        (lambda it: it.create_task("t", {}, concurrency_key=""), "concurrencyKey"),
        (lambda it: it.create_task("t", {}, concurrency_key="k" * 256), "concurrencyKey"),
    ],
    ids=[
        "a word with a space",
        "too many words",
        "a word with a comma",
        "an empty word",
        "a negative limit",
        "a negative limit by key",
        "an empty key",
        "a long key",
    ],
)
def test_wrong_words_and_limits_are_refused(client, call, field):
    with pytest.raises(HoldfastError, match=field):
        call(client)
