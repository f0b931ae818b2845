"""The reads of SQLite and PostgreSQL about tasks that depend on others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.core.task import STATES, RelatedTask
from holdfast.store.sql import dependency_queries
from holdfast.store.sql.holdings_reader import HoldingsReader


class DependencyReader(HoldingsReader):
    """Reads which tasks need which."""

    def dependents(self, account: str, task_id: str, after: str, limit: int) -> list[RelatedTask]:
        """Tasks that depend on a task, by id."""
        found = self.execute(dependency_queries.DEPENDENTS, account, task_id, after, limit)
        return [RelatedTask(*values) for values in found if values[2] in STATES]

    def tasks_with_results(self, account: str, ids: Sequence[str], largest: int) -> list[RelatedTask]:
        """Tasks by id, with their results."""
        wanted = msgspec.json.encode([(task_id,) for task_id in ids]).decode()
        found = self.execute(dependency_queries.TASKS_WITH_RESULTS, largest, account, wanted)
        return [RelatedTask(*values) for values in found if values[2] in STATES]
