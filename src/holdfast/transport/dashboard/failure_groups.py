"""Groups dead letters by type and failure reason; reasons that differ only in numbers, ids or quotes are one group."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from holdfast.core import task as tasks
from holdfast.core.row import Instant
from holdfast.core.task import LAPSED, Task

MAX_REASON = 120

_VARIABLE_PARTS = (
    (re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22}"), "<id>"),
    (re.compile(r"https?://\S+"), "<address>"),
    (re.compile(r"\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b"), "<id>"),
    (re.compile(r"\"[^\"]{0,200}\"|'[^']{0,200}'"), "<text>"),
    (re.compile(r"\d+"), "<n>"),
)


class FailureGroup(msgspec.Struct):
    """Dead letters of one type with one reason."""

    type: str
    reason: str
    count: int
    newest: Example


class Example(msgspec.Struct, frozen=True):
    """The fields of a task that the page shows; the task itself may be large and is not kept."""

    id: str
    changed_at: Instant
    failure_reason: str


def group_reason(task: Task) -> str:
    """The reason that names a task's group: its error code, else its failure reason without the variable parts."""
    if task.dead_cause == LAPSED:
        return "lease expired"
    attempt = tasks.last_attempt(task)
    if attempt is not None and attempt.code:
        return attempt.code[:MAX_REASON]
    return normalize_reason(task.failure_reason or "")


def normalize_reason(reason: str) -> str:
    """A failure reason without its numbers, ids, addresses and quoted parts."""
    for pattern, placeholder in _VARIABLE_PARTS:
        reason = pattern.sub(placeholder, reason)
    return " ".join(reason.split())[:MAX_REASON].strip() or "no reason given"


class FailureGroups:
    """Groups that are filled a page of tasks at a time."""

    def __init__(self) -> None:
        self.count = 0
        self._groups: dict[tuple[str, str], FailureGroup] = {}

    def add(self, found: Iterable[Task]) -> None:
        """Add tasks to their groups."""
        for task in found:
            self.count += 1
            reason = group_reason(task)
            example = Example(task.id, task.changed_at, (task.failure_reason or "")[:MAX_REASON])
            group = self._groups.setdefault((task.type, reason), FailureGroup(task.type, reason, 0, example))
            group.count += 1
            if example.changed_at > group.newest.changed_at:
                group.newest = example

    def largest(self) -> list[FailureGroup]:
        """All groups, largest first."""
        return sorted(self._groups.values(), key=lambda group: (-group.count, group.type, group.reason))
