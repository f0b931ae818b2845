"""Task filter: which tasks a list contains, and how one page of them is found. Used by the API and the dashboard."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core.page import PAGE_BYTES, is_full, record_size
from holdfast.core.row import Instant
from holdfast.core.task import PENDING, ROOM, Task
from holdfast.store.contract import Reader, TaskPath
from holdfast.transport.full_queues import FullQueues

NEWEST = "tsk_~"
"""Cursor that sorts after every task id."""
SCAN_PAGE = 500
"""Tasks read from the store at a time."""


class TaskFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that a task must all meet; an empty one is met by every task."""

    state: str = ""
    type: str = ""
    tag: str = ""
    key: str = ""
    waits_for: str = ""
    worker: str = ""
    session: str = ""
    resolved: bool | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    updated_after: Instant | None = None
    updated_before: Instant | None = None

    @property
    def path(self) -> TaskPath:
        """The conditions for which the store has an index."""
        return TaskPath(
            type=self.type or None,
            state=self.state or None,
            tag=self.tag or None,
            unique_key=self.key or None,
            waits_for=self.waits_for or None,
        )

    @property
    def without_room(self) -> TaskFilter:
        """The other conditions of one for tasks that wait for room: they are pending, and wait for nothing else."""
        return replace(self, waits_for="", state=self.state or PENDING)

    def matches(self, task: Task) -> bool:
        """Whether a task meets every condition."""
        return (
            self.state in {"", task.state}
            and self.type in {"", task.type}
            and self.tag in {"", task.tag}
            and self.key in {"", task.unique_key}
            and self.waits_for in {"", task.waits_for}
            and self.worker in {"", task.worker}
            and self.session in {"", task.session}
            and self.resolved in {None, task.resolved_at is not None}
            and _is_within(task.created_at, self.created_after, self.created_before)
            and _is_within(task.changed_at, self.updated_after, self.updated_before)
        )


class TaskPage(msgspec.Struct, frozen=True):
    """One page of matching tasks, newest first."""

    tasks: list[Task]
    next_cursor: str
    """Cursor of the next page; empty on the last one."""
    now: Instant
    wall: Instant
    """The wall clock, which schedules follow."""


def find_tasks(
    reader: Reader, account: str, filters: TaskFilter, before: str, *, limit: int, scan_limit: int
) -> TaskPage:
    """Up to `limit` matching tasks older than a cursor, in about `PAGE_BYTES` bytes.

    At most `scan_limit` tasks are read, so a filter that few tasks match gets a short page and a cursor.
    """
    full_queues = FullQueues(reader, account) if filters.waits_for == ROOM else None
    if full_queues is not None:
        filters = filters.without_room
    found: list[Task] = []
    scanned = size = 0
    while scanned < scan_limit:
        page = reader.tasks(account, filters.path, before, SCAN_PAGE, PAGE_BYTES)
        scanned += len(page)
        for task in page:
            if filters.matches(task) and (full_queues is None or full_queues.is_blocked(task)):
                if len(found) == limit or size >= PAGE_BYTES:
                    return TaskPage(found, before, reader.now, reader.wall)
                found.append(task)
                size += record_size(task)
            before = task.id
        if not is_full(page, SCAN_PAGE, PAGE_BYTES):
            return TaskPage(found, "", reader.now, reader.wall)
    return TaskPage(found, before, reader.now, reader.wall)


def _is_within(instant: Instant, after: Instant | None, before: Instant | None) -> bool:
    return (after is None or instant >= after) and (before is None or instant < before)
