"""Which pending tasks wait for room: their queue is paused or full, or their concurrency key is."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.core.row import Instant
from holdfast.core.task import CLAIMED, PENDING, ROOM, Task
from holdfast.core.task.queue import Queue, lacks_room
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row


class FullQueues:
    """The settings of queues and what runs in them, each read once, and only for queues that have settings."""

    def __init__(self, reader: Reader, account: str) -> None:
        self._reader = reader
        self._account = account
        self._queues: dict[str, tuple[Queue, int, dict[str, int]] | None] = {}
        self._wall: Instant = reader.wall

    def is_blocked(self, task: Task) -> bool:
        """Whether a task could be claimed if its queue and its concurrency key were not paused or full."""
        if task.state != PENDING or task.waits_for is not None:
            return False
        found = self._queue(task.type)
        if found is None:
            return False
        queue, running, by_key = found
        return lacks_room(task, queue, running, by_key.get(task.concurrency_key or "", 0), self._wall)

    def _queue(self, task_type: str) -> tuple[Queue, int, dict[str, int]] | None:
        if task_type not in self._queues:
            self._queues[task_type] = self._read(task_type)
        return self._queues[task_type]

    def _read(self, task_type: str) -> tuple[Queue, int, dict[str, int]] | None:
        reader, account = self._reader, self._account
        queue = usable_row(reader, Queue, account, task_type)
        if queue is None:
            return None
        counts = reader.task_counts(account)
        running = sum(total for name, state, total in counts if (name, state) == (task_type, CLAIMED))
        by_key = {} if queue.max_running_per_key is None else reader.running_keys(account, task_type)
        return queue, running, by_key


def with_queue_limits(reader: Reader, account: str, tasks: Sequence[Task]) -> list[Task]:
    """The tasks, those that wait for room with that as the reason."""
    full_queues = FullQueues(reader, account)
    return [replace(task, waits_for=ROOM, planned_at=task.scheduled_at) if full_queues.is_blocked(task) else task
            for task in tasks]  # fmt: skip
