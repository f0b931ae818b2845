"""Agents page: every session, owner and worker with all it holds; one session with the context it saved."""

from __future__ import annotations

from typing import Any, TypeVar

from holdfast.core import session as sessions
from holdfast.core.event import subject_of
from holdfast.core.lease import Lease, is_live
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import event_lines
from holdfast.transport.dashboard import held as holdings
from holdfast.transport.dashboard.access.permissions import FILES, JOBS, LOG, SESSIONS, TASKS, may_use
from holdfast.transport.dashboard.held import Holding
from holdfast.transport.dashboard.lists.held_work import MAX_ROWS, Agent, agents_of, held_work
from holdfast.transport.dashboard.lists.paging import Column, make_listing
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.http.request import HttpRefusal

H = TypeVar("H", Lease, Task, Reservation)

PAGE_SIZE = 50
ENDED_PAGE = 30
HISTORY = 50
MAX_HELD, HELD_BYTES = 50, 256 * 1024
"""Jobs, and as many reservations and tasks, that are shown of one session, and the bytes of them that are read."""


async def show(request: PageRequest) -> TemplateResponse:
    """Every agent with what it holds; on request all sessions, ended ones too."""
    if request.query.get("state") == "all":
        return await _show_sessions(request)
    work, engine = await held_work(request), request.ctx.engine

    def read_agents(reader: Reader) -> tuple[list[Agent], Instant]:
        return agents_of(work.sessions, work.rows, work.holdings(reader, engine)), reader.now

    found, now = await request.ctx.read(read_agents)
    columns: tuple[Column[Agent], ...] = (
        Column("name", "Agent", lambda agent: (agent.name, agent.session is None)),
        Column("left", "Time left", lambda agent: _left(agent, now)),
        Column("holds", "Holds", lambda agent: len(agent.held), largest_first=True),
    )
    listing = make_listing(found, columns, request.query, {}, PAGE_SIZE)
    variables = {
        "agents": [_describe_agent(agent, now) for agent in listing.rows],
        "listing": listing,
        "all": False,
        "may_see_timeline": may_use(request.by, LOG),
        "after": "",
        "next_cursor": "",
        "max_rows": 0 if work.is_complete and len(work.sessions) < MAX_ROWS else MAX_ROWS,
    }
    return TemplateResponse("agents.html", variables)


async def _show_sessions(request: PageRequest) -> TemplateResponse:
    after, by, engine = request.query.get("after", ""), request.by, request.ctx.engine

    def read_sessions(reader: Reader) -> tuple[list[dict[str, Any]], str]:
        found = reader.sessions(by.account, after, ENDED_PAGE + 1)
        next_cursor = found[ENDED_PAGE - 1].id if len(found) > ENDED_PAGE else ""
        visible = [session for session in found[:ENDED_PAGE] if sessions.is_visible(session, by)]
        return [_describe_session(session, reader, by, engine) for session in visible], next_cursor

    agents, next_cursor = await request.ctx.read(read_sessions)
    variables = {"agents": agents, "listing": None, "all": True, "after": after, "next_cursor": next_cursor}
    return TemplateResponse("agents.html", variables | {"max_rows": 0, "may_see_timeline": may_use(by, LOG)})


async def show_one(request: PageRequest) -> TemplateResponse:
    """One session."""
    by, engine = request.by, request.ctx.engine

    def read_agent(reader: Reader) -> dict[str, Any]:
        session = reader.row(Session, by.account, request.item)
        if session is None or not sessions.is_visible(session, by):
            raise HttpRefusal(404, "there is no such session")
        lines = event_lines.history(reader, by.account, subject_of(session), HISTORY)
        return _describe_session(session, reader, by, engine) | {"lines": lines, "now": reader.now}

    return TemplateResponse("agent.html", await request.ctx.read(read_agent))


def _describe_session(session: Session, reader: Reader, by: Principal, engine: Engine) -> dict[str, Any]:
    live = sessions.is_live(session, reader.now)
    held = _read_holdings(session, reader, by, engine) if live else []
    return _describe_agent(Agent(session.name or session.id, session, held), reader.now)


def _describe_agent(agent: Agent, now: Instant) -> dict[str, Any]:
    """An agent as a row of the table; without a session it is as healthy as what it holds."""
    described: dict[str, Any] = {"agent": agent, "session": agent.session, "held": agent.held}
    if agent.session is None:
        first = agent.held[0]
        renewal = min(each.since_renewal for each in agent.held)
        return described | {
            "live": True, "left": first.left, "ttl": first.ttl, "since_renewal": renewal, "health": first.health,
        }  # fmt: skip
    live, left = sessions.is_live(agent.session, now), agent.session.expires_at - now
    return described | {
        "live": live,
        "left": left,
        "ttl": agent.session.ttl,
        "since_renewal": max(agent.session.ttl - left, 0),
        "health": holdings.renewal_health(left, agent.session.ttl) if live else "ended",
        "opened": now - agent.session.opened_at,
    }


def _left(agent: Agent, now: Instant) -> Instant:
    return agent.held[0].left if agent.session is None else agent.session.expires_at - now


def _read_holdings(session: Session, reader: Reader, by: Principal, engine: Engine) -> list[Holding]:
    """What was claimed for the session, or by its key under its name."""
    found: list[Lease | Reservation | Task] = [
        *(_read_kind(Lease, session, reader) if may_use(by, JOBS) else []),
        *(_read_kind(Reservation, session, reader) if may_use(by, FILES) else []),
        *(_read_kind(Task, session, reader) if may_use(by, TASKS) else []),
    ]
    rows = {(row.table, row.id): row for row in found if is_live(row, reader.now) and _may_see(by, row)}
    return holdings.read_holdings(reader, list(rows.values()), engine)


def _read_kind(row_type: type[H], session: Session, reader: Reader) -> list[H]:
    size = ("", MAX_HELD, HELD_BYTES)
    found = reader.holdings(row_type, (session.account, session.id), *size)
    if session.name is not None:
        found += reader.held_by(row_type, (session.account, session.principal), *size, owner=session.name)
    return found


def _may_see(by: Principal, row: Lease | Reservation | Task) -> bool:
    return isinstance(row, Task) or by.covers(row.space if isinstance(row, Reservation) else row.id)


PAGE = Page("agents", "Agents", "a", SESSIONS, show, show_one)
