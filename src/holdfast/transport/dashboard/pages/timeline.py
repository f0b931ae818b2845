"""Timeline page: one row per agent, what it held in the last hours."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.event_filter import filter_for
from holdfast.core.holdings.spans import Span, held_spans, session_names
from holdfast.core.lease import Lease
from holdfast.core.names import DEFAULT_ACCOUNT, ELECTION_PREFIX
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import Task
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row
from holdfast.transport.dashboard.access.permissions import LOG
from holdfast.transport.dashboard.agent_timeline import AgentHistory, draw, drawn_spans, histories
from holdfast.transport.dashboard.held import title_of
from holdfast.transport.dashboard.labels import clock
from holdfast.transport.dashboard.lists.held_work import HeldWork, held_work
from holdfast.transport.dashboard.lists.paging import Column, make_listing
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.pages import elections

HOURS = (1, 6, 24)
DEFAULT_HOURS = 6
PAGE_SIZE = 25
TICKS = 6
EVENTS_AT_ONCE, MAX_EVENTS, MAX_SCANNED = 1_000, 10_000, 200_000
"""Events of one read, of all reads, and of the log, renewals included: older ones are not read."""
FEW_EVENTS = 200
"""With more events than this, what the page shows may be two seconds old."""
MAX_ELECTIONS = 200
MAX_RESERVATIONS = 100
"""Reservations that are read for their owners and paths; further ones are shown by their ids."""

COLUMNS: tuple[Column[AgentHistory], ...] = (
    Column("name", "Agent", lambda each: each.agent.name),
    Column("last", "Last held", lambda each: (each.last, each.agent.name), largest_first=True),
    Column("count", "Held", lambda each: (len(each.spans), each.agent.name), largest_first=True),
)


class Log(msgspec.Struct, frozen=True):
    """The events of some hours that a key may see, oldest first, without renewals."""

    events: list[Event]
    first: Instant
    """From when on all of them were read."""
    now: Instant
    is_cut: bool


async def show(request: PageRequest) -> TemplateResponse:
    """What each agent held, as bars and as a table."""
    hours = next((each for each in HOURS if str(each) == request.query.get("hours")), DEFAULT_HOURS)
    by, ctx, work = request.by, request.ctx, await held_work(request)
    log = await request.cache.get(
        ("timeline", by.account, by.id, by.scopes, by.name_prefix, hours),
        lambda: _read_log(request, hours),
        lambda found: len(found.events) > FEW_EVENTS,
    )
    spans = await ctx.read(lambda reader: _read_spans(reader, by, log, work))
    start = log.now - hours * 3600 * SECOND
    found = histories(spans, session_names(log.events), work.sessions, start)
    parameters = {"hours": str(hours)} if hours != DEFAULT_HOURS else {}
    listing = make_listing(found, COLUMNS, request.query, parameters, PAGE_SIZE)
    titles = await ctx.read(lambda reader: _read_titles(reader, by.account, drawn_spans(listing.rows)))
    variables: dict[str, Any] = {
        "listing": listing,
        "rows": [(each, draw(each, titles, start, log.now)) for each in listing.rows],
        "hours": hours,
        "all_hours": HOURS,
        "ticks": [clock(start + (log.now - start) * number // TICKS) for number in range(TICKS)],
        "start": start,
        "now": log.now,
        "first": log.first if log.is_cut else None,
        "is_complete": work.is_complete,
        "election_prefix": ELECTION_PREFIX,
    }
    return TemplateResponse("timeline.html", variables)


async def _read_log(request: PageRequest, hours: int) -> Log:
    """The newest events, in pages that are reads of their own, so that other requests run in between."""
    by, ctx = request.by, request.ctx
    visible = msgspec.structs.replace(filter_for(by), elections=elections.PAGE.may_see(by))
    (floor, last), now = await ctx.read(lambda reader: (reader.log_bounds(by.account), reader.now))
    start, oldest = now - hours * 3600 * SECOND, max(floor, last - MAX_SCANNED)
    found: list[Event] = []
    before, first = last + 1, now
    for _ in range(0, MAX_EVENTS, EVENTS_AT_ONCE):
        page = await ctx.read(partial(_read_changes, account=by.account, after=oldest, before=before))
        found += [event for event in takewhile(lambda each: each.at >= start, page) if visible.matches(event)]
        if not is_full(page, EVENTS_AT_ONCE, PAGE_BYTES) or page[-1].at < start:
            # Nothing older was read because there is nothing, or because the log is longer than what is scanned.
            is_cut = oldest > floor and (not page or page[-1].at >= start)
            return Log(found[::-1], page[-1].at if is_cut and page else first if is_cut else start, now, is_cut)
        before, first = page[-1].seq, page[-1].at
    return Log(found[::-1], first, now, is_cut=True)


def _read_changes(reader: Reader, account: str, after: int, before: int) -> list[Event]:
    return reader.changes(account, after, before, EVENTS_AT_ONCE, PAGE_BYTES)


def _read_spans(reader: Reader, by: Principal, log: Log, work: HeldWork) -> list[Span]:
    """Spans from events, from what is held now, and from reservations that have ended."""
    rows = [*work.rows, *_read_elections(reader, by)]
    held = {row.id for row in rows if isinstance(row, Reservation)}
    subjects = dict.fromkeys(event.subject for event in reversed(log.events))
    ids = [subject.partition(":")[2] for subject in subjects if subject.startswith(f"{Reservation.noun}:")]
    wanted = [row_id for row_id in ids if row_id not in held][:MAX_RESERVATIONS]
    ended = (usable_row(reader, Reservation, by.account, row_id) for row_id in wanted)
    return held_spans(log.events, [*rows, *(row for row in ended if row is not None)], log.now)


def _read_elections(reader: Reader, by: Principal) -> list[Lease]:
    if not elections.PAGE.may_see(by):
        return []
    found = reader.rows_after(Lease, DEFAULT_ACCOUNT, ELECTION_PREFIX, MAX_ELECTIONS)
    return [row for row in found if row.account == DEFAULT_ACCOUNT and row.id.startswith(ELECTION_PREFIX)]


def _read_titles(reader: Reader, account: str, spans: list[Span]) -> dict[tuple[str, str], str]:
    """What to call tasks, reservations and elections, by (noun, id)."""
    titles = {(span.noun, span.id): span.id.removeprefix(ELECTION_PREFIX) for span in spans if span.noun == Lease.noun}
    tasks = sorted({span.id for span in spans if span.noun == Task.noun})
    for task in reader.tasks_with_results(account, tasks, 0) if tasks else []:
        titles[Task.noun, task.id] = f"{task.type} {task.id}"
    reservations = dict.fromkeys(span.id for span in reversed(spans) if span.noun == Reservation.noun)
    for row_id in list(reservations)[:MAX_RESERVATIONS]:
        row = usable_row(reader, Reservation, account, row_id)
        if row is not None:
            titles[Reservation.noun, row_id] = title_of(row)
    return titles


PAGE = Page("timeline", "Timeline", "", LOG, show, parent="agents")
