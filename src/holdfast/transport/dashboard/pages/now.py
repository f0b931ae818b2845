"""Now: who owns what, who is alive, how fast work goes, what happened last. Each key sees its own part of that."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from holdfast.core.principal import Principal
from holdfast.core.row import SECOND, Instant
from holdfast.core.session import Session
from holdfast.core.task import STATES, Task
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import event_lines
from holdfast.transport.dashboard import held as holding
from holdfast.transport.dashboard.charts import Chart, Column, draw
from holdfast.transport.dashboard.held import Holding
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.dashboard.pages import agents
from holdfast.transport.dashboard.permissions import JOBS, TASKS, may_see_pace

MOST = 50
"""Rows of what is held; the pages of jobs and tasks show all of it."""
MINUTES = 30
LOOKED_AT = 20_000
"""Events that the chart is made of, at most: a look must stay cheap on a busy log."""
LINES = 12
QUEUES = 8

MANY_TYPES = 500
"""With more types of tasks than these, what is told of tasks may be two seconds old."""

_BEGUN = {"lease.claimed", "task.claimed"}
_FINISHED = {"lease.released", "task.completed"}
_LOST = {"lease.expired", "task.expired", "lease.session_ended", "task.session_ended", "task.failed", "lease.forced"}


class Work(msgspec.Struct, frozen=True):
    """What there is to tell of tasks, to everybody who may see them."""

    held: list[Task] = []
    counts: dict[str, int] = {}
    """By state."""
    queues: list[tuple[str, int, Instant]] = []
    """(type, how many wait, when the oldest was made)"""
    types: int = 0


async def show(visit: Visit) -> Shown:
    """The page."""
    by, ctx, account = visit.by, visit.ctx, visit.account
    work = Work()
    if by.may(TASKS):
        work = await visit.cache.find(
            ("work", account),
            lambda: ctx.read(lambda reader: _work(reader, account)),
            lambda found: found.types > MANY_TYPES,
        )
    speed = None
    if may_see_pace(by):
        speed = await visit.cache.find(("speed", account), lambda: ctx.read(lambda reader: _speed(reader, account)))
    told = await ctx.read(lambda reader: _look(reader, by, ctx.engine, work))
    return Shown("now.html", told | {"speed": speed, "may": {"jobs": by.may(JOBS), "tasks": by.may(TASKS)}})


def _look(reader: Reader, by: Principal, engine: Engine, work: Work) -> dict[str, Any]:
    now = reader.now
    held = [holding.of_task(task, now) for task in work.held]
    if by.may(JOBS):
        held += [holding.of_lease(lease, now, engine) for lease in holding.names(reader, by, "", "", MOST + 1)]
    held.sort(key=lambda each: each.left)
    alive = _alive(reader, by)
    return {
        "held": held[:MOST],
        "more": len(held) > MOST,
        "agents": [
            (agent, agent.expires_at - now, holding.pulse(agent.expires_at - now, agent.ttl)) for agent in alive
        ],
        "waiters": _waiters(by, engine, held),
        "counts": work.counts,
        "ages": [(task_type, many, max(now - oldest, 0)) for task_type, many, oldest in work.queues],
        "lines": event_lines.recent(reader, by, LINES),
        "fresh": reader.log_bounds(by.account)[1] == 0 or not (held or alive or any(work.counts.values())),
    }


def _alive(reader: Reader, by: Principal) -> list[Session]:
    if not by.may(agents.PAGE.scope) or by.name_prefix is not None:
        return []
    return reader.live_sessions(by.account, "", MOST)


def _waiters(by: Principal, engine: Engine, held: list[Holding]) -> dict[str, int]:
    """How many of this account wait on this server; a key that is bound to some names hears of those alone."""
    if by.name_prefix is not None:
        return {"name": sum(each.waiting for each in held), "work": 0}
    return {
        "name": engine.lines.size(by.account) if by.may(JOBS) else 0,
        "work": engine.crowd.size(by.account) if by.may(TASKS) else 0,
    }


def _work(reader: Reader, account: str) -> Work:
    """Three questions, however many types there are; of tasks nothing is kept that is not shown."""
    found = reader.task_counts(account)
    counts = dict.fromkeys(STATES, 0)
    for _, state, many in found:
        counts[state] += many
    held = [holding.without_work(task) for task in reader.running_out(account, MOST + 1)]
    return Work(held, counts, reader.queues(account, QUEUES), len(found))


def _speed(reader: Reader, account: str) -> Chart:
    """What began, was finished and was lost, minute by minute."""
    _, last = reader.log_bounds(account)
    this_minute = reader.now // SECOND // 60
    minutes = range(this_minute - MINUTES + 1, this_minute + 1)
    begun, finished, lost = (dict.fromkeys(minutes, 0) for _ in range(3))
    for minute, kind, many in reader.pace(account, max(last - LOOKED_AT, 0)):
        for counted, kinds in ((begun, _BEGUN), (finished, _FINISHED), (lost, _LOST)):
            if kind in kinds and minute in counted:
                counted[minute] += many
    columns = [
        Column(_clock(minute), begun[minute], (("finished", finished[minute]), ("lost", lost[minute])))
        for minute in minutes
    ]
    sums = (sum(counted.values()) for counted in (begun, finished, lost))
    return draw(columns, "In the last {} minutes: {} begun, {} finished, {} lost or failed.".format(MINUTES, *sums))


def _clock(minute: int) -> str:
    return time.strftime("%H:%M", time.gmtime(minute * 60))


PAGE = Page("now", "Now", "n", "any", show)
