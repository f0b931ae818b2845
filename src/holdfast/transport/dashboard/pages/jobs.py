"""Jobs: names that are held, or were; one of them in full, with everybody who owned it."""

from __future__ import annotations

from typing import Any

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.errors import Invalid
from holdfast.core.event import subject_of
from holdfast.core.lease import Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.principal import Principal
from holdfast.core.session import Session
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.jobs import ForceRelease
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import event_lines, held, ownership_timeline
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.dashboard.permissions import JOBS
from holdfast.transport.http.api.jobs import MAX_REASON
from holdfast.transport.http.request import HttpRefusal

PAGE_SIZE = 50
HISTORY = 200
NOTHING = "\x01"
"""No name begins so."""


async def show(visit: Visit) -> Shown:
    """Names, by name: those that are held, or all that are remembered."""
    prefix, after = visit.query.get("q", ""), visit.query.get("after", "")
    everything = visit.query.get("state") == "all"
    engine = visit.ctx.engine

    def look(reader: Reader) -> list[dict[str, Any]]:
        find = _known if everything else held.names
        return [_row(lease, reader, engine) for lease in find(reader, visit.by, prefix, after, PAGE_SIZE + 1)]

    found = await visit.ctx.read(look)
    told = {
        "rows": found[:PAGE_SIZE],
        "q": prefix,
        "all": everything,
        "after": after,
        "following": found[PAGE_SIZE - 1]["id"] if len(found) > PAGE_SIZE else "",
    }
    return Shown("jobs.html", told)


async def show_one(visit: Visit) -> Shown:
    """Who owns it, what they left, and who did before."""
    by, name, engine = visit.by, visit.item, visit.ctx.engine
    _check(by, name)

    def look(reader: Reader) -> dict[str, Any]:
        lease = reader.row(Lease, by.account, name) or Lease(by.account, name)
        news = reader.news(by.account, subject_of(lease), HISTORY)
        if lease.version == 0 and not news:
            raise HttpRefusal(404, "nobody ever held that name")
        story = ownership_timeline.ownerships(news, lease, reader.now)
        return {
            "lease": lease,
            "held": held.of_lease(lease, reader.now, engine) if leases.is_live(lease, reader.now) else None,
            "session": _session(reader, by, lease),
            "resting": (lease.available_at or 0) - reader.now,
            "before": leases.last_ending(lease),
            "ownerships": story[::-1],
            "lanes": ownership_timeline.lanes(story),
            "lines": [event_lines.line(event, reader.now) for event in news],
            "now": reader.now,
        }

    return Shown("job.html", await visit.ctx.read(look))


async def force_release(visit: Visit) -> str:
    """Take a name from its holder, who is told by whom and why."""
    _check(visit.by, visit.item)
    reason = visit.form.get("reason", "").strip()
    if not 1 <= len(reason) <= MAX_REASON:
        raise Invalid(f"the former owner is told the reason: 1 to {MAX_REASON} characters")
    if visit.form.get("sure") != "yes":
        raise Invalid("say that you are sure")
    await visit.ctx.run(
        ForceRelease(account=visit.account, cause=visit.cause(), name=visit.item, by=visit.by.name, reason=reason)
    )
    return "released"


def _check(by: Principal, name: str) -> None:
    """Foreign names and rooms of elections are not here."""
    if not by.covers(name) or name.startswith(ELECTION_PREFIX):
        raise HttpRefusal(404, "nobody ever held that name")


def _session(reader: Reader, by: Principal, lease: Lease) -> Session | None:
    """The session for whose life it is held, if the visitor may see it."""
    found = reader.row(Session, by.account, lease.session) if lease.session else None
    return found if found is not None and sessions.is_visible(found, by) else None


def _known(reader: Reader, by: Principal, prefix: str, after: str, limit: int) -> list[Lease]:
    """Every name that is remembered, held or not."""
    own = by.name_prefix or ""
    if not prefix.startswith(own):
        prefix = own if own.startswith(prefix) else NOTHING
    found: list[Lease] = []
    cursor = max(after, held.before(prefix))
    while len(found) < limit:
        page = reader.rows_after(Lease, by.account, cursor, limit)
        found += [row for row in page if row.account == by.account and _is_name(row.id, prefix)]
        if len(page) < limit or page[-1].account != by.account or page[-1].id > prefix + held.LAST:
            break
        cursor = held.past_elections(page[-1].id)
    return found[:limit]


def _is_name(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and not name.startswith(ELECTION_PREFIX)


def _row(lease: Lease, reader: Reader, engine: Engine) -> dict[str, Any]:
    live = leases.is_live(lease, reader.now)
    return {
        "id": lease.id,
        "held": held.of_lease(lease, reader.now, engine) if live else None,
        "before": None if live else leases.last_ending(lease),
        "ago": reader.now - lease.changed_at,
    }


PAGE = Page("jobs", "Jobs", "j", JOBS, show, show_one, {"force-release": ("admin", force_release)})
