"""The loaded queues of a batch that have settings, and how many of their tasks run, in all and by key."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.errors import DamagedRow
from holdfast.core.row import Key, Row
from holdfast.core.task import Task
from holdfast.core.task.queue import Queue, check_open, is_closed, is_key_full


class QueueLimits:
    """Which queues are closed, with what the batch has claimed so far."""

    def __init__(
        self,
        rows: Mapping[Key, Row],
        damaged: Mapping[Key, DamagedRow],
        running: Mapping[tuple[str, str], int],
        running_by_key: Mapping[tuple[str, str], Mapping[str, int]],
    ) -> None:
        self._rows = rows
        self._damaged = {key[1:]: error for key, error in damaged.items() if key[0] == Queue.table}
        """Nobody knows their limits, so they count as paused."""
        self._running = running
        self._running_by_key = running_by_key

    def closed(self, account: str) -> list[str]:
        """The types of an account whose tasks cannot be claimed now."""
        found = [name for owner, name in self._running if owner == account and self._is_closed(account, name)]
        return [*found, *(name for owner, name in self._damaged if owner == account)]

    def with_full_keys(self, account: str) -> list[str]:
        """The types of an account some of whose tasks cannot be claimed now, because of their concurrency keys."""
        return [
            name
            for (owner, name), keys in self._running_by_key.items()
            if owner == account and any(self.is_key_full(account, name, key) for key in keys)
        ]

    def is_key_full(self, account: str, task_type: str, key: str | None) -> bool:
        """Whether no task of a queue with this concurrency key can be claimed now."""
        queue = self._find(account, task_type) if key is not None else None
        return queue is not None and is_key_full(queue, self._running_of(account, task_type, key))

    def running(self, account: str, task_type: str) -> int:
        """How many tasks of a queue are claimed; 0 if it has no settings."""
        return self._running.get((account, task_type), 0)

    def check_open(self, task: Task) -> None:
        """Refuse the claim of a task by id if its queue is paused, full or damaged, or its concurrency key is full."""
        account, task_type, key = task.account, task.type, task.concurrency_key
        if (account, task_type) in self._damaged:
            raise self._damaged[account, task_type]
        running = self.running(account, task_type)
        check_open(self._find(account, task_type), running, key, self._running_of(account, task_type, key))

    def _is_closed(self, account: str, task_type: str) -> bool:
        queue = self._find(account, task_type)
        return queue is not None and is_closed(queue, self.running(account, task_type))

    def _find(self, account: str, task_type: str) -> Queue | None:
        queue = self._rows.get((Queue.table, account, task_type))
        return queue if isinstance(queue, Queue) else None

    def _running_of(self, account: str, task_type: str, key: str | None) -> int:
        return self._running_by_key.get((account, task_type), {}).get(key or "", 0)
