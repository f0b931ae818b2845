"""What is held just now, as rows of a table: names and tasks alike have a holder and a deadline."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core.lease import ELECTION, Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.core.task import Task
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader

LAST = "\U0010ffff"
"""Sorts behind every character of a name."""
FIRST_SURROGATE = 0xD800


class Holding(msgspec.Struct, frozen=True):
    """One thing that somebody has."""

    kind: str
    """job, lock or task"""
    id: str
    title: str
    owner: str | None
    left: Instant
    ttl: Instant
    since: Instant
    """How long it has been held."""
    waiting: int = 0
    note: str | None = None
    session: str | None = None

    @property
    def quiet(self) -> Instant:
        """How long nothing was heard of its holder: every sign of life starts the whole time again."""
        return max(self.ttl - self.left, 0)

    @property
    def pulse(self) -> str:
        """How alive its holder seems: it should be heard of every third of its time."""
        return pulse(self.left, self.ttl)


def pulse(left: Instant, ttl: Instant) -> str:
    """Lively while heard of in time, quiet when one sign of life is missing, fading when two are."""
    if left * 3 >= ttl * 2 - ttl // 20:
        return "lively"
    return "quiet" if left * 3 >= ttl else "fading"


def names(reader: Reader, by: Principal, prefix: str, after: str, limit: int) -> list[Lease]:
    """Held jobs and locks that a principal may see, by name; rooms of elections are not among them."""
    if not by.covers(prefix):
        own = by.name_prefix or ""
        if not own.startswith(prefix):
            return []
        prefix = own
    found: list[Lease] = []
    while len(found) < limit:
        page = reader.leases(by.account, prefix, after, limit)
        found += [lease for lease in page if lease.kind != ELECTION]
        if len(page) < limit:
            break
        after = past_elections(page[-1].id)
    return found[:limit]


def past_elections(name: str) -> str:
    """Where to go on after a name: there may be thousands of rooms, and none of them is wanted."""
    return ELECTION_PREFIX + LAST if name.startswith(ELECTION_PREFIX) else name


def before(prefix: str) -> str:
    """A cursor just before all names that begin so."""
    if not prefix:
        return ""
    last = ord(prefix[-1]) - 1
    return prefix[:-1] + (chr(last) + LAST if last < FIRST_SURROGATE else "")


def of_lease(lease: Lease, now: Instant, engine: Engine) -> Holding:
    """A name that is held."""
    return Holding(
        kind=lease.kind or "job",
        id=lease.id,
        title=lease.id,
        owner=lease.owner,
        left=(lease.expires_at or now) - now,
        ttl=lease.ttl,
        since=now - (lease.claimed_at or now),
        waiting=engine.lines.length(lease.key),
        note=lease.note,
        session=lease.session if lease.ephemeral else None,
    )


def of_task(task: Task, now: Instant) -> Holding:
    """A task that is worked on."""
    return Holding(
        kind="task",
        id=task.id,
        title=task.type,
        owner=task.worker,
        left=(task.expires_at or now) - now,
        ttl=task.lease_duration,
        since=now - (task.claimed_at or now),
        note=task.note,
        session=task.session,
    )


def without_work(task: Task) -> Task:
    """A task without what it is about, which can be large."""
    return replace(task, payload="", result=None, checkpoint=None, ended_checkpoint=None, progress=None)
