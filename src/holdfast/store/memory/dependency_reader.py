"""The reads of the in-memory store about tasks that depend on others."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.task import RelatedTask, Task, needs_dependencies
from holdfast.store.memory.holdings_reader import HoldingsReader


class DependencyReader(HoldingsReader):
    """Reads which tasks need which."""

    def dependents(self, account: str, task_id: str, after: str, limit: int) -> list[RelatedTask]:
        """Tasks that depend on a task, by id."""
        found = sorted((row for row in self._dependents(account, task_id) if row.id > after), key=lambda row: row.id)
        return [RelatedTask(row.id, row.type, row.state, row.waits_for) for row in found[:limit]]

    def tasks_with_results(self, account: str, ids: Sequence[str], largest: int) -> list[RelatedTask]:
        """Tasks by id, with their results."""
        rows = (self._store.rows.get((Task.table, account, task_id)) for task_id in sorted(set(ids)))
        return [_with_result(row, largest) for row in rows if isinstance(row, Task)]

    def is_needed(self, task: Task) -> bool:
        """Whether a task that may still run depends on it: then retention keeps it."""
        return any(map(needs_dependencies, self._dependents(task.account, task.id)))

    def _dependents(self, account: str, task_id: str) -> list[Task]:
        rows = map(self._store.rows.__getitem__, self._store.indexes.group("needs", account, task_id))
        return [row for row in rows if isinstance(row, Task)]


def _with_result(row: Task, largest: int) -> RelatedTask:
    size = 0 if row.result is None else len(row.result.encode())
    shown = row.result if size <= largest else None
    return RelatedTask(row.id, row.type, row.state, row.waits_for, shown, size)
