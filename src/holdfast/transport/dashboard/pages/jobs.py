"""Jobs: names that are held, or were; one of them in full, with everybody who owned it."""

from __future__ import annotations

from holdfast.store.contract import Reader
from holdfast.transport.dashboard import holding
from holdfast.transport.dashboard.holding import Holding
from holdfast.transport.dashboard.page import Page, Shown, Visit

PAGE_SIZE = 50


async def show(visit: Visit) -> Shown:
    """Held names, by name."""
    prefix, after = visit.query.get("q", ""), visit.query.get("after", "")
    engine = visit.door.engine

    def look(reader: Reader) -> list[Holding]:
        found = holding.names(reader, visit.by, prefix, after, PAGE_SIZE + 1)
        return [holding.of_lease(lease, reader.now, engine) for lease in found]

    found = await visit.door.read(look)
    following = found[PAGE_SIZE - 1].id if len(found) > PAGE_SIZE else ""
    return Shown("jobs.html", {"held": found[:PAGE_SIZE], "q": prefix, "following": following, "after": after})


PAGE = Page("jobs", "Jobs", "j", "jobs:read", show)
