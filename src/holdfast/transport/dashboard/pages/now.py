"""Now: who owns what, who is alive, how fast work goes, what happened last."""

from __future__ import annotations

import time
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.core.principal import Principal
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import PENDING, STATES
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import holding, telling
from holdfast.transport.dashboard.charts import Chart, Column, draw
from holdfast.transport.dashboard.holding import Holding
from holdfast.transport.dashboard.page import Page, Shown, Visit

MOST = 50
"""Rows of what is held; the pages of jobs and tasks show all of it."""
MINUTES = 30
LOOKED_AT = 20_000
"""Events that the chart is made of, at most: a look must stay cheap on a busy log."""
SPEED_SECONDS = 2.0
MOST_SPEEDS = 1_000
LINES = 12
QUEUES = 8

_speeds: WeakKeyDictionary[Engine, dict[str, tuple[Chart, float]]] = WeakKeyDictionary()
_BEGUN = {"lease.claimed", "task.claimed"}
_FINISHED = {"lease.released", "task.completed"}
_LOST = {"lease.expired", "task.expired", "lease.session_ended", "task.session_ended", "task.failed", "lease.forced"}


async def show(visit: Visit) -> Shown:
    """The page."""
    by, engine = visit.by, visit.door.engine
    return Shown("now.html", await visit.door.read(lambda reader: _look(reader, by, engine)))


def _look(reader: Reader, by: Principal, engine: Engine) -> dict[str, Any]:
    now = reader.now
    held: list[Holding] = []
    if by.may("jobs:read"):
        held += [holding.of_lease(lease, now, engine) for lease in holding.names(reader, by, "", "", MOST + 1)]
    if by.may("tasks:read"):
        held += [holding.of_task(task, now) for task in holding.claimed_tasks(reader, by.account, MOST + 1)]
    held.sort(key=lambda each: each.left)
    agents = reader.live_sessions(by.account, "", MOST) if by.name_prefix is None else []
    counts = _counts(reader.task_counts(by.account)) if by.may("tasks:read") else {}
    return {
        "held": held[:MOST],
        "more": len(held) > MOST,
        "agents": [
            (agent, agent.expires_at - now, holding.pulse(agent.expires_at - now, agent.ttl)) for agent in agents
        ],
        "waiters": _waiters(by, engine, held),
        "counts": counts,
        "speed": _speed_lately(reader, by.account, engine),
        "ages": _ages(reader, by.account, now) if by.may("tasks:read") else [],
        "lines": telling.recent(reader, by, LINES),
        "fresh": reader.log_bounds(by.account)[1] == 0 or not (held or agents or any(counts.values())),
    }


def _waiters(by: Principal, engine: Engine, held: list[Holding]) -> dict[str, int]:
    """How many of this account wait on this server; a key that is bound to some names hears of those alone."""
    if by.name_prefix is not None:
        return {"name": sum(each.waiting for each in held), "work": 0}
    return {"name": engine.lines.size(by.account), "work": engine.crowd.size(by.account)}


def _counts(found: list[tuple[str, str, int]]) -> dict[str, int]:
    return {state: sum(many for _, known, many in found if known == state) for state in STATES}


def _speed_lately(reader: Reader, account: str, engine: Engine) -> Chart:
    """The same chart for everybody who looks within two seconds: on a busy log it is the dearest part of the page."""
    known = _speeds.setdefault(engine, {})
    drawn, until = known.get(account, (None, 0.0))
    if drawn is None or time.monotonic() >= until:
        drawn = _speed(reader, account)
        if len(known) >= MOST_SPEEDS:
            known.clear()
        known[account] = (drawn, time.monotonic() + SPEED_SECONDS)
    return drawn


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


def _ages(reader: Reader, account: str, now: Instant) -> list[tuple[str, int, Instant]]:
    """(queue, how many wait, how long the oldest has waited), the longest wait first."""
    found = []
    for task_type, state, many in reader.task_counts(account):
        if state == PENDING:
            oldest = reader.oldest_task(account, task_type, PENDING)
            found.append((task_type, many, now - (oldest or now)))
    return sorted(found, key=lambda queue: -queue[2])[:QUEUES]


PAGE = Page("now", "Now", "n", "any", show)
