"""Now page: throughput, queues, held work, agents and recent events, each limited to what the key may see."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import STATES
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import event_lines
from holdfast.transport.dashboard.access.permissions import (
    ACCOUNT,
    FILES,
    JOBS,
    QUEUES,
    SESSIONS,
    TASKS,
    may_see_throughput,
    may_use,
)
from holdfast.transport.dashboard.charts.columns import Chart, Column, draw
from holdfast.transport.dashboard.held import Holding
from holdfast.transport.dashboard.lists.held_work import HeldWork, agents_of, held_work
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.pages.queues import paused_queues, read_without_worker

MAX_HELD = 10
"""Rows of held work; the page of held work lists all of it."""
MAX_AGENTS = 10
MINUTES = 30
SCAN_LIMIT = 20_000
"""Events that the chart counts, at most, so that the query stays cheap on a busy log."""
MAX_LINES = 12
MAX_QUEUES = 8

MANY_TYPES = 500
"""With more task types than this, what the page shows of tasks may be two seconds old."""

_BEGUN = {"lease.claimed", "reservation.reserved", "task.claimed"}
_FINISHED = {"lease.released", "reservation.released", "task.completed"}
_LOST = {
    f"{noun}.{how}" for noun in ("lease", "reservation", "task") for how in ("expired", "session_ended", "forced")
} | {"task.failed"}


class TaskOverview(msgspec.Struct, frozen=True):
    """The tasks part of the page, the same for every key that may see tasks."""

    counts: dict[str, int] = {}
    """By state."""
    queues: list[tuple[str, int, Instant]] = []
    """(type, number of pending tasks, when the oldest was created)"""
    types: int = 0


async def show(request: PageRequest) -> TemplateResponse:
    """The page."""
    by, ctx, account = request.by, request.ctx, request.account
    overview = TaskOverview()
    if may_use(by, TASKS):
        overview = await request.cache.get(
            ("task overview", account),
            lambda: ctx.read(lambda reader: _read_task_overview(reader, account)),
            lambda found: found.types > MANY_TYPES,
        )
    throughput = None
    if may_see_throughput(by):
        throughput = await request.cache.get(
            ("throughput", account), lambda: ctx.read(lambda reader: _draw_throughput(reader, account))
        )
    work = await held_work(request)
    variables = await ctx.read(lambda reader: _read_now(reader, by, ctx.engine, overview, work))
    may_see_queues = may_use(by, QUEUES)
    variables |= {
        "paused": await paused_queues(request) if may_see_queues else [],
        "without_worker": await read_without_worker(request) if may_see_queues else [],
    }
    variables |= {"throughput": throughput, "may": {"jobs": may_use(by, JOBS), "tasks": may_use(by, TASKS)}}
    return TemplateResponse("now.html", variables)


def _read_now(reader: Reader, by: Principal, engine: Engine, overview: TaskOverview, work: HeldWork) -> dict[str, Any]:
    now = reader.now
    held = work.holdings(reader, engine)
    agents = agents_of(work.sessions, work.rows, held)
    return {
        "held": held[:MAX_HELD],
        "held_total": work.total,
        "agents": agents[:MAX_AGENTS],
        "agents_total": len(agents),
        "may_see_agents": may_use(by, SESSIONS),
        "now": now,
        "waiters": _count_waiters(by, engine, held),
        "counts": overview.counts,
        "queues": [(task_type, count, max(now - oldest, 0)) for task_type, count, oldest in overview.queues],
        "lines": event_lines.recent(reader, by, MAX_LINES),
        "empty": reader.log_bounds(by.account)[1] == 0 or not (held or agents or any(overview.counts.values())),
    }


def _count_waiters(by: Principal, engine: Engine, held: list[Holding]) -> dict[str, int]:
    """How many calls of this account wait on this server; a key with a name prefix sees only those for its names."""
    if by.name_prefix is not None:
        files = sum(each.waiting for each in held if each.kind == Reservation.noun)
        return {"name": sum(each.waiting for each in held) - files, "files": files, "work": 0}
    return {
        "name": engine.name_waiters.size(by.account) if may_use(by, JOBS) else 0,
        "files": engine.reservation_waiters.size(by.account) if may_use(by, FILES) else 0,
        "work": engine.task_waiters.size(by.account) if may_use(by, TASKS) else 0,
    }


def _read_task_overview(reader: Reader, account: str) -> TaskOverview:
    """Two queries, however many types there are."""
    found = reader.task_counts(account)
    counts = dict.fromkeys(STATES, 0)
    for _, state, count in found:
        counts[state] += count
    return TaskOverview(counts, reader.queues(account, MAX_QUEUES), len(found))


def _draw_throughput(reader: Reader, account: str) -> Chart:
    """Work that began, was finished and was lost in each minute."""
    _, last = reader.log_bounds(account)
    this_minute = reader.now // SECOND // 60
    minutes = range(this_minute - MINUTES + 1, this_minute + 1)
    begun, finished, lost = (dict.fromkeys(minutes, 0) for _ in range(3))
    for minute, kind, count in reader.events_per_minute(account, max(last - SCAN_LIMIT, 0)):
        for totals, kinds in ((begun, _BEGUN), (finished, _FINISHED), (lost, _LOST)):
            if kind in kinds and minute in totals:
                totals[minute] += count
    columns = [
        Column(_format_time(minute), begun[minute], (("finished", finished[minute]), ("lost", lost[minute])))
        for minute in minutes
    ]
    sums = (sum(totals.values()) for totals in (begun, finished, lost))
    return draw(columns, "In the last {} minutes: {} begun, {} finished, {} lost or failed.".format(MINUTES, *sums))


def _format_time(minute: int) -> str:
    return time.strftime("%H:%M", time.gmtime(minute * 60))


PAGE = Page("now", "Now", "n", ACCOUNT, show)
