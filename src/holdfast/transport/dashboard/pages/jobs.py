"""Jobs page: held jobs and locks, and one of them with its ownership history."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.errors import Invalid
from holdfast.core.event import subject_of
from holdfast.core.holdings.spans import held_spans
from holdfast.core.lease import Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.principal import Principal
from holdfast.core.session import Session
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.jobs import ForceRelease
from holdfast.operations.bounds import FORCE_REASON
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row
from holdfast.transport.dashboard import event_lines, held, ownership_timeline
from holdfast.transport.dashboard.access.permissions import JOBS
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.http.request import HttpRefusal

PAGE_SIZE = 50
HISTORY = 200
Find = Callable[[Reader, Principal, str, str, int], list[Lease]]
NO_NAME = "\x01"
"""A prefix that no name has."""


async def show(request: PageRequest) -> TemplateResponse:
    """Held jobs and locks, done jobs, or all that the store has a row of, sorted by name."""
    prefix, after = request.query.get("q", ""), request.query.get("after", "")
    state = request.query.get("state", "")
    engine = request.ctx.engine
    finds: dict[str, Find] = {"all": _find_all, leases.DONE: partial(held.held_leases, done=True)}

    def read_rows(reader: Reader) -> list[dict[str, Any]]:
        find = finds.get(state, held.held_leases)
        return _rows(find(reader, request.by, prefix, after, PAGE_SIZE + 1), reader, engine)

    found = await request.ctx.read(read_rows)
    variables = {
        "rows": found[:PAGE_SIZE],
        "q": prefix,
        "state_filter": state if state in finds else "",
        "after": after,
        "next_cursor": found[PAGE_SIZE - 1]["id"] if len(found) > PAGE_SIZE else "",
    }
    return TemplateResponse("jobs.html", variables)


async def show_one(request: PageRequest) -> TemplateResponse:
    """One job or lock: its owner, what the last owner left, and earlier owners."""
    by, name, engine = request.by, request.item, request.ctx.engine
    _check_visible(by, name)

    def read_job(reader: Reader) -> dict[str, Any]:
        lease = reader.row(Lease, by.account, name) or Lease(by.account, name)
        events = reader.recent_events(by.account, subject_of(lease), HISTORY)
        if lease.version == 0 and not events:
            raise HttpRefusal(404, "there is no job or lock with that name")
        ownerships = held_spans(reversed(events), [lease], reader.now)
        return {
            "lease": lease,
            "held": held.read_holdings(reader, [lease], engine)[0] if leases.is_live(lease, reader.now) else None,
            "session": _find_session(reader, by, lease),
            "cooldown": (lease.available_at or 0) - reader.now,
            "is_done": leases.is_done(lease, reader.now),
            "last": leases.last_ending(lease),
            "ownerships": ownerships[::-1],
            "timeline": ownership_timeline.timeline(ownerships),
            "lines": [event_lines.line(event, reader.now) for event in events],
            "now": reader.now,
        }

    return TemplateResponse("job.html", await request.ctx.read(read_job))


async def force_release(request: PageRequest) -> str:
    """Release a job without its holder's consent; the holder's next call gets the reason."""
    _check_visible(request.by, request.item)
    reason = request.form.get("reason", "").strip()
    if not FORCE_REASON.least <= len(reason) <= FORCE_REASON.most:
        raise Invalid(f"give the owner a reason of {FORCE_REASON}")
    if request.form.get("sure") != "yes":
        raise Invalid("check the box to confirm")
    await request.ctx.run(
        ForceRelease(
            account=request.account, cause=request.cause(), name=request.item, by=request.by.name, reason=reason
        )
    )
    return "released"


def _check_visible(by: Principal, name: str) -> None:
    """Refuse names that the key does not cover, and elections."""
    if not by.covers(name) or name.startswith(ELECTION_PREFIX):
        raise HttpRefusal(404, "there is no job or lock with that name")


def _find_session(reader: Reader, by: Principal, lease: Lease) -> Session | None:
    """The session that the lease is bound to, if the key may see it."""
    found = usable_row(reader, Session, by.account, lease.session) if lease.session else None
    return found if found is not None and sessions.is_visible(found, by) else None


def _find_all(reader: Reader, by: Principal, prefix: str, after: str, limit: int) -> list[Lease]:
    """Jobs and locks that the store has a row of, held or not."""
    own = by.name_prefix or ""
    if not prefix.startswith(own):
        prefix = own if own.startswith(prefix) else NO_NAME
    found: list[Lease] = []
    cursor = max(after, held.cursor_before(prefix))
    while len(found) < limit:
        page = reader.rows_after(Lease, by.account, cursor, limit)
        found += [row for row in page if row.account == by.account and _is_job(row.id, prefix)]
        if len(page) < limit or page[-1].account != by.account or page[-1].id > prefix + held.LAST:
            break
        cursor = held.skip_elections(page[-1].id)
    return found[:limit]


def _is_job(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and not name.startswith(ELECTION_PREFIX)


def _rows(found: list[Lease], reader: Reader, engine: Engine) -> list[dict[str, Any]]:
    live = [lease for lease in found if leases.is_live(lease, reader.now)]
    holdings = {holding.id: holding for holding in held.read_holdings(reader, live, engine)}
    return [
        {
            "id": lease.id,
            "held": holdings.get(lease.id),
            "last": None if lease.id in holdings else leases.last_ending(lease),
            "is_done": leases.is_done(lease, reader.now),
            "ago": reader.now - lease.changed_at,
        }
        for lease in found
    ]


PAGE = Page("jobs", "Jobs", "j", JOBS, show, show_one, {"force-release": ("force_release_job", force_release)})
