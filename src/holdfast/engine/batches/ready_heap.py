"""Heaps of the claimable tasks of a batch, including those that its own commands made claimable."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Container, Mapping

from holdfast.core.row import Instant, Key, Row
from holdfast.core.task import Task, is_claimable, queue_order
from holdfast.core.task.capabilities import may_take

Entry = tuple[int, Instant, str]


class ReadyHeap:
    """One heap for each account, type and set of required words.

    The entry of a task that has changed is dropped when it reaches the top.
    """

    def __init__(self, now: Instant, rows: Mapping[Key, Row]) -> None:
        self._now = now
        self._rows = rows
        self._heaps: dict[str, dict[str, dict[str, list[Entry]]]] = {}
        """By account, type and required words."""

    def add(self, task: Task) -> None:
        """Add the task if it is claimable."""
        if is_claimable(task, self._now):
            sets = self._heaps.setdefault(task.account, {}).setdefault(task.type, {})
            heapq.heappush(sets.setdefault(task.requires or "", []), queue_order(task))

    def first(self, account: str, types: tuple[str, ...], capabilities: str, closed: Container[str]) -> Task | None:
        """The first claimable task of these queues, or of all, that requires no more than these capabilities.

        Queues in `closed` are left out.
        """
        queues = self._heaps.get(account, {})
        heaps = [
            heap
            for name in types or queues
            if name not in closed
            for words, heap in queues.get(name, {}).items()
            if may_take(capabilities, words)
        ]
        while found := [heap for heap in heaps if heap]:
            heap = found[0] if len(found) == 1 else min(found)
            task = self._rows.get((Task.table, account, heap[0][-1]))
            if isinstance(task, Task) and is_claimable(task, self._now) and queue_order(task) == heap[0]:
                return task
            heapq.heappop(heap)
        return None


def count_loaded(loaded: Counter[tuple[str, str, str]], queue: tuple[str, str, str]) -> int:
    """How many of the tasks, counted by (account, type, required words), belong to (account, type, capabilities).

    Type "" is every type. Without capabilities it is those that require none, else those that require some of them.
    """
    account, task_type, capabilities = queue
    return sum(
        count
        for (other, name, words), count in loaded.items()
        if other == account
        and task_type in {"", name}
        and bool(words) == bool(capabilities)
        and may_take(capabilities, words)
    )
