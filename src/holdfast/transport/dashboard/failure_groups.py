"""What dead letters died of, in families: the same trouble with other numbers in it is one trouble."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from holdfast.core import task as tasks
from holdfast.core.row import Instant
from holdfast.core.task import LAPSED, Task

LONGEST = 120

_PARTS = (
    (re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22}"), "<id>"),
    (re.compile(r"https?://\S+"), "<address>"),
    (re.compile(r"\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b"), "<id>"),
    (re.compile(r"\"[^\"]{0,200}\"|'[^']{0,200}'"), "<text>"),
    (re.compile(r"\d+"), "<n>"),
)


class Family(msgspec.Struct):
    """Dead letters of one type that died of one thing."""

    type: str
    reason: str
    count: int
    newest: Example


class Example(msgspec.Struct, frozen=True):
    """One of them: of tasks nothing is kept that is not shown."""

    id: str
    changed_at: Instant
    failure_reason: str


def family_of(task: Task) -> str:
    """An error code says it best; else what was said, without what differs from one time to the next."""
    if task.dead_cause == LAPSED:
        return "lease ran out"
    story = tasks.last_attempt(task)
    if story is not None and story.code:
        return story.code[:LONGEST]
    return family(task.failure_reason or "")


def family(reason: str) -> str:
    """A message without its numbers, ids, addresses and quoted parts."""
    told = reason
    for pattern, word in _PARTS:
        told = pattern.sub(word, told)
    return " ".join(told.split())[:LONGEST].strip() or "no reason given"


class Groups:
    """Dead letters by type and family, added a page at a time."""

    def __init__(self) -> None:
        self.count = 0
        self._known: dict[tuple[str, str], Family] = {}

    def add(self, found: Iterable[Task]) -> None:
        """Sort some more in."""
        for task in found:
            self.count += 1
            reason = family_of(task)
            example = Example(task.id, task.changed_at, (task.failure_reason or "")[:LONGEST])
            group = self._known.setdefault((task.type, reason), Family(task.type, reason, 0, example))
            group.count += 1
            if example.changed_at > group.newest.changed_at:
                group.newest = example

    def largest(self) -> list[Family]:
        """All of them, the largest first."""
        return sorted(self._known.values(), key=lambda group: (-group.count, group.type, group.reason))
