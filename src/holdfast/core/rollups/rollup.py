"""One roll-up: what happened in an interval, and the highest numbers that were seen. Two are merged into one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.rollups.histogram import Histogram, merge_histograms

MAX_TYPES = 20
"""Task types that are counted apart in one roll-up; all further ones are counted together."""


class TaskCounts(msgspec.Struct, omit_defaults=True):
    """The tasks of one type. `failed` and `expired` count attempts, also those that made the task a dead letter."""

    created: int = 0
    claimed: int = 0
    completed: int = 0
    failed: int = 0
    expired: int = 0
    dead: int = 0
    """Tasks that became dead letters."""
    waits: Histogram = {}
    """How long tasks that were claimed had been claimable."""
    runs: Histogram = {}
    """How long attempts took that were completed or failed."""
    pending: int | None = None
    delayed: int | None = None
    """Pending tasks that cannot be claimed yet: scheduled, retried later, or waiting for something."""
    running: int | None = None


class Rollup(msgspec.Struct, omit_defaults=True):
    """All that is counted of an account in one interval. The numbers that may be None are the highest ones seen."""

    claimed: int = 0
    """Jobs, locks and reservations that were claimed."""
    expired: int = 0
    """Jobs, locks and reservations whose lease expired."""
    types: dict[str, TaskCounts] = {}
    other: TaskCounts = msgspec.field(default_factory=TaskCounts)
    """Tasks of the types that are not counted apart."""
    held_names: int | None = None
    """Held jobs and locks."""
    held_files: int | None = None
    """Held reservations."""
    held_tasks: int | None = None
    pending: int | None = None
    delayed: int | None = None

    def of_type(self, task_type: str | None) -> TaskCounts:
        """The counts of a type, to be added to; of the other ones if the type is unknown."""
        if task_type is None:
            return self.other
        if task_type not in self.types:
            self.types[task_type] = TaskCounts()
        return self.types[task_type]


_GAUGES = ("pending", "delayed", "running")
_COUNTS = ("created", "claimed", "completed", "failed", "expired", "dead")


def merge_counts(one: TaskCounts, other: TaskCounts) -> TaskCounts:
    """Counts are added, and of the other numbers the higher one is taken."""
    numbers: dict[str, Any] = {name: getattr(one, name) + getattr(other, name) for name in _COUNTS}
    numbers |= {name: highest(getattr(one, name), getattr(other, name)) for name in _GAUGES}
    waits, runs = merge_histograms(one.waits, other.waits), merge_histograms(one.runs, other.runs)
    return TaskCounts(waits=waits, runs=runs, **numbers)


def merge(one: Rollup, other: Rollup) -> Rollup:
    """The roll-up of both, with at most MAX_TYPES types."""
    types = dict(one.types)
    for task_type, counts in other.types.items():
        types[task_type] = merge_counts(types.get(task_type, TaskCounts()), counts)
    merged = Rollup(
        claimed=one.claimed + other.claimed,
        expired=one.expired + other.expired,
        types=types,
        other=merge_counts(one.other, other.other),
        held_names=highest(one.held_names, other.held_names),
        held_files=highest(one.held_files, other.held_files),
        held_tasks=highest(one.held_tasks, other.held_tasks),
        pending=highest(one.pending, other.pending),
        delayed=highest(one.delayed, other.delayed),
    )
    return limit_types(merged)


def limit_types(rollup: Rollup) -> Rollup:
    """The roll-up with its busiest types; the rest are added to the other ones."""
    if len(rollup.types) <= MAX_TYPES:
        return rollup
    ranked = sorted(rollup.types, key=lambda each: (-activity(rollup.types[each]), each))
    kept = {task_type: rollup.types[task_type] for task_type in sorted(ranked[:MAX_TYPES])}
    rest = all_counts(rollup.types[task_type] for task_type in ranked[MAX_TYPES:])
    return replace(rollup, types=kept, other=merge_counts(rollup.other, rest))


def all_counts(parts: Iterable[TaskCounts]) -> TaskCounts:
    """The merged counts of several types."""
    total = TaskCounts()
    for part in parts:
        total = merge_counts(total, part)
    return total


def activity(counts: TaskCounts) -> int:
    """How much there is to show of a type: its events and the tasks that it has."""
    happened = sum(getattr(counts, name) for name in _COUNTS)
    return int(happened + (counts.pending or 0) + (counts.running or 0))


def highest(one: int | None, other: int | None) -> int | None:
    """The higher of two numbers, of which each may be unknown."""
    return max((number for number in (one, other) if number is not None), default=None)
