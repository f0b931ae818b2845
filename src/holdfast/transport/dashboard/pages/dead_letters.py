"""Dead letters, grouped by what they died of: one look tells what to mend, one step brings a whole group back."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.core.task import DEAD
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import task_filter
from holdfast.transport.dashboard.bulk import RUNNING, SCOPE, VERBS
from holdfast.transport.dashboard.failure_groups import Groups
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.dashboard.permissions import TASKS
from holdfast.transport.dashboard.task_filter import AT_ONCE, NEWEST, Found, Wanted
from holdfast.transport.http.context import HandlerContext

LOOKED_AT = 10_000
GROUPS = 100


async def show(visit: Visit) -> Shown:
    """The groups, the largest first."""
    by = visit.by
    everything = visit.query.get("all") == "yes"
    asked = Wanted(state=DEAD, type=visit.query.get("type", "").strip(), open="" if everything else "yes")
    found = await visit.cache.find(
        ("dead letters", by.account, asked),
        lambda: _groups(visit.ctx, by.account, asked),
        lambda told: bool(told["looked"] > AT_ONCE),
    )
    told = {
        "asked": asked,
        "all": everything,
        "verbs": [verb for verb in VERBS.values() if verb.state == DEAD] if by.may(SCOPE) else [],
        "bulks": [bulk for bulk in visit.bulks.of(by.account) if bulk.state == RUNNING],
    }
    return Shown("dead-letters.html", found | told)


async def _groups(ctx: HandlerContext, account: str, asked: Wanted) -> dict[str, Any]:
    """In looks that others come between; each page of tasks is let go of before the next one is read."""
    groups, looked, before = Groups(), 0, NEWEST
    while True:
        page: Found = await ctx.read(partial(_page, account=account, asked=asked, before=before))
        groups.add(page.tasks)
        looked, before = looked + AT_ONCE, page.following
        if not before or looked >= LOOKED_AT:
            break
    found = groups.largest()
    return {
        "groups": found[:GROUPS],
        "more": len(found) > GROUPS,
        "count": groups.count,
        "looked": looked,
        "looked_at": LOOKED_AT if before else 0,
        "now": page.now,
    }


def _page(reader: Reader, account: str, asked: Wanted, before: str) -> Found:
    return task_filter.look(reader, account, asked, before, limit=AT_ONCE, most=AT_ONCE)


PAGE = Page("dead-letters", "Dead letters", "d", TASKS, show, within="tasks")
