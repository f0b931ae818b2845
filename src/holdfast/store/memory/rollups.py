"""Roll-ups of the in-memory store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from holdfast.core.event import RENEWALS, Event
from holdfast.core.rollups.rollup import Rollup, merge
from holdfast.core.row import Instant
from holdfast.core.task import PENDING, Task
from holdfast.store.contract.rollups import MAX_DELAYED, CountedEvents, CountedUntil, IntervalKey, UncountedLog


class MemoryRollups:
    """Roll-ups in dictionaries, by the rules that the queries of the databases must match."""

    def __init__(self, store: Any) -> None:
        self._store = store  # for its log, its clock and its lock
        self.rows: dict[tuple[str, Instant, Instant], Rollup] = {}
        self.cursors: dict[str, tuple[CountedUntil, Instant]] = {}
        """By account: how far its log is counted, and when that was saved."""

    def uncounted(self, not_since: Instant, limit: int) -> list[UncountedLog]:
        """Accounts with uncounted events, the ones that were saved first at the front."""
        with self._store.read():
            found = []
            for account, (floor, last) in self._store.log_bounds.items():
                until, saved_at = self.cursors.get(account, (None, 0))
                cursor = None if until is None else until.seq
                if (-1 if cursor is None else cursor) < last and (cursor is None or saved_at <= not_since):
                    found.append((saved_at, account, UncountedLog(account, cursor, floor, last)))
            return [each for _, _, each in sorted(found, key=lambda each: each[:2])[:limit]]

    def add(self, counted: Sequence[CountedEvents], keep_since: Mapping[Instant, Instant]) -> list[str]:
        """Move cursors and merge what was counted."""
        with self._store.read() as reader:
            moved = []
            for each in counted:
                until, _ = self.cursors.get(each.account, (None, 0))
                if (None if until is None else until.seq) != each.cursor:
                    continue
                self.cursors[each.account] = (CountedUntil(each.seq, each.counted_to), reader.now)
                self._merge(each.account, each.rollups)
                moved.append(each.account)
            old = [key for key in self.rows if key[0] in moved and key[2] < keep_since.get(key[1], 0)]
            for key in old:
                del self.rows[key]
            return moved

    def _merge(self, account: str, rollups: Mapping[IntervalKey, Rollup]) -> None:
        for interval, rollup in rollups.items():
            key = (account, *interval)
            self.rows[key] = merge(self.rows.get(key, Rollup()), rollup)

    def tasks_before(self, account: str, versions: Mapping[str, int]) -> dict[str, tuple[str | None, Event | None]]:
        """Of each task its type and its last event below a version."""
        with self._store.read() as reader:
            found: dict[str, tuple[str | None, Event | None]] = {}
            for task_id, version in versions.items():
                row = reader.row(Task, account, task_id)
                history = self._store.history.get((account, f"{Task.noun}:{task_id}"), [])
                earlier = [each for each in history if each.version < version and each.kind not in RENEWALS]
                found[task_id] = (None if row is None else row.type, earlier[-1] if earlier else None)
            return found

    def delayed_tasks(self, account: str) -> dict[str, int]:
        """How many pending tasks of each type are not in their queue."""
        with self._store.read():
            rows = self._store.indexes.tables.get(Task.table, {}).values()
            delayed = (row.type for row in rows if row.account == account and row.state == PENDING and not row.ready)
            return dict(Counter(islice(delayed, MAX_DELAYED)))

    def counted_until(self, account: str) -> CountedUntil | None:
        """How far an account's log is counted."""
        with self._store.read():
            return self.cursors.get(account, (None, 0))[0]

    def page(self, account: str, length: Instant, since: Instant) -> list[tuple[Instant, Rollup]]:
        """The intervals since then, and the last one before."""
        with self._store.read():
            found = [(key[2], row) for key, row in self.rows.items() if key[:2] == (account, length)]
            rows = sorted(found, key=lambda row: row[0])
            return [row for row in rows if row[0] < since][-1:] + [row for row in rows if row[0] >= since]

    def erase(self, account: str) -> None:
        """Delete everything of an account."""
        self.rows = {key: row for key, row in self.rows.items() if key[0] != account}
        self.cursors.pop(account, None)
