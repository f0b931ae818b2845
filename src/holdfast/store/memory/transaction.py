"""One batch on the in-memory store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import task as tasks
from holdfast.core.lease import ELECTION, LOCK, Lease
from holdfast.core.plan import Usage
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import LIVE_STATES, Task
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
        held = [row for row in store.rows.values() if isinstance(row, Lease) and leases.is_held(row)]
        queued = [row for row in store.rows.values() if isinstance(row, Task)]
        rows = self._find_rows(needs, wall, held, queued)
        return Rows(
            now,
            rows,
            lock_counts={
                owner: sum(
                    leases.counts_toward_limit(row, LOCK, now) for row in held if (row.account, row.principal) == owner
                )
                for owner in needs.lock_counts
            },
            election_counts={
                account: sum(leases.counts_toward_limit(row, ELECTION, now) for row in held if row.account == account)
                for account in needs.election_counts
            },
            webhook_counts={
                group: sum(isinstance(row, Webhook) and is_in_group(row, group) for row in store.rows.values())
                for group in needs.webhook_counts
            },
            answers=[store.answers[key] for key in needs.answers if key in store.answers],
            versions=self._last_versions(absent_subjects(needs, rows)),
            usage={account: store.usage.get(account, Usage()) for account in needs.usage},
            held_tasks={
                account: sum(row.account == account and leases.is_live(row, now) for row in queued)
                for account in needs.usage
            },
            wall=wall,
        )

    def _find_rows(self, needs: AllNeeds, wall: Instant, held: list[Lease], queued: list[Task]) -> dict[Key, Row]:
        """The rows asked for, those of the sessions and queues asked for, and the sessions that hold any of them."""
        store = self._store
        found = {key: store.rows[key] for key in needs.rows if key in store.rows}
        keys = {(row.account, row.unique_key) for row in queued if (row.account, row.id) in needs.same_key_as}
        keys |= set(needs.unique_keys)
        own: list[Lease | Task] = [*(row for row in held if row.ephemeral), *queued]
        found |= {row.key: row for row in own if (row.account, row.session) in needs.holdings}
        for task in queued:
            if task.unique_key is not None and (task.account, task.unique_key) in keys and task.state in LIVE_STATES:
                found[task.key] = task
        for account, task_type, limit in needs.ready:
            queue = [row for row in queued if row.account == account and task_type in {"", row.type}]
            ready = sorted((row for row in queue if tasks.is_claimable(row, wall)), key=tasks.queue_order)
            found |= {row.key: row for row in ready[:limit]}
        for row in [row for row in found.values() if isinstance(row, Lease | Task)]:
            key = (Session.table, row.account, row.session or "")
            if row.session is not None and key in store.rows:
                found[key] = store.rows[key]
        return found

    def _last_versions(self, absent: dict[tuple[str, str], Key]) -> dict[Key, int]:
        """The last versions of rows that were removed: the next row under that id continues from there."""
        found = {}
        for (account, subject), key in absent.items():
            versions = [event.version for event in self._store.log.get(account, []) if event.subject == subject]
            if versions:
                found[key] = max(versions)
        return found

    def count_claimable(self, needs: AllNeeds) -> dict[tuple[str, str], int]:
        """No other server holds locks, so everything claimable was loaded."""
        return {}

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
                store.rows |= {row.key: row for row in rows}
        for rows in self._changes.deletes.values():
            for row in rows:
                del store.rows[row.key]
        for event in self._changes.events:
            floor, last = store.log_bounds.get(event.account, (0, 0))
            store.log_bounds[event.account] = (floor, last + 1)
            store.log.setdefault(event.account, []).append(replace(event, seq=last + 1))
        store.answers |= {(answer.account, answer.key): answer for answer in self._changes.answers}
        for account, more in self._changes.created.items():
            store.usage[account] = store.usage.get(account, Usage()).plus(more)
