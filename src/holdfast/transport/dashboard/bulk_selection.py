"""Selection for a bulk operation: counts the tasks that match a filter, and collects their ids."""

from __future__ import annotations

from functools import partial

import msgspec

from holdfast.core.errors import Conflict
from holdfast.core.row import Instant
from holdfast.core.task import Task
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row
from holdfast.transport.dashboard.task_filter import DashboardFilter, is_unchanged_since
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.task_filter import NEWEST, SCAN_PAGE, TaskPage, find_tasks

MAX_TASKS = 100_000
SCAN_LIMIT = 20_000
"""Newest tasks that are read for a filter of which the store keeps no count."""


class TaskCount(msgspec.Struct, frozen=True):
    """How many tasks matched at a moment."""

    count: int
    moment: Instant
    complete: bool = True
    """If false, older tasks were not read and may match too."""


async def count(ctx: HandlerContext, account: str, filters: DashboardFilter) -> TaskCount:
    """How many tasks match now."""
    if filters.is_counted:
        return await ctx.read(lambda reader: TaskCount(_stored_count(reader, account, filters), reader.now))
    now = await ctx.read(lambda reader: reader.now)
    ids, complete = await _scan(ctx, account, filters, now)
    return TaskCount(len(ids), now, complete=complete)


async def collect(ctx: HandlerContext, account: str, filters: DashboardFilter, moment: Instant) -> list[str]:
    """The ids of the tasks that match and have not changed since a moment, newest first."""
    ids, _ = await _scan(ctx, account, filters, moment)
    return ids


async def _scan(ctx: HandlerContext, account: str, filters: DashboardFilter, moment: Instant) -> tuple[list[str], bool]:
    """(ids, whether all tasks were read). Each page is a read of its own, so that other requests run in between."""
    if filters.ids:
        return await ctx.read(partial(_read_selected, account=account, filters=filters, moment=moment)), True
    found: list[str] = []
    before = NEWEST
    for _ in range(0, MAX_TASKS + SCAN_PAGE if filters.is_counted else SCAN_LIMIT, SCAN_PAGE):
        page: TaskPage = await ctx.read(partial(_read_page, account=account, filters=filters, before=before))
        found += [task.id for task in page.tasks if is_unchanged_since(task, moment)]
        if len(found) > MAX_TASKS:
            raise Conflict(f"more than {MAX_TASKS} tasks match: narrow the filter")
        if not page.next_cursor:
            return found, True
        before = page.next_cursor
    return found, False


def _read_page(reader: Reader, account: str, filters: DashboardFilter, before: str) -> TaskPage:
    return find_tasks(reader, account, filters, before, limit=SCAN_PAGE, scan_limit=SCAN_PAGE)


def _read_selected(reader: Reader, account: str, filters: DashboardFilter, moment: Instant) -> list[str]:
    rows = [usable_row(reader, Task, account, task_id) for task_id in dict.fromkeys(filters.ids.split())]
    return [row.id for row in rows if row is not None and filters.matches(row) and is_unchanged_since(row, moment)]


def _stored_count(reader: Reader, account: str, filters: DashboardFilter) -> int:
    return sum(
        count
        for task_type, state, count in reader.task_counts(account)
        if filters.type in {"", task_type} and filters.state in {"", state}
    )
