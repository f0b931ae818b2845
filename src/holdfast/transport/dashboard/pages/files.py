"""Files page: for each space a tree of who has reserved what, and one reservation with its history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.errors import Invalid
from holdfast.core.event import subject_of
from holdfast.core.principal import Principal
from holdfast.core.reservation.patterns import any_overlap, parse, path_problem
from holdfast.core.reservation.row import Reservation, is_waiting, paths_of, patterns_in
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.reservations import ForceReleaseReservation
from holdfast.operations.bounds import FORCE_REASON
from holdfast.store.contract import Reader
from holdfast.store.contract.reads import usable_row
from holdfast.transport.dashboard import event_lines, held
from holdfast.transport.dashboard.access.permissions import FILES, may_see_event
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.path_tree import tree_rows
from holdfast.transport.dashboard.reserved import Space, conflicts_of_waiting, read_space, read_spaces
from holdfast.transport.deadlines import read_effective
from holdfast.transport.http.api.reservations.documents import status_of
from holdfast.transport.http.request import HttpRefusal

PAGE_SIZE = 200
"""A page has whole spaces, until they have so many reservations."""
MAX_PATHS = 1_000
"""Rows of the tree of one space."""
MAX_WAITING = 100
HISTORY = 200


async def show(request: PageRequest) -> TemplateResponse:
    """The spaces whose names begin with a prefix; with a path, only reservations that cover it."""
    prefix, after = request.query.get("q", ""), request.query.get("after", "")
    path = request.query.get("path", "").strip()
    problem = path_problem(path) if path else None
    by, engine = request.by, request.ctx.engine

    def read(reader: Reader) -> dict[str, Any]:
        found, next_cursor = read_spaces(reader, by, prefix, after, PAGE_SIZE)
        spaces = [_describe_space(reader, space, path if problem is None else "", engine) for space in found]
        return {"spaces": [space for space in spaces if space["count"]], "next_cursor": next_cursor}

    key = ("files", request.account, by.name_prefix, prefix, after, path)
    found = await request.cache.get(
        key, lambda: request.ctx.read(read), lambda shown: sum(space["count"] for space in shown["spaces"]) > PAGE_SIZE
    )
    variables = found | {"q": prefix, "path": path, "after": after, "problem": problem}
    return TemplateResponse("files.html", variables)


async def show_one(request: PageRequest) -> TemplateResponse:
    """One reservation: its paths, its owner, who waits for it, and its events."""
    by, engine = request.by, request.ctx.engine

    def read(reader: Reader) -> dict[str, Any]:
        row = _find(reader, by, request.item)
        row, now = read_effective(reader, [row])[0], reader.now
        events = reader.recent_events(by.account, subject_of(row), HISTORY)
        lines = [event_lines.line(event, now) for event in events if may_see_event(by, event)]
        return {
            "row": row,
            "status": status_of(row, now),
            "paths": paths_of(row),
            "held": held.read_holdings(reader, [row], engine)[0] if leases.is_live(row, now) else None,
            "session": _find_session(reader, by, row),
            "neighbours": _neighbours(reader, row, now),
            "lines": lines,
            "now": now,
        }

    return TemplateResponse("reservation.html", await request.ctx.read(read))


async def force_release(request: PageRequest) -> str:
    """End a reservation without its holder's consent; the holder's next call gets the reason."""
    row = await request.ctx.read(lambda reader: _find(reader, request.by, request.item))
    reason = request.form.get("reason", "").strip()
    if not FORCE_REASON.least <= len(reason) <= FORCE_REASON.most:
        raise Invalid(f"give the owner a reason of {FORCE_REASON}")
    if request.form.get("sure") != "yes":
        raise Invalid("check the box to confirm")
    await request.ctx.run(
        ForceReleaseReservation(
            account=request.account, cause=request.cause(), reservation_id=row.id, by=request.by.name, reason=reason
        )
    )
    return "released"


def _find(reader: Reader, by: Principal, reservation_id: str) -> Reservation:
    """A reservation whose space the key covers."""
    row = reader.row(Reservation, by.account, reservation_id)
    if row is None or not by.covers(row.space):
        raise HttpRefusal(404, "there is no such reservation")
    return row


def _find_session(reader: Reader, by: Principal, row: Reservation) -> Session | None:
    """The session that the reservation is bound to, if the key may see it."""
    found = usable_row(reader, Session, by.account, row.session) if row.session else None
    return found if found is not None and sessions.is_visible(found, by) else None


def _describe_space(reader: Reader, space: Space, path: str, engine: Engine) -> dict[str, Any]:
    """The tree of a space and the queue of those that wait, all of it or what covers one path."""
    now = reader.now
    space.rows = read_effective(reader, space.rows)
    if path:
        space.rows = [row for row in space.rows if any(pattern.matches(path) for pattern in patterns_in(row.paths))]
    live, waiting = space.held(now), space.waiting(now)
    behind = conflicts_of_waiting(waiting, live)
    holdings = held.read_holdings(reader, live, engine)
    waiting_for: dict[str, list[Reservation]] = {row.id: [] for row in live}
    for each in waiting:
        for row in behind.get(each.id, ()):
            waiting_for[row.id].append(each)
    rows = tree_rows(
        (pattern, {"row": row, "held": holding, "waiting": _waiting_at(pattern, waiting_for[row.id])})
        for row, holding in zip(live, holdings, strict=True)
        for pattern in paths_of(row)
    )
    return {
        "name": space.name,
        "count": len(live) + len(waiting),
        "held": len(live),
        "rows": rows[:MAX_PATHS],
        "more": max(len(rows) - MAX_PATHS, 0),
        "waiting": [_describe_wait(row, behind.get(row.id, []), now) for row in waiting[:MAX_WAITING]],
        "more_waiting": max(len(waiting) - MAX_WAITING, 0),
    }


def _waiting_at(pattern: str, waiting: Sequence[Reservation]) -> list[Reservation]:
    """Those of the waiting ones that conflict with one of the reserved patterns."""
    return [each for each in waiting if any_overlap([parse(pattern)], patterns_in(each.paths))]


def _describe_wait(row: Reservation, behind: Sequence[Reservation], now: Instant) -> dict[str, Any]:
    return {"row": row, "title": held.title_of(row), "behind": behind, "since": max(now - row.arrived_at, 0)}


def _neighbours(reader: Reader, row: Reservation, now: Instant) -> list[dict[str, Any]]:
    """Those that wait for a held reservation; for one that waits, those that it waits for."""
    space = read_space(reader, row.account, row.space)
    if leases.is_live(row, now):
        waiting = space.waiting(now)
        behind = conflicts_of_waiting(waiting, [row])
        return [_describe_wait(each, [row], now) for each in waiting if behind.get(each.id)]
    if is_waiting(row, now):
        return [_describe_wait(each, [], now) for each in conflicts_of_waiting([row], space.held(now)).get(row.id, [])]
    return []


PAGE = Page(
    "files", "Files", "f", FILES, show, show_one, {"force-release": ("force_release_reservation", force_release)}
)
