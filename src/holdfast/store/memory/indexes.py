"""Indexes of the in-memory store: the work of a batch must not grow with the number of stored rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import chain, islice, takewhile
from typing import Any, Generic, TypeVar

from holdfast.core import question as questions
from holdfast.core import task as tasks
from holdfast.core.lease import ELECTION, JOB, LOCK, Lease, is_held
from holdfast.core.principal import Principal
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation, indexed_prefixes, is_open
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import CLAIMED, LIVE_STATES, PENDING, Task

R = TypeVar("R")

MAX_ENTRIES = 1_000
"""How long a list of sorted keys may become."""


class SortedKeys(Generic[R]):
    """Keys in the order of what they are sorted by: short sorted lists, one after the other.

    C code searches and shifts them. Shifting one list of a million entries would take 350 µs.
    """

    def __init__(self) -> None:
        self._lists: list[list[tuple[R, Key]]] = [[]]
        """None of them is empty, unless it is the only one."""
        self._bounds: list[tuple[R, Key]] = []
        """Where each list but the first begins."""

    def add(self, order: R, key: Key) -> None:
        """Insert a key."""
        entry = (order, key)
        position = bisect_right(self._bounds, entry)
        entries = self._lists[position]
        insort(entries, entry)
        if len(entries) > MAX_ENTRIES:
            middle = len(entries) // 2
            self._bounds.insert(position, entries[middle])
            self._lists.insert(position + 1, entries[middle:])
            del entries[middle:]

    def remove(self, order: R, key: Key) -> None:
        """Remove a key that was inserted under this order."""
        entry = (order, key)
        position = bisect_right(self._bounds, entry)
        entries = self._lists[position]
        del entries[bisect_left(entries, entry)]
        if not entries and self._bounds:
            del self._lists[position]
            del self._bounds[max(position - 1, 0)]

    def __iter__(self) -> Iterator[tuple[R, Key]]:
        """Every order with its key."""
        return chain.from_iterable(self._lists)

    def first(self, limit: int) -> list[Key]:
        """The first keys."""
        return [key for _, key in islice(self, limit)]

    def up_to(self, order: R) -> Iterator[tuple[R, Key]]:
        """Entries that sort up to this order, itself included."""
        return takewhile(lambda entry: entry[0] <= order, self)  # type: ignore[operator]

    def lowest(self) -> R | None:
        """The order of the first key."""
        return self._lists[0][0][0] if self._lists[0] else None


class Indexes:
    """Which rows belong together, kept up to date with every change of a row."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, Row]] = {}
        self.groups: dict[Hashable, dict[Key, None]] = {}
        """The keys of each group that `_groups` names."""
        self.ready: dict[tuple[str, str], dict[str, SortedKeys[Any]]] = {}
        """Ready tasks in queue order, by (account, type) and, for all types, by (account, ""); then by what they
        require."""
        self.schedules: SortedKeys[Instant] = SortedKeys()
        """Pending tasks that are scheduled or have a deadline, by the earlier of both, and open questions with one."""
        self.deadlines: SortedKeys[Instant] = SortedKeys()
        """What expires."""
        self.task_counts: Counter[tuple[str, str, str]] = Counter()
        """How many tasks there are, by (account, type, state)."""

    def group(self, *name: Hashable) -> list[Key]:
        """The keys of a group."""
        return list(self.groups.get(name, ()))

    def count_live_leases(self, account: str, now: Instant) -> int:
        """How many leases of an account are held and have not expired."""
        held = sum(len(self.groups.get(("held as", account, kind), ())) for kind in (JOB, LOCK, ELECTION))
        return held - self._count_expired(Lease.table, account, now)

    def running_keys(self, account: str, task_type: str) -> Counter[str]:
        """How many tasks of a queue are claimed, by concurrency key."""
        rows = (self.tables[Task.table][key] for key in self.group("running with a key", account, task_type))
        return Counter(row.concurrency_key or "" for row in rows if isinstance(row, Task))

    def count_held_tasks(self, account: str, now: Instant) -> int:
        """How many tasks of an account are held and have not expired."""
        return len(self.groups.get(("held tasks", account), ())) - self._count_expired(Task.table, account, now)

    def _count_expired(self, table: str, account: str, now: Instant) -> int:
        return sum(key[:2] == (table, account) for _, key in self.deadlines.up_to(now))

    def replace(self, before: Row | None, after: Row | None) -> None:
        """A row changed: None is a row that does not exist."""
        if before is not None:
            self._remove(before)
        if after is not None:
            self._add(after)

    def _add(self, row: Row) -> None:
        self.tables.setdefault(row.table, {})[row.key] = row
        for name in _groups(row):
            self.groups.setdefault(name, {})[row.key] = None
        for queue in _queues(row):
            assert isinstance(row, Task)
            found = self.ready.setdefault(queue, {}).setdefault(row.requires or "", SortedKeys())
            found.add(tasks.queue_order(row), row.key)
        expires_at, scheduled_at = _times(row)
        if expires_at is not None:
            self.deadlines.add(expires_at, row.key)
        if scheduled_at is not None:
            self.schedules.add(scheduled_at, row.key)
        if isinstance(row, Task):
            self.task_counts[row.account, row.type, row.state] += 1

    def _remove(self, row: Row) -> None:
        del self.tables[row.table][row.key]
        for name in _groups(row):
            del self.groups[name][row.key]
            if not self.groups[name]:
                del self.groups[name]
        for queue in _queues(row):
            assert isinstance(row, Task)
            self.ready[queue][row.requires or ""].remove(tasks.queue_order(row), row.key)
        expires_at, scheduled_at = _times(row)
        if expires_at is not None:
            self.deadlines.remove(expires_at, row.key)
        if scheduled_at is not None:
            self.schedules.remove(scheduled_at, row.key)
        if isinstance(row, Task):
            self.task_counts[row.account, row.type, row.state] -= 1


def _groups(row: Row) -> list[tuple[Hashable, ...]]:
    """The groups by which rows are looked up."""
    found: list[tuple[Hashable, ...]] = []
    if isinstance(row, Lease) and is_held(row):
        found += [("held by", row.account, row.principal, row.kind), ("held as", row.account, row.kind)]
    is_session_bound = isinstance(row, Task) or (
        isinstance(row, Lease | Reservation) and is_held(row) and (isinstance(row, Reservation) or row.ephemeral)
    )
    if isinstance(row, Lease | Task | Reservation) and is_session_bound and row.session is not None:
        found.append(("session", row.account, row.session))
    if isinstance(row, Task) and row.unique_key is not None and row.state in LIVE_STATES:
        found.append(("unique key", row.account, row.unique_key))
    if isinstance(row, Task) and row.concurrency_key is not None and row.state == CLAIMED:
        found.append(("running with a key", row.account, row.type))
    if isinstance(row, Task) and row.depends_on is not None:
        found += [("needs", row.account, needed) for needed in tasks.needed_ids(row)]
    if isinstance(row, Task) and row.releasing is not None:
        found.append(("releasing",))
    if isinstance(row, Task) and row.expires_at is not None:
        found.append(("held tasks", row.account))
    if isinstance(row, Reservation) and is_open(row):
        found += [("reserved in", row.account, row.space), ("reserved in any space", row.account)]
        found += [("reserved under", row.account, row.space, prefix) for prefix in indexed_prefixes(row)]
    if isinstance(row, Principal):
        found += [("key", hash_) for hash_ in {row.key_hash, row.old_key_hash, row.listed_hash} - {None}]
    return found


def _queues(row: Row) -> list[tuple[str, str]]:
    """The queues in which a task waits."""
    return [(row.account, row.type), (row.account, "")] if isinstance(row, Task) and row.ready else []


def _times(row: Row) -> tuple[Instant | None, Instant | None]:
    """When it expires, by the store's clock, and when a pending task or a question is due, by the wall clock."""
    if isinstance(row, Task):
        at = None if row.releasing is not None else tasks.deadline(row)
        return (None, at) if row.state == PENDING else (at, None)
    if isinstance(row, Question):
        return None, questions.deadline(row)
    if isinstance(row, Reservation):
        return row.waits_until if row.expires_at is None else row.expires_at, None
    if isinstance(row, Lease) or (isinstance(row, Session) and row.ended_at is None):
        return row.expires_at, None
    return None, None
