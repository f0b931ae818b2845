"""Groups dead letters by failure reason; reasons that differ only in numbers, ids or quotes are one group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from holdfast.core import task as tasks
from holdfast.core.row import Instant
from holdfast.core.task import LEASE_EXPIRED, Attempt, Task
from holdfast.transport.dashboard.labels import duration

MAX_REASON, MAX_TEXT = 120, 240
NOT_RENEWED = "lease expired: its worker did not renew it"

_VARIABLE_PARTS = (
    (re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22}"), "<id>"),
    (re.compile(r"https?://\S+"), "<address>"),
    (re.compile(r"\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b"), "<id>"),
    (re.compile(r"\"[^\"]{0,200}\"|'[^']{0,200}'"), "<text>"),
    (re.compile(r"\d+"), "<n>"),
)


class FailureGroup(msgspec.Struct):
    """Dead letters with one reason."""

    reason: str
    count: int
    newest: Example
    types: Counter[str]
    """How many there are of each type."""


class Example(msgspec.Struct, frozen=True):
    """The fields of a task that the page shows; the task itself may be large and is not kept."""

    id: str
    changed_at: Instant
    text: str
    """Why the task failed, in the words of its worker or of the server."""


def group_reason(task: Task) -> str:
    """The reason that names a task's group: its error code, else its failure reason without the variable parts."""
    attempt = tasks.last_attempt(task)
    if task.dead_cause == LEASE_EXPIRED:
        return "lease expired: the session of its worker ended" if _ended_with_session(attempt) else NOT_RENEWED
    if attempt is not None and attempt.code:
        return attempt.code[:MAX_REASON]
    return normalize_reason(task.failure_reason or "")


def failure_text(task: Task) -> str:
    """Why a dead letter failed. Of an expired lease: who held it, and the last that its worker reported."""
    if task.dead_cause != LEASE_EXPIRED:
        return (task.failure_reason or "")[:MAX_REASON]
    attempt = tasks.last_attempt(task)
    worker = (attempt.worker if attempt else None) or "an unnamed worker"
    how = "its session ended" if _ended_with_session(attempt) else f"no renewal for {duration(tasks.lease_ttl(task))}"
    note = f"; last note: {attempt.note}" if attempt and attempt.note else ""
    earlier = f"; failure before: {task.failure_reason}" if task.failure_reason else ""
    return f"held by {worker}, {how}{note}{earlier}"[:MAX_TEXT]


def _ended_with_session(attempt: Attempt | None) -> bool:
    """Whether the lease ended because the session it was claimed for had expired."""
    return attempt is not None and attempt.reason is not None


def normalize_reason(reason: str) -> str:
    """A failure reason without its numbers, ids, addresses and quoted parts."""
    for pattern, placeholder in _VARIABLE_PARTS:
        reason = pattern.sub(placeholder, reason)
    return " ".join(reason.split())[:MAX_REASON].strip() or "no reason given"


class FailureGroups:
    """Groups that are filled a page of tasks at a time."""

    def __init__(self) -> None:
        self.count = 0
        self._groups: dict[str, FailureGroup] = {}

    def add(self, found: Iterable[Task]) -> None:
        """Add tasks to their groups."""
        for task in found:
            self.count += 1
            reason = group_reason(task)
            example = Example(task.id, task.changed_at, failure_text(task))
            group = self._groups.setdefault(reason, FailureGroup(reason, 0, example, Counter()))
            group.count += 1
            group.types[task.type] += 1
            if example.changed_at > group.newest.changed_at:
                group.newest = example

    def largest(self) -> list[FailureGroup]:
        """All groups, largest first."""
        return sorted(self._groups.values(), key=lambda group: (-group.count, group.reason))
