"""Held jobs, locks and tasks, as rows of one table."""

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
"""Sorts after every character of a name."""
FIRST_SURROGATE = 0xD800


class Holding(msgspec.Struct, frozen=True):
    """A held job, lock or task."""

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
    def since_renewal(self) -> Instant:
        """Time since the last claim or renewal, which starts the whole TTL again."""
        return max(self.ttl - self.left, 0)

    @property
    def health(self) -> str:
        """Whether the holder renews in time."""
        return renewal_health(self.left, self.ttl)


def renewal_health(left: Instant, ttl: Instant) -> str:
    """`healthy`, `late` or `expiring`: a holder should renew every third of its TTL, and missed none, one or two."""
    if left * 3 >= ttl * 2 - ttl // 20:
        return "healthy"
    return "late" if left * 3 >= ttl else "expiring"


def held_leases(reader: Reader, by: Principal, prefix: str, after: str, limit: int) -> list[Lease]:
    """Held jobs and locks that a principal may see, sorted by name, without elections."""
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


def from_lease(lease: Lease, now: Instant, engine: Engine) -> Holding:
    """A held job or lock."""
    return Holding(
        kind=lease.kind or "job",
        id=lease.id,
        title=lease.id,
        owner=lease.owner,
        left=(lease.expires_at or now) - now,
        ttl=lease.ttl,
        since=now - (lease.claimed_at or now),
        waiting=engine.name_waiters.length(lease.key),
        note=lease.note,
        session=lease.session if lease.ephemeral else None,
    )


def from_task(task: Task, now: Instant) -> Holding:
    """A claimed task."""
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


def without_documents(task: Task) -> Task:
    """A task without its payload, result and other JSON documents, which can be large."""
    return replace(task, payload="", result=None, checkpoint=None, ended_checkpoint=None, progress=None)
