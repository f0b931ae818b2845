"""One batch on the in-memory store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.core import lease as leases
from holdfast.core import task as tasks
from holdfast.core.lease import ELECTION, LOCK, Lease
from holdfast.core.offer import claimed_for
from holdfast.core.plan import Usage
from holdfast.core.reservation.row import Reservation, SpaceUse, indexed_prefixes, is_waiting
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.core.webhooks.webhook import Webhook, is_in_group
from holdfast.store.changes import Changes
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import Rows, absent_subjects

if TYPE_CHECKING:
    from holdfast.store.memory.store import MemoryStore


class MemoryTransaction:
    """One batch on the dictionaries; changes are applied at the commit."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._drawn = store.token
        self._changes: Changes | None = None

    def load(self, needs: AllNeeds, lock_seconds: float | None = None) -> Rows:
        """Everything the batch needs."""
        store, now, wall = self._store, self._store.now(), self._store.wall()
        rows = self._find_rows(needs, wall)
        return Rows(
            now,
            rows,
            lock_counts={owner: self._count_live("held by", *owner, LOCK, now=now) for owner in needs.lock_counts},
            election_counts={
                account: self._count_live("held as", account, ELECTION, now=now) for account in needs.election_counts
            },
            webhook_counts={
                group: sum(isinstance(row, Webhook) and is_in_group(row, group) for row in self._webhooks())
                for group in needs.webhook_counts
            },
            answers=[store.answers[key] for key in needs.answers if key in store.answers],
            versions=self._last_versions(absent_subjects(needs, rows)),
            spaces={space: self._space_use(*space, now) for space in needs.spaces()},
            usage={account: store.usage.get(account, Usage()) for account in needs.usage},
            held_tasks={account: store.indexes.count_held_tasks(account, now) for account in needs.usage},
            wall=wall,
        )

    def _count_live(self, *group: str, now: Instant) -> int:
        rows = map(self._store.rows.__getitem__, self._store.indexes.group(*group))
        return sum(isinstance(row, Lease) and leases.is_live(row, now) for row in rows)

    def _space_use(self, account: str, space: str, now: Instant) -> SpaceUse:
        rows = [self._store.rows[key] for key in self._store.indexes.group("reserved in", account, space)]
        found = [row for row in rows if isinstance(row, Reservation)]
        return SpaceUse(
            held=sum(leases.is_live(row, now) for row in found), waiting=sum(is_waiting(row, now) for row in found)
        )

    def _reservations(self, needs: AllNeeds) -> list[Key]:
        """The reservations under the prefixes asked for."""
        group = self._store.indexes.group
        keys = [key for wanted in needs.covering_prefixes() for key in group("reserved under", *wanted)]
        for account, space, first, end in needs.prefixes_below():
            for key in group("reserved in", account, space):
                row = self._store.rows[key]
                prefixes = indexed_prefixes(row) if isinstance(row, Reservation) else ()
                if any(first <= prefix and (end is None or prefix < end) for prefix in prefixes):
                    keys.append(key)
        return keys

    def _webhooks(self) -> Iterable[Row]:
        return self._store.indexes.tables.get(Webhook.table, {}).values()

    def _find_rows(self, needs: AllNeeds, wall: Instant) -> dict[Key, Row]:
        """The rows asked for, those of the sessions and queues asked for, and the sessions that hold any of them."""
        store, group = self._store, self._store.indexes.group
        keys = [*needs.rows]
        for account, session in needs.holdings:
            keys += group("session", account, session)
        unique_keys = {*needs.unique_keys}
        for account, task_id in needs.same_key_as:
            task = store.rows.get((Task.table, account, task_id))
            if isinstance(task, Task) and task.unique_key is not None:
                unique_keys.add((account, task.unique_key))
        for account, unique_key in unique_keys:
            keys += group("unique key", account, unique_key)
        for queue in needs.ready:
            keys += self._ready(*queue, wall)
        keys += self._reservations(needs)
        found = {key: store.rows[key] for key in keys if key in store.rows}
        for row in [row for row in found.values() if isinstance(row, Lease | Task | Reservation)]:
            key = (Session.table, row.account, claimed_for(row) or "")
            if key in store.rows:
                found[key] = store.rows[key]
        return found

    def _ready(self, account: str, task_type: str, limit: int, wall: Instant) -> list[Key]:
        """The first tasks of a queue, and the first scheduled tasks that are due but not marked ready yet."""
        indexes, store = self._store.indexes, self._store
        queue = indexes.ready.get((account, task_type))
        scheduled = (store.rows[key] for _, key in indexes.schedules.up_to(wall) if key[1] == account)
        due = [row for row in scheduled if isinstance(row, Task) and task_type in {"", row.type}]
        first = [row.key for row in sorted(due, key=tasks.queue_order)[:limit]]
        return [*(queue.first(limit) if queue is not None else []), *first]

    def _last_versions(self, absent: dict[tuple[str, str], Key]) -> dict[Key, int]:
        """The last versions of rows that were removed: the next row under that id continues from there."""
        histories = {key: self._store.history.get(subject) for subject, key in absent.items()}
        return {key: history[-1].version for key, history in histories.items() if history}

    def count_claimable(self, needs: AllNeeds) -> None:
        """No other server writes meanwhile, so everything claimable was loaded."""

    def draw(self, count: int) -> list[int]:
        """Fencing tokens."""
        first = self._drawn + 1
        self._drawn += count
        return list(range(first, first + count))

    def set_clock(self, to: Instant) -> None:
        """Set the time that never goes back."""
        self._store.set_clock(to)

    def save(self, changes: Changes) -> None:
        """Keep the changes until the commit."""
        self._changes = changes

    def commit(self) -> None:
        """Apply the saved changes."""
        if self._changes is None:
            return
        store = self._store
        store.token = self._drawn
        for saved in (self._changes.inserts, self._changes.updates):
            for rows in saved.values():
                for row in rows:
                    store.change(row.key, row)
        for rows in self._changes.deletes.values():
            for row in rows:
                store.change(row.key, None)
        for event in self._changes.events:
            store.append(event)
        store.answers |= {(answer.account, answer.key): answer for answer in self._changes.answers}
        for account, more in self._changes.created.items():
            store.usage[account] = store.usage.get(account, Usage()).plus(more)
