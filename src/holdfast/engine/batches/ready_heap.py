"""Heaps of the claimable tasks of a batch, including those that its own commands made claimable."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Container, Mapping

from holdfast.core.row import Instant, Key, Row
from holdfast.core.task import Task, is_claimable, is_in_queue, is_over, queue_order
from holdfast.core.task.capabilities import may_take

Entry = tuple[int, Instant, str]


class ReadyHeap:
    """One heap for each account, type and set of required words.

    The entry of a task that has changed is dropped when it reaches the top. That of a task whose concurrency key is
    full is set aside then, until the key has room.
    """

    def __init__(
        self, now: Instant, rows: Mapping[Key, Row], is_key_full: Callable[[str, str, str | None], bool]
    ) -> None:
        self._now = now
        self._rows = rows
        self._is_key_full = is_key_full
        self._heaps: dict[str, dict[str, dict[str, list[Entry]]]] = {}
        """By account, type and required words."""
        self._without_room: dict[tuple[str, str, str], list[Key]] = {}
        """By account, type and concurrency key: tasks that were set aside."""
        self._overdue: dict[str, set[tuple[str, str]]] = {}
        """By account: (type, task) of those that stand in their queue although their deadline has passed."""

    def add(self, task: Task) -> None:
        """Add the task if it is in its queue; one whose deadline has passed is only counted."""
        if not is_in_queue(task, self._now):
            return
        if is_over(task, self._now):
            self._overdue.setdefault(task.account, set()).add((task.type, task.id))
        else:
            sets = self._heaps.setdefault(task.account, {}).setdefault(task.type, {})
            heapq.heappush(sets.setdefault(task.requires or "", []), queue_order(task))

    def first(self, account: str, types: tuple[str, ...], capabilities: str, closed: Container[str]) -> Task | None:
        """The first claimable task of these queues, or of all, that requires no more than these capabilities.

        Queues in `closed` are left out.
        """
        self._return_with_room(account)
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
                if not self._is_key_full(account, task.type, task.concurrency_key):
                    return task
                group = (account, task.type, task.concurrency_key or "")
                self._without_room.setdefault(group, []).append(task.key)
            heapq.heappop(heap)
        return None

    def overdue_types(self, account: str) -> list[str]:
        """The types of loaded tasks that nobody may claim any more, and that may hide others until the sweep."""
        return sorted({task_type for task_type, _ in self._overdue.get(account, ())})

    def count_overdue(self, account: str, task_type: str) -> int:
        """How many of these tasks a queue has; type "" is every queue of the account."""
        return sum(task_type in {"", name} for name, _ in self._overdue.get(account, ()))

    def _return_with_room(self, account: str) -> None:
        """Put back the tasks that were set aside and whose keys have room now, as they are now."""
        for group in [group for group in self._without_room if group[0] == account and not self._is_key_full(*group)]:
            for key in self._without_room.pop(group):
                task = self._rows.get(key)
                if isinstance(task, Task):
                    self.add(task)


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
