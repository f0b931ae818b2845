"""Settings of a queue: whether its tasks can be claimed, and how many of them may run at once, in all and by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import ClassVar, NamedTuple

from holdfast.core.errors import NotYetClaimable
from holdfast.core.row import Instant, Row
from holdfast.core.task.queueing import is_in_queue
from holdfast.core.task.row import Task


class Queue(Row, frozen=True):
    """The row of a queue with settings; its id is the task type. A queue without a row has no limits."""

    table: ClassVar[str] = "queues"
    noun: ClassVar[str] = "queue"
    booleans: ClassVar[frozenset[str]] = frozenset({"paused"})

    paused: bool = False
    max_running: int | None = None
    """How many of its tasks may be claimed at the same time."""
    max_running_per_key: int | None = None
    """How many of its tasks with the same concurrency key may be claimed at the same time."""


class Head(NamedTuple):
    """What decides whether a claim may take a task of a queue: read for many tasks, of which few are loaded."""

    id: str
    key: str | None = None
    """Its concurrency key."""
    requires: str | None = None


def is_closed(queue: Queue, running: int) -> bool:
    """Whether no task of the queue can be claimed now. Those that are claimed go on."""
    return queue.paused or (queue.max_running is not None and running >= queue.max_running)


def is_key_full(queue: Queue, running: int) -> bool:
    """Whether no task of a key can be claimed now, of which so many run."""
    return queue.max_running_per_key is not None and running >= queue.max_running_per_key


def check_open(queue: Queue | None, running: int, key: str | None = None, running_of_key: int = 0) -> None:
    """Refuse the claim of a task by id if its queue is paused or full, or its concurrency key is."""
    if queue is None:
        return
    if queue.paused:
        raise NotYetClaimable(f"the queue {queue.id} is paused", reason="paused")
    if is_closed(queue, running):
        raise NotYetClaimable(f"{running} tasks of the queue {queue.id} run, as many as allowed", reason="full")
    if key is not None and is_key_full(queue, running_of_key):
        of_key = f"{running_of_key} tasks of the queue {queue.id} run with the concurrency key {key}"
        raise NotYetClaimable(f"{of_key}, as many as allowed", reason="key_full")


def lacks_room(task: Task, queue: Queue, running: int, running_of_key: int, wall: Instant) -> bool:
    """Whether a task could be claimed if its queue, or its concurrency key, had room."""
    is_full = task.concurrency_key is not None and is_key_full(queue, running_of_key)
    return is_in_queue(task, wall) and (is_closed(queue, running) or is_full)


def choose(heads: Iterable[Head], room: Callable[[str], int], most: int) -> list[Head]:
    """The first tasks that claims could take, in order: of each key no more than there is room for."""
    chosen: list[Head] = []
    used: Counter[str] = Counter()
    for head in heads:
        if len(chosen) == most:
            break
        if head.key is not None:
            if used[head.key] >= room(head.key):
                continue
            used[head.key] += 1
        chosen.append(head)
    return chosen
