"""Agents: sessions, how alive they are, what they hold and what they wrote down for their next life."""

from __future__ import annotations

from typing import Any

from holdfast.core import session as sessions
from holdfast.core.event import subject_of
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import event_lines
from holdfast.transport.dashboard import held as holding
from holdfast.transport.dashboard.held import Holding
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.dashboard.permissions import JOBS, SESSIONS, TASKS
from holdfast.transport.http.request import HttpRefusal

PAGE_SIZE = 30
HISTORY = 50


async def show(visit: Visit) -> Shown:
    """Live sessions, or all of them."""
    after, everything = visit.query.get("after", ""), visit.query.get("state") == "all"
    by, engine = visit.by, visit.ctx.engine

    def look(reader: Reader) -> tuple[list[dict[str, Any]], str]:
        find = reader.sessions if everything else reader.live_sessions
        found = find(by.account, after, PAGE_SIZE + 1)
        following = found[PAGE_SIZE - 1].id if len(found) > PAGE_SIZE else ""
        mine = [session for session in found[:PAGE_SIZE] if sessions.is_visible(session, by)]
        return [_agent(session, reader, by, engine) for session in mine], following

    agents, following = await visit.ctx.read(look)
    return Shown("agents.html", {"agents": agents, "all": everything, "after": after, "following": following})


async def show_one(visit: Visit) -> Shown:
    """One session in full."""
    by, engine = visit.by, visit.ctx.engine

    def look(reader: Reader) -> dict[str, Any]:
        session = reader.row(Session, by.account, visit.item)
        if session is None or not sessions.is_visible(session, by):
            raise HttpRefusal(404, "there is no such session")
        lines = event_lines.of_one(reader, by.account, subject_of(session), HISTORY)
        return _agent(session, reader, by, engine) | {"lines": lines, "now": reader.now}

    return Shown("agent.html", await visit.ctx.read(look))


def _agent(session: Session, reader: Reader, by: Principal, engine: Engine) -> dict[str, Any]:
    live, left = sessions.is_live(session, reader.now), session.expires_at - reader.now
    return {
        "agent": session,
        "live": live,
        "left": left,
        "quiet": max(session.ttl - left, 0),
        "pulse": holding.pulse(left, session.ttl) if live else "ended",
        "opened": reader.now - session.opened_at,
        "held": _held(session, reader, by, engine, reader.now) if live else [],
    }


def _held(session: Session, reader: Reader, by: Principal, engine: Engine, now: Instant) -> list[Holding]:
    names, tasks = reader.holdings(by.account, session.id)
    held = [holding.of_lease(lease, now, engine) for lease in names if by.may(JOBS) and by.covers(lease.id)]
    return [*held, *(holding.of_task(task, now) for task in tasks if by.may(TASKS))]


PAGE = Page("agents", "Agents", "a", SESSIONS, show, show_one)
