"""The loaded queues of a batch that have settings, and how many of their tasks run."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.errors import DamagedRow
from holdfast.core.row import Key, Row
from holdfast.core.task.queue import Queue, check_open, is_closed


class QueueLimits:
    """Which queues are closed, with what the batch has claimed so far."""

    def __init__(
        self, rows: Mapping[Key, Row], damaged: Mapping[Key, DamagedRow], running: Mapping[tuple[str, str], int]
    ) -> None:
        self._rows = rows
        self._damaged = [key for key in damaged if key[0] == Queue.table]
        """Nobody knows their limits, so they count as paused."""
        self._running = running

    def closed(self, account: str) -> list[str]:
        """The types of an account whose tasks cannot be claimed now."""
        found = [name for owner, name in self._running if owner == account and self._is_closed(account, name)]
        return [*found, *(name for _, owner, name in self._damaged if owner == account)]

    def running(self, account: str, task_type: str) -> int:
        """How many tasks of a queue are claimed; 0 if it has no settings."""
        return self._running.get((account, task_type), 0)

    def check_open(self, account: str, task_type: str) -> None:
        """Refuse the claim of a task by id if its queue is paused or full."""
        queue = self._rows.get((Queue.table, account, task_type))
        check_open(queue if isinstance(queue, Queue) else None, self.running(account, task_type))

    def _is_closed(self, account: str, task_type: str) -> bool:
        queue = self._rows.get((Queue.table, account, task_type))
        return isinstance(queue, Queue) and is_closed(queue, self.running(account, task_type))
