"""Held jobs, locks, reservations and tasks, as rows of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core.deadlines import effective_deadline, session_of, ttl_of
from holdfast.core.lease import ELECTION, Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.principal import Principal
from holdfast.core.reservation.row import Reservation, paths_of
from holdfast.core.row import Instant
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.engine import Engine
from holdfast.operations.progress import Progress, read_progress
from holdfast.store.contract import Reader
from holdfast.transport.dashboard.labels import summarize
from holdfast.transport.deadlines import HoldingSessions

H = TypeVar("H", bound=Lease | Reservation | Task)

LAST = "\U0010ffff"
"""Sorts after every character of a name."""
FIRST_SURROGATE = 0xD800


class Holding(msgspec.Struct, frozen=True):
    """A held job, lock, reservation or task."""

    kind: str
    """job, lock, reservation or task"""
    id: str
    title: str
    owner: str | None
    left: Instant
    ttl: Instant
    """Of the lease, or of its session if that ends earlier: a renewal starts this time again."""
    since: Instant
    """How long it has been held."""
    waiting: int = 0
    note: str | None = None
    session: str | None = None
    offered: Instant | None = None
    """How long it can still be taken over with the code of an offer; None if it is not offered."""
    offered_to: str | None = None
    progress: Progress | None = None
    summary: str = ""
    """What the payload of a task or the metadata of a job says, in a few words."""

    @property
    def table(self) -> str:
        """The table of its row."""
        return {"task": Task.table, "reservation": Reservation.table}.get(self.kind, Lease.table)

    @property
    def since_renewal(self) -> Instant:
        """Time since the last claim or renewal, which starts the whole TTL again."""
        return max(self.ttl - self.left, 0)

    @property
    def health(self) -> str:
        """Whether the holder renews in time."""
        return renewal_health(self.left, self.ttl) if self.offered is None else "healthy"


def renewal_health(left: Instant, ttl: Instant) -> str:
    """`healthy`, `late` or `expiring`: a holder should renew every third of its TTL, and missed none, one or two."""
    if left * 3 >= ttl * 2 - ttl // 20:
        return "healthy"
    return "late" if left * 3 >= ttl else "expiring"


def held_leases(
    reader: Reader, by: Principal, prefix: str, after: str, limit: int, *, done: bool = False
) -> list[Lease]:
    """Held jobs and locks, or done jobs, that a principal may see, sorted by name, without elections."""
    if not by.covers(prefix):
        own = by.name_prefix or ""
        if not own.startswith(prefix):
            return []
        prefix = own
    found: list[Lease] = []
    while len(found) < limit:
        page = reader.leases(by.account, prefix, after, limit, PAGE_BYTES, done=done)
        found += [lease for lease in page if lease.kind != ELECTION]
        if not is_full(page, limit, PAGE_BYTES):
            break
        after = skip_elections(page[-1].id)
    return found[:limit]


def skip_elections(name: str) -> str:
    """The cursor after a name; past all elections if it is one, because there may be thousands of them."""
    return ELECTION_PREFIX + LAST if name.startswith(ELECTION_PREFIX) else name


def cursor_before(prefix: str) -> str:
    """A cursor just before all names with a prefix."""
    if not prefix:
        return ""
    last = ord(prefix[-1]) - 1
    return prefix[:-1] + (chr(last) + LAST if last < FIRST_SURROGATE else "")


def read_holdings(
    reader: Reader,
    rows: Sequence[Lease | Reservation | Task],
    engine: Engine,
    summaries: Mapping[str, str] | None = None,
) -> list[Holding]:
    """What is held, each with the time that is left of it or of the session it was claimed for.

    `summaries`, by row id, are those of rows that have no documents any more.
    """
    sessions = HoldingSessions(reader, rows)
    return [
        _holding(
            row,
            sessions.of(row),
            reader.now,
            engine,
            summary_of(row) if summaries is None else summaries.get(row.id, ""),
        )
        for row in rows
    ]


def _holding(
    row: Lease | Reservation | Task, session: Session | None, now: Instant, engine: Engine, summary: str
) -> Holding:
    expires_at = effective_deadline(row, session)
    ttl = offers.longest(row, ttl_of(row))
    offer = offers.open_offer(row, now)
    common: dict[str, Any] = {
        "id": row.id,
        "left": (expires_at or now) - now,
        "ttl": session.ttl if session is not None and expires_at != row.expires_at else ttl,
        "since": now - (row.claimed_at or now),
        "note": row.reason if isinstance(row, Reservation) else row.note,
        "session": session_of(row),
        "offered": None if offer is None else offer.until - now,
        "offered_to": None if offer is None else offer.to,
        "progress": None if isinstance(row, Reservation) else read_progress(row.progress),
        "summary": summary,
    }
    if isinstance(row, Task):
        return Holding(kind="task", title=row.type, owner=row.worker, **common)
    if isinstance(row, Reservation):
        waiting = engine.reservation_waiters.length(row)
        return Holding(kind=row.noun, title=title_of(row), owner=row.owner, waiting=waiting, **common)
    waiting = engine.name_waiters.length(row.key)
    return Holding(kind=row.kind or "job", title=row.id, owner=row.owner, waiting=waiting, **common)


def title_of(row: Reservation) -> str:
    """A reservation in a few words: its first pattern, and how many others it has."""
    first, *others = paths_of(row)
    return f"{first} and {len(others)} more" if others else first


def summary_of(row: Lease | Reservation | Task) -> str:
    """What the payload of a task or the metadata of a job says, in a few words."""
    if isinstance(row, Reservation):
        return row.space
    document = row.payload if isinstance(row, Task) else row.metadata
    return summarize(document) if document else ""


def brief(row: H) -> H:
    """A row without its payload, result, metadata and checkpoints, which can be large."""
    if isinstance(row, Task):
        return replace(row, payload="", result=None, checkpoint=None, ended_checkpoint=None)
    if isinstance(row, Lease):
        return replace(row, metadata=None, checkpoint=None)
    return row
