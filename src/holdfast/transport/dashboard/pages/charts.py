"""Charts page: tasks, held work and expiries over 30 minutes to 30 days, each limited to what the key may see."""

from __future__ import annotations

from typing import Any

from holdfast.core.principal import Principal
from holdfast.core.rollups.intervals import RANGES, ChartRange
from holdfast.core.rollups.rollup import Rollup
from holdfast.core.row import Instant
from holdfast.store.contract import Store
from holdfast.transport.dashboard.access.permissions import ACCOUNT, FILES, JOBS, TASKS, may_use
from holdfast.transport.dashboard.charts.rollups import (
    holder_charts,
    points,
    step_text,
    task_charts,
    time_texts,
    type_rows,
)
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse

Stored = tuple[Instant, Instant | None, list[tuple[Instant, Rollup]]]
"""(now, until when everything is counted or None if nothing is, roll-ups with their starts)"""


async def show(request: PageRequest) -> TemplateResponse:
    """The page; an unknown range shows the first one."""
    shown = next((each for each in RANGES if each.name == request.query.get("range")), RANGES[0])
    account = request.account
    found = await request.cache.get(
        ("charts", account, shown.name), lambda: request.ctx.use_store(lambda store: _read(store, account, shown))
    )
    task_type = request.query.get("type") or None
    return TemplateResponse("charts.html", _variables(request.by, shown, task_type, found))


def _read(store: Store, account: str, shown: ChartRange) -> Stored:
    counted = store.rollups.counted_until(account)
    with store.read() as reader:
        now, last = reader.now, reader.log_bounds(account)[1]
    if counted is None:
        return now, None, []
    until = now if counted.seq >= last else min(counted.counted_to, now)
    return now, until, store.rollups.page(account, shown.resolution.length, shown.starts(until).start)


def _variables(by: Principal, shown: ChartRange, task_type: str | None, read: Stored) -> dict[str, Any]:
    now, until, stored = read
    # A key with a name prefix may not learn how many other names there are.
    may = {
        "tasks": may_use(by, TASKS),
        "jobs": may_use(by, JOBS) and by.name_prefix is None,
        "files": may_use(by, FILES) and by.name_prefix is None,
    }
    starts = shown.starts(now if until is None else until)
    found, times, per = points(stored, shown, starts), time_texts(shown, starts), step_text(shown)
    charts = task_charts(found, times, task_type, per) if may["tasks"] else []
    if task_type is None and any(may.values()):
        charts += holder_charts(found, times, per, may)
    return {
        "ranges": RANGES,
        "shown": shown,
        "type": task_type,
        "until": until,
        "charts": charts if until is not None else [],
        "types": type_rows(found) if may["tasks"] and until is not None else [],
        "may_see_any": any(may.values()),
    }


PAGE = Page("charts", "Charts", "c", ACCOUNT, show)
