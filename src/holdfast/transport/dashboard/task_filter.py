"""The dashboard's task filter: the API's filter, and failure groups; read from a query string or a form."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core import task as tasks
from holdfast.core.row import Instant
from holdfast.core.task import CLAIMED, STATES, Task
from holdfast.decoding import convert
from holdfast.transport.dashboard.failure_groups import group_reason
from holdfast.transport.task_filter import TaskFilter

_PARAMETERS = ("state", "type", "tag", "key", "worker", "open", "reason")


class DashboardFilter(TaskFilter, frozen=True, kw_only=True):
    """The filter of a task page's address."""

    open: str = ""
    """`yes`: only dead letters that are not resolved."""
    reason: str = ""
    """Failure group of a dead letter."""

    @property
    def parameters(self) -> dict[str, str]:
        """The query parameters that select this filter."""
        return {name: value for name in _PARAMETERS if (value := getattr(self, name))}

    @property
    def is_counted(self) -> bool:
        """Whether the store keeps a count of the matching tasks, so that none has to be read."""
        return not (self.tag or self.key or self.worker or self.open or self.reason)

    def matches(self, task: Task) -> bool:
        """Whether a task meets every condition."""
        return (
            super().matches(task)
            and (not self.open or (task.state == tasks.DEAD and task.resolved_at is None))
            and (not self.reason or group_reason(task) == self.reason)
        )


def parse(query: Mapping[str, str]) -> DashboardFilter:
    """The filter in a query string or form; an unknown state is ignored."""
    values = {name: query.get(name, "").strip() for name in _PARAMETERS}
    if values["state"] not in STATES:
        values["state"] = ""
    return convert(values, DashboardFilter)


def is_unchanged_since(task: Task, moment: Instant) -> bool:
    """Whether a task was in its present state at a moment; renewals of its lease are no change.

    A bulk operation acts only on the tasks that were counted when its confirmation page was shown.
    """
    since = task.claimed_at if task.state == CLAIMED else task.changed_at
    return task.created_at <= moment and since is not None and since <= moment
