"""Bulk: something is done to every task of a filter. First how many, then how far."""

from __future__ import annotations

from holdfast.core.errors import Invalid
from holdfast.core.row import Instant
from holdfast.transport.dashboard import task_filter
from holdfast.transport.dashboard.bulk import FINISHED, LOOKED_AT, MOST_TASKS, SCOPE, VERBS, Bulk, Verb, new_id
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.dashboard.task_filter import Wanted
from holdfast.transport.http.request import HttpRefusal


async def show(visit: Visit) -> Shown:
    """How many there are, and whether that is what is wanted."""
    verb, asked = _meant(visit.query)
    counted = await visit.bulks.count(visit.account, asked)
    told = {"verb": verb, "asked": asked, "count": counted.count, "moment": counted.moment, "most": MOST_TASKS}
    return Shown("bulk-confirm.html", told | {"looked_at": 0 if counted.complete else LOOKED_AT})


async def show_one(visit: Visit) -> Shown:
    """How far it is."""
    bulk = visit.bulks.find(visit.account, visit.item)
    if bulk is None:
        raise HttpRefusal(404, "this server does not know it (any more)")
    return Shown("bulk.html", {"bulk": bulk, "finished": bulk.state == FINISHED})


async def start(visit: Visit) -> str:
    """Begin with those that were counted and still fit; never with more."""
    verb, asked = _meant(visit.form)
    count, moment = _number(visit.form.get("count", "")), _number(visit.form.get("moment", ""))
    if _number(visit.form.get("typed", "")) != count:
        raise Invalid("type the number of tasks that was shown")
    visit.bulks.check(visit.account, asked)
    ids = await visit.bulks.collect(visit.account, asked, moment)
    if len(ids) > count:
        raise Invalid("more tasks fit than were counted: look again")
    bulk = Bulk(
        new_id(), verb, asked, visit.browser_session, visit.cause(), visit.by.name, began=moment, total=len(ids),
    )  # fmt: skip
    visit.bulks.start(bulk, ids)
    visit.item = bulk.id
    return "begun"


async def stop(visit: Visit) -> str:
    """Let the batch that is under way be the last."""
    bulk = visit.bulks.find(visit.account, visit.item)
    if bulk is None:
        raise HttpRefusal(404, "this server does not know it (any more)")
    bulk.stopping = True
    return "stopping"


def _meant(told: dict[str, str]) -> tuple[Verb, Wanted]:
    """What is to be done, and to which tasks."""
    verb, asked = VERBS.get(told.get("verb", "")), task_filter.read(told)
    if verb is None or asked.state != verb.state:
        raise Invalid("choose a state of tasks first: what can be done depends on it")
    return verb, asked


def _number(text: str) -> Instant:
    """What somebody typed: 5,000 is 5000."""
    digits = text.replace(",", "").replace(" ", "").replace("\u202f", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):  # noqa: PLR2004 - more is no number of ours
        raise Invalid("type the number of tasks that was shown")
    return int(digits)


PAGE = Page("bulk", "Bulk", "", SCOPE, show, show_one, {"start": (SCOPE, start), "stop": (SCOPE, stop)}, within="tasks")
