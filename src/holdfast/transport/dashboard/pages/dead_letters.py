"""Dead letters page: dead letters grouped by failure reason, each group with its bulk operations."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.core.errors import HoldfastError
from holdfast.core.task import DEAD
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.access.permissions import TASKS, may_use
from holdfast.transport.dashboard.bulk import OPERATION, VERBS
from holdfast.transport.dashboard.failure_groups import FailureGroups
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.task_filter import DashboardFilter
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.task_filter import NEWEST, SCAN_PAGE, TaskPage, find_tasks

SCAN_LIMIT = 10_000
MAX_GROUPS = 100
COUNT_LIMIT = 1_000


async def show(request: PageRequest) -> TemplateResponse:
    """The groups, largest first."""
    by = request.by
    everything = request.query.get("all") == "yes"
    filters = DashboardFilter(state=DEAD, type=request.query.get("type", "").strip(), open="" if everything else "yes")
    grouped = await request.cache.get(
        ("dead letters", by.account, filters),
        lambda: _read_groups(request.ctx, by.account, filters),
        lambda variables: bool(variables["read"] > SCAN_PAGE),
    )
    variables = {
        "filters": filters,
        "all": everything,
        "verbs": [verb for verb in VERBS.values() if verb.state == DEAD] if may_use(by, OPERATION) else [],
        "operations": request.bulk_operations.list_running(by.account),
    }
    return TemplateResponse("dead-letters.html", grouped | variables)


async def count_open(request: PageRequest) -> int:
    """How many dead letters are not resolved, for the navigation; 0 if the key may not see them.

    The count is exact up to `COUNT_LIMIT` dead letters; beyond, resolved ones may be counted too.
    """
    account = request.account
    if not may_use(request.by, TASKS):
        return 0

    def count(reader: Reader) -> int:
        total = sum(count for _, state, count in reader.task_counts(account) if state == DEAD)
        return total - reader.count_resolved(account, COUNT_LIMIT) if total else 0

    try:
        return await request.cache.get(
            ("open dead letters", account), lambda: request.ctx.read(count), lambda found: found > SCAN_PAGE
        )
    except HoldfastError:
        return 0  # also shown on the page of an error: a store that cannot be read must not hide that error


async def _read_groups(ctx: HandlerContext, account: str, filters: DashboardFilter) -> dict[str, Any]:
    """Read page by page: other requests run in between, and each page is freed before the next one is read."""
    groups, read, before = FailureGroups(), 0, NEWEST
    while True:
        page: TaskPage = await ctx.read(partial(_read_page, account=account, filters=filters, before=before))
        groups.add(page.tasks)
        read, before = read + SCAN_PAGE, page.next_cursor
        if not before or read >= SCAN_LIMIT:
            break
    found = groups.largest()
    return {
        "groups": found[:MAX_GROUPS],
        "more": len(found) > MAX_GROUPS,
        "count": groups.count,
        "read": read,
        "scanned": SCAN_LIMIT if before else 0,
        "now": page.now,
    }


def _read_page(reader: Reader, account: str, filters: DashboardFilter, before: str) -> TaskPage:
    return find_tasks(reader, account, filters, before, limit=SCAN_PAGE, scan_limit=SCAN_PAGE)


PAGE = Page("dead-letters", "Dead letters", "d", TASKS, show)
