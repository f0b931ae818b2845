"""The dashboard's task filter: the API's filter, and failure groups; read from a query string or a form."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import CLAIMED, STATES, Task
from holdfast.decoding import convert
from holdfast.transport.dashboard.failure_groups import group_reason
from holdfast.transport.task_filter import TaskFilter
from holdfast.transport.times import parse as parse_time

_PARAMETERS = ("state", "phase", "type", "tag", "key", "worker", "q", "since", "until", "open", "reason", "ids")
MAX_IDS = 100
DAY = 24 * 3600 * SECOND


class DashboardFilter(TaskFilter, frozen=True, kw_only=True):
    """The filter of a task page's address."""

    open: str = ""
    """`yes`: only dead letters that are not resolved."""
    reason: str = ""
    """Failure group of a dead letter."""
    phase: str = ""
    """Of pending tasks: `waiting`, `scheduled` or `retrying`."""
    q: str = ""
    """A part of the id, type, tag or unique key, in any case."""
    since: str = ""
    until: str = ""
    """First and last day of creation, as 2026-08-10 in UTC; they set `created_after` and `created_before`."""
    ids: str = ""
    """Ids of selected tasks, separated by spaces."""

    @property
    def parameters(self) -> dict[str, str]:
        """The query parameters that select this filter."""
        return {name: value for name in _PARAMETERS if (value := getattr(self, name))}

    @property
    def is_counted(self) -> bool:
        """Whether the store keeps a count of the matching tasks, so that none has to be read."""
        return not any(value for name, value in self.parameters.items() if name not in {"state", "type"})

    def matches(self, task: Task) -> bool:
        """Whether a task meets every condition."""
        return (
            super().matches(task)
            and (not self.open or (task.state == tasks.DEAD and task.resolved_at is None))
            and (not self.reason or group_reason(task) == self.reason)
            and (not self.phase or (task.state == tasks.PENDING and tasks.phase(task) == self.phase))
            and (not self.q or self._contains(task))
            and (not self.ids or task.id in self.ids.split())
        )

    def _contains(self, task: Task) -> bool:
        part = self.q.casefold()
        return any(part in (text or "").casefold() for text in (task.id, task.type, task.tag, task.unique_key))


def parse(query: Mapping[str, str]) -> DashboardFilter:
    """The filter in a query string or form; an unknown state is ignored. `status`, the API's name, means `state`."""
    values = {name: query.get(name, "").strip() for name in _PARAMETERS}
    values["state"] = values["state"] or query.get("status", "").strip()
    if values["state"] not in STATES:
        values["state"] = ""
    if values["phase"] not in tasks.PHASES or values["state"] not in {"", tasks.PENDING}:
        values["phase"] = ""
    if values["phase"]:
        values["state"] = tasks.PENDING
    values["ids"] = " ".join(values["ids"].split()[:MAX_IDS])
    first, last = _parse_day(values["since"]), _parse_day(values["until"])
    values |= {"since": values["since"] if first else "", "until": values["until"] if last else ""}
    filters = convert(values, DashboardFilter)
    return replace(filters, created_after=first, created_before=None if last is None else last + DAY)


def _parse_day(text: str) -> Instant | None:
    """When a day begins, in UTC; None if the text is not a day."""
    return parse_time(f"{text}T00:00:00Z") if len(text) == len("2026-08-10") else None


def is_unchanged_since(task: Task, moment: Instant) -> bool:
    """Whether a task was in its present state at a moment; renewals of its lease are no change.

    A bulk operation acts only on the tasks that were counted when its confirmation page was shown.
    """
    since = task.claimed_at if task.state == CLAIMED else task.changed_at
    return task.created_at <= moment and since is not None and since <= moment
