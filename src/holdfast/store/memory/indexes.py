"""Indexes of the in-memory store: the work of a batch must not grow with the number of stored rows."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

from holdfast.core import task as tasks
from holdfast.core.lease import Lease, is_held
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import LIVE_STATES, PENDING, Task

R = TypeVar("R")


class SortedKeys(Generic[R]):
    """Keys in the order of what they are sorted by; both are in one list, which C code searches and shifts."""

    def __init__(self) -> None:
        self._entries: list[tuple[R, Key]] = []

    def add(self, order: R, key: Key) -> None:
        """Insert a key."""
        insort(self._entries, (order, key))

    def remove(self, order: R, key: Key) -> None:
        """Remove a key that was inserted under this order."""
        del self._entries[bisect_left(self._entries, (order, key))]

    def first(self, limit: int) -> list[Key]:
        """The first keys."""
        return [key for _, key in self._entries[:limit]]

    def up_to(self, order: R) -> Iterator[tuple[R, Key]]:
        """Entries that sort up to this order, itself included."""
        for entry in self._entries:
            if entry[0] > order:  # type: ignore[operator]
                return
            yield entry

    def lowest(self) -> R | None:
        """The order of the first key."""
        return self._entries[0][0] if self._entries else None


class Indexes:
    """Which rows belong together, kept up to date with every change of a row."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, Row]] = {}
        self.groups: dict[Hashable, dict[Key, None]] = {}
        """The keys of each group that `_groups` names."""
        self.ready: dict[tuple[str, str], SortedKeys[Any]] = {}
        """Ready tasks in queue order, by (account, type) and, for all types, by (account, "")."""
        self.schedules: SortedKeys[Instant] = SortedKeys()
        """Tasks that wait for their time."""
        self.deadlines: SortedKeys[Instant] = SortedKeys()
        """What expires."""

    def group(self, *name: Hashable) -> list[Key]:
        """The keys of a group."""
        return list(self.groups.get(name, ()))

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
            self.ready.setdefault(queue, SortedKeys()).add(tasks.queue_order(row), row.key)  # type: ignore[arg-type]
        expires_at, scheduled_at = _times(row)
        if expires_at is not None:
            self.deadlines.add(expires_at, row.key)
        if scheduled_at is not None:
            self.schedules.add(scheduled_at, row.key)

    def _remove(self, row: Row) -> None:
        del self.tables[row.table][row.key]
        for name in _groups(row):
            del self.groups[name][row.key]
            if not self.groups[name]:
                del self.groups[name]
        for queue in _queues(row):
            self.ready[queue].remove(tasks.queue_order(row), row.key)  # type: ignore[arg-type]
        expires_at, scheduled_at = _times(row)
        if expires_at is not None:
            self.deadlines.remove(expires_at, row.key)
        if scheduled_at is not None:
            self.schedules.remove(scheduled_at, row.key)


def _groups(row: Row) -> list[tuple[Hashable, ...]]:
    """The groups by which rows are looked up."""
    found: list[tuple[Hashable, ...]] = []
    if isinstance(row, Lease) and is_held(row):
        found += [("held by", row.account, row.principal, row.kind), ("held as", row.account, row.kind)]
    is_session_bound = isinstance(row, Task) or (isinstance(row, Lease) and row.ephemeral and is_held(row))
    if isinstance(row, Lease | Task) and is_session_bound and row.session is not None:
        found.append(("session", row.account, row.session))
    if isinstance(row, Task) and row.unique_key is not None and row.state in LIVE_STATES:
        found.append(("unique key", row.account, row.unique_key))
    if isinstance(row, Task) and row.expires_at is not None:
        found.append(("held tasks", row.account))
    if isinstance(row, Principal):
        found += [("key", hash_) for hash_ in {row.key_hash, row.old_key_hash, row.listed_hash} - {None}]
    return found


def _queues(row: Row) -> list[tuple[str, str]]:
    """The queues in which a task waits."""
    return [(row.account, row.type), (row.account, "")] if isinstance(row, Task) and row.ready else []


def _times(row: Row) -> tuple[Instant | None, Instant | None]:
    """When it expires, by the store's clock, and for when it is scheduled, by the wall clock."""
    if isinstance(row, Task):
        at = tasks.deadline(row)
        return (None, at) if row.state == PENDING else (at, None)
    if isinstance(row, Lease) or (isinstance(row, Session) and row.ended_at is None):
        return row.expires_at, None
    return None, None
