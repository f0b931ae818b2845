"""Tasks of full concurrency keys at the head of a queue, which one claim has passed over: the next one begins behind.

A claim finds the first ready task whose key has room. Every ready task with a key before it then belongs to a full key.
That stays so until one of these keys has room again, or a ready task with a key comes before it. Both are noticed here;
after a commit of another process nothing is known any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.core.row import Instant, Row
from holdfast.core.task import Task

MAX_QUEUES = 1_000
"""Of more queues than these nothing is remembered."""


class Place(NamedTuple):
    """Where a task is in the order of its queue."""

    before: int
    """Its priority, negated: higher ones come first."""
    place: Instant
    id: str


def place_of(task: Task) -> Place:
    """Where a task is in the order of its queue."""
    return Place(-task.priority, task.place, task.id)


class PassedOver:
    """By queue where the next claim begins. For the thread that has the connection which writes."""

    def __init__(self) -> None:
        self._version: int | None = None
        self._known: dict[tuple[str, str], tuple[Place, frozenset[str]]] = {}

    def begin(self, version: int) -> None:
        """Forget everything if another process has committed; `version` is SQLite's `data_version`."""
        if version != self._version:
            self.forget()
            self._version = version

    def forget(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._version = None

    def start(self, queue: tuple[str, str], full: Iterable[str]) -> Place | None:
        """The place before which all ready tasks with a key belong to these full keys, if one is known."""
        place, passed = self._known.get(queue, (None, frozenset[str]()))
        return place if passed.issubset(full) else None

    def remember(self, queue: tuple[str, str], first: Task, full: Iterable[str]) -> None:
        """The first task whose key is none of the full ones."""
        if len(self._known) < MAX_QUEUES or queue in self._known:
            self._known[queue] = place_of(first), frozenset(full)

    def save(self, rows: Iterable[Row]) -> None:
        """Forget a queue in which one of the saved tasks comes before the known place."""
        for row in rows if self._known else ():
            if isinstance(row, Task) and row.ready and row.concurrency_key is not None and row.requires is None:
                known = self._known.get((row.account, row.type))
                if known is not None and place_of(row) < known[0]:
                    del self._known[row.account, row.type]
