"""Heaps of the claimable tasks of a batch, including those that its own commands made claimable."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from holdfast.core.row import Instant, Key, Row
from holdfast.core.task import Task, is_claimable, queue_order

Entry = tuple[int, Instant, str]


class ReadyHeap:
    """One heap for each account and type. The entry of a task that has changed is dropped when it reaches the top."""

    def __init__(self, now: Instant, rows: Mapping[Key, Row]) -> None:
        self._now = now
        self._rows = rows
        self._heaps: dict[str, dict[str, list[Entry]]] = {}

    def add(self, task: Task) -> None:
        """Add the task if it is claimable."""
        if is_claimable(task, self._now):
            heaps = self._heaps.setdefault(task.account, {})
            heapq.heappush(heaps.setdefault(task.type, []), queue_order(task))

    def first(self, account: str, types: tuple[str, ...]) -> Task | None:
        """The first claimable task of these queues, or of all queues if none is named."""
        heaps = self._heaps.get(account, {})
        while found := [heaps[name] for name in types or heaps if heaps.get(name)]:
            heap = found[0] if len(found) == 1 else min(found)
            task = self._rows.get((Task.table, account, heap[0][-1]))
            if isinstance(task, Task) and is_claimable(task, self._now) and queue_order(task) == heap[0]:
                return task
            heapq.heappop(heap)
        return None
