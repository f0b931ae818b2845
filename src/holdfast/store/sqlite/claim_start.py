"""Where in a queue the next claim begins: behind tasks of full concurrency keys that an earlier claim has skipped.

A claim finds the first ready task whose key has room. Every ready task with a key before it then belongs to a full key.
That stays so until one of these keys has room again, or a ready task with a key comes before it. Both are noticed here;
after a commit of another process nothing is known any more.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.core.row import Instant, Row
from holdfast.core.task import Task, queue_order

Place = tuple[int, Instant, str]
"""Where a task is in its queue, as `queue_order` says."""

MAX_QUEUES = 1_000
"""Of more queues than these nothing is remembered."""


class ClaimStarts:
    """Cache: where in each queue the next claim begins, behind tasks of full concurrency keys.

    Used by one thread at a time, the one that writes.
    """

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
            self._known[queue] = queue_order(first), frozenset(full)

    def note_saved(self, rows: Iterable[Row]) -> None:
        """Forget each queue in which one of the saved tasks comes before the known place."""
        for row in rows if self._known else ():
            if isinstance(row, Task) and row.ready and row.concurrency_key is not None and row.requires is None:
                known = self._known.get((row.account, row.type))
                if known is not None and queue_order(row) < known[0]:
                    del self._known[row.account, row.type]
