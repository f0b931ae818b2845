"""Settings of queues: which tasks have room, by their queue and by their concurrency key."""

from __future__ import annotations

import pytest

from holdfast.core.errors import NotYetClaimable
from holdfast.core.task import CLAIMED, Task
from holdfast.core.task.queue import Head, Queue, check_open, choose, is_key_full, lacks_room
from tests.core.states import NOW

LIMITED = Queue("a", "work", max_running_per_key=2)


@pytest.mark.parametrize(("running", "full"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_key_is_full_when_as_many_run_as_allowed(running, full):
    assert is_key_full(LIMITED, running) == full
    assert not is_key_full(Queue("a", "work"), running)


def test_a_task_without_a_key_is_not_limited_by_keys():
    check_open(LIMITED, 9, None, 9)
    with pytest.raises(NotYetClaimable, match="2 tasks of the queue work run with the concurrency key k"):
        check_open(LIMITED, 9, "k", 2)


@pytest.mark.parametrize(
    ("queue", "key", "lacking"),
    [
        (Queue("a", "work"), "k", False),
        (Queue("a", "work", paused=True), None, True),
        (Queue("a", "work", max_running=3), None, True),
        (Queue("a", "work", max_running=4), None, False),
        (LIMITED, "k", True),
        (LIMITED, None, False),
    ],
)
def test_only_a_task_that_could_be_claimed_otherwise_waits_for_room(queue, key, lacking):
    task = Task("a", "t1", type="work", ready=True, concurrency_key=key)
    assert lacks_room(task, queue, 3, 2, NOW) == lacking
    held = Task("a", "t1", type="work", state=CLAIMED, concurrency_key=key)
    assert not lacks_room(held, queue, 3, 2, NOW)


def test_of_each_key_no_more_tasks_are_chosen_than_there_is_room_for():
    heads = [Head(f"t{number}", key) for number, key in enumerate(["x", "y", "x", None, "x", None, "y", "z"])]
    room = {"x": 1, "y": 2, "z": 0}
    assert [head.id for head in choose(heads, room.__getitem__, 9)] == ["t0", "t1", "t3", "t5", "t6"]
    assert [head.id for head in choose(heads, room.__getitem__, 3)] == ["t0", "t1", "t3"]
