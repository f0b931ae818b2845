"""Dead letters, grouped by what they died of: one look tells what to mend, one step brings a whole group back."""

from __future__ import annotations

from typing import Any

from holdfast.core.task import DEAD
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import families, wanted
from holdfast.transport.dashboard.bulk import RUNNING, SCOPE, VERBS
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.dashboard.wanted import NEWEST

LOOKED_AT = 10_000
GROUPS = 100


async def show(visit: Visit) -> Shown:
    """The groups, the largest first."""
    by = visit.by
    everything = visit.query.get("all") == "yes"
    asked = wanted.Wanted(state=DEAD, type=visit.query.get("type", "").strip(), open="" if everything else "yes")

    def look(reader: Reader) -> dict[str, Any]:
        found = wanted.look(reader, by.account, asked, NEWEST, limit=LOOKED_AT, most=LOOKED_AT)
        groups = families.grouped(found.tasks)
        return {
            "groups": groups[:GROUPS],
            "more": len(groups) > GROUPS,
            "count": len(found.tasks),
            "cut": bool(found.following),
            "now": found.now,
        }

    told = await visit.door.read(look)
    told |= {
        "asked": asked,
        "all": everything,
        "verbs": [verb for verb in VERBS.values() if verb.state == DEAD] if by.may(SCOPE) else [],
        "bulks": [bulk for bulk in visit.bulks.of(by.account) if bulk.state == RUNNING],
    }
    return Shown("dead-letters.html", told)


PAGE = Page("dead-letters", "Dead letters", "d", "tasks:read", show, within="tasks")
