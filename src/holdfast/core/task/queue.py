"""Settings of a queue: whether its tasks can be claimed, and how many of them may run at once."""

from __future__ import annotations

from typing import ClassVar

from holdfast.core.errors import NotYetClaimable
from holdfast.core.row import Row


class Queue(Row, frozen=True):
    """The row of a queue with settings; its id is the task type. A queue without a row has no limits."""

    table: ClassVar[str] = "queues"
    noun: ClassVar[str] = "queue"
    booleans: ClassVar[frozenset[str]] = frozenset({"paused"})

    paused: bool = False
    max_running: int | None = None
    """How many of its tasks may be claimed at the same time."""


def is_closed(queue: Queue, running: int) -> bool:
    """Whether no task of the queue can be claimed now. Those that are claimed go on."""
    return queue.paused or (queue.max_running is not None and running >= queue.max_running)


def check_open(queue: Queue | None, running: int) -> None:
    """Refuse the claim of a task by id if its queue is paused or full."""
    if queue is None or not is_closed(queue, running):
        return
    if queue.paused:
        raise NotYetClaimable(f"the queue {queue.id} is paused", reason="paused")
    raise NotYetClaimable(f"{running} tasks of the queue {queue.id} run, as many as allowed", reason="full")
