"""Agents page: sessions, when they last renewed, what they hold and the context they saved."""

from __future__ import annotations

from typing import Any

from holdfast.core import session as sessions
from holdfast.core.event import subject_of
from holdfast.core.lease import Lease, is_live
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import event_lines
from holdfast.transport.dashboard import held as holdings
from holdfast.transport.dashboard.access.permissions import FILES, JOBS, SESSIONS, TASKS, may_use
from holdfast.transport.dashboard.held import Holding
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.http.request import HttpRefusal

PAGE_SIZE = 30
HISTORY = 50
MAX_HELD, HELD_BYTES = 50, 256 * 1024
"""Jobs, and as many reservations and tasks, that are shown of one session, and the bytes of them that are read."""


async def show(request: PageRequest) -> TemplateResponse:
    """Live sessions, or all sessions."""
    after, everything = request.query.get("after", ""), request.query.get("state") == "all"
    by, engine = request.by, request.ctx.engine

    def read_agents(reader: Reader) -> tuple[list[dict[str, Any]], str]:
        found = reader.sessions(by.account, after, PAGE_SIZE + 1, live=not everything)
        next_cursor = found[PAGE_SIZE - 1].id if len(found) > PAGE_SIZE else ""
        visible = [session for session in found[:PAGE_SIZE] if sessions.is_visible(session, by)]
        return [_describe(session, reader, by, engine) for session in visible], next_cursor

    agents, next_cursor = await request.ctx.read(read_agents)
    variables = {"agents": agents, "all": everything, "after": after, "next_cursor": next_cursor}
    return TemplateResponse("agents.html", variables)


async def show_one(request: PageRequest) -> TemplateResponse:
    """One session."""
    by, engine = request.by, request.ctx.engine

    def read_agent(reader: Reader) -> dict[str, Any]:
        session = reader.row(Session, by.account, request.item)
        if session is None or not sessions.is_visible(session, by):
            raise HttpRefusal(404, "there is no such session")
        lines = event_lines.history(reader, by.account, subject_of(session), HISTORY)
        return _describe(session, reader, by, engine) | {"lines": lines, "now": reader.now}

    return TemplateResponse("agent.html", await request.ctx.read(read_agent))


def _describe(session: Session, reader: Reader, by: Principal, engine: Engine) -> dict[str, Any]:
    live, left = sessions.is_live(session, reader.now), session.expires_at - reader.now
    return {
        "agent": session,
        "live": live,
        "left": left,
        "since_renewal": max(session.ttl - left, 0),
        "health": holdings.renewal_health(left, session.ttl) if live else "ended",
        "opened": reader.now - session.opened_at,
        "held": _read_holdings(session, reader, by, engine) if live else [],
    }


def _read_holdings(session: Session, reader: Reader, by: Principal, engine: Engine) -> list[Holding]:
    key, size = (by.account, session.id), ("", MAX_HELD, HELD_BYTES)
    leases = reader.holdings(Lease, key, *size) if may_use(by, JOBS) else []
    tasks = reader.holdings(Task, key, *size) if may_use(by, TASKS) else []
    reservations = reader.holdings(Reservation, key, *size) if may_use(by, FILES) else []
    named = [lease for lease in leases if by.covers(lease.id)]
    reserved = [row for row in reservations if is_live(row, reader.now) and by.covers(row.space)]
    return holdings.read_holdings(reader, [*named, *reserved, *tasks], engine)


PAGE = Page("agents", "Agents", "a", SESSIONS, show, show_one)
