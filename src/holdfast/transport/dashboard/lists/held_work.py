"""Everything that is held now, as far as a key may see it, and the agents that hold it.

The rows are read up to a limit of each kind, without their documents, so that a page costs the same on a large store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from holdfast.core import session as sessions
from holdfast.core.deadlines import session_of
from holdfast.core.holdings.held_by import owner_label
from holdfast.core.lease import Lease, is_live
from holdfast.core.page import PAGE_BYTES
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.access.permissions import FILES, JOBS, SESSIONS, TASKS, may_use
from holdfast.transport.dashboard.held import Holding, brief, held_leases, read_holdings, summary_of
from holdfast.transport.dashboard.page import PageRequest
from holdfast.transport.dashboard.reserved import open_reservations

MAX_ROWS = 1_000
"""Rows of each kind that are read: jobs and locks, reservations, tasks, sessions."""
MANY_ROWS = 200
"""With more rows than this, what the page shows may be two seconds old."""

HeldRow = Lease | Reservation | Task


class HeldWork(msgspec.Struct, frozen=True):
    """Held rows without their documents."""

    rows: list[HeldRow]
    summaries: Mapping[str, str]
    """What the documents are about, by row id."""
    sessions: list[Session]
    """Live sessions."""
    total: int
    """How much is held in all, if that is more than was read."""

    @property
    def is_complete(self) -> bool:
        """Whether all that is held was read."""
        return self.total <= len(self.rows)

    def holdings(self, reader: Reader, engine: Engine, rows: Sequence[HeldRow] | None = None) -> list[Holding]:
        """All rows, or some of them, with their time left, those that expire first at the front."""
        found = read_holdings(reader, self.rows if rows is None else rows, engine, self.summaries)
        return sorted(found, key=lambda each: each.left)


class Agent(msgspec.Struct):
    """Who holds work: a session, or an owner or worker without one."""

    name: str
    session: Session | None
    held: list[Holding]


async def held_work(request: PageRequest) -> HeldWork:
    """What is held, shared by all pages that show it to the same key."""
    by, ctx = request.by, request.ctx
    return await request.cache.get(
        ("held work", by.account, by.id, by.scopes, by.name_prefix),
        lambda: ctx.read(lambda reader: _read(reader, by)),
        lambda found: len(found.rows) + len(found.sessions) > MANY_ROWS,
    )


def agents_of(found: Iterable[Session], rows: Iterable[HeldRow], holdings: Iterable[Holding]) -> list[Agent]:
    """Every session, owner and worker with all it holds, by name.

    A row belongs to the session it was claimed for, else to a session of the same key with the owner's name, else to
    the owner.
    """
    agents = [Agent(session.name or session.id, session, []) for session in found]
    of_session = {agent.session.id: agent for agent in agents if agent.session is not None}
    of_name = {
        (agent.session.principal, agent.session.name): agent
        for agent in agents
        if agent.session is not None and agent.session.name is not None
    }
    of_owner: dict[str, Agent] = {}
    by_key = {(holding.table, holding.id): holding for holding in holdings}
    for row in rows:
        label = owner_label(row)
        agent = of_session.get(session_of(row) or "") or of_name.get((row.principal or "", label or ""))
        if agent is None:
            agent = of_owner.setdefault(label or "", Agent(label or "", None, []))
        agent.held.append(by_key[row.table, row.id])
    for agent in (*agents, *of_owner.values()):
        agent.held.sort(key=lambda each: each.left)
    return sorted((*agents, *of_owner.values()), key=lambda agent: (agent.name, agent.session is None))


def _read(reader: Reader, by: Principal) -> HeldWork:
    leases = held_leases(reader, by, "", "", MAX_ROWS) if may_use(by, JOBS) else []
    tasks = reader.next_to_expire(by.account, MAX_ROWS, PAGE_BYTES) if may_use(by, TASKS) else []
    rows: list[HeldRow] = [*leases, *_read_reserved(reader, by), *tasks]
    return HeldWork(
        rows=[brief(row) for row in rows],
        summaries={row.id: summary for row in rows if (summary := summary_of(row))},
        sessions=_read_sessions(reader, by),
        total=max(_count(reader, by), len(rows)),
    )


def _count(reader: Reader, by: Principal) -> int:
    """How much is held in all; of a key with a name prefix only what was read is counted."""
    if by.name_prefix is not None:
        return 0
    counts = reader.held_counts(by.account)
    parts = ((JOBS, counts.leases), (FILES, counts.reservations), (TASKS, counts.tasks))
    return sum(count for operation, count in parts if may_use(by, operation))


def _read_reserved(reader: Reader, by: Principal) -> list[Reservation]:
    if not may_use(by, FILES):
        return []
    live = (row for row in open_reservations(reader, by, "", "") if is_live(row, reader.now))
    return list(islice(live, MAX_ROWS))


def _read_sessions(reader: Reader, by: Principal) -> list[Session]:
    if not may_use(by, SESSIONS):
        return []
    found = reader.sessions(by.account, "", MAX_ROWS, PAGE_BYTES, live=True)
    return [session for session in found if sessions.is_visible(session, by)]
