"""One batch on the in-memory store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.core import lease as leases
from holdfast.core import task as tasks
from holdfast.core.lease import ELECTION, LOCK, Lease
from holdfast.core.offer import claimed_for
from holdfast.core.plan import Usage
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation, SpaceUse, indexed_prefixes, is_waiting
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task, needs_dependencies
from holdfast.core.task.capabilities import may_take
from holdfast.core.task.queue import Head, Queue
from holdfast.core.webhooks.webhook import Webhook, is_in_group
from holdfast.store.changes import Changes
from holdfast.store.concurrency_keys import (
    LimitedClaim,
    LimitedQueue,
    limited_claims,
    limited_queues,
    running_by_key,
    set_ending,
)
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import LoadedRows, Rows, absent_subjects

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
        limited = self._limited_queues(rows, needs)
        for claim in limited_claims(needs, limited, self._capabilities):
            rows |= {key: store.rows[key] for key in self._with_room(claim, wall)}
        dependents = self._add_dependents(rows, needs)
        self._add_questions(rows)
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
            dependents=dependents,
            spaces={space: self._space_use(*space, now) for space in needs.spaces()},
            usage={account: store.usage.get(account, Usage()) for account in needs.usage},
            running={key[1:]: self._running(row) for key, row in rows.items() if isinstance(row, Queue)},
            running_by_key=running_by_key(limited),
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
        keys += self._queues(needs)
        needs = self._in_open_queues(needs, map(store.rows.get, {*keys}))
        for account, task_type, limit in needs.ready:
            keys += self._ready(account, task_type, "", limit, wall)
        for claim in needs.capable_claims(self._capabilities):
            keys += self._ready(*claim, wall)
        keys += self._reservations(needs)
        found = {key: store.rows[key] for key in keys if key in store.rows}
        for row in [row for row in found.values() if isinstance(row, Lease | Task | Reservation)]:
            key = (Session.table, row.account, claimed_for(row) or "")
            if key in store.rows:
                found[key] = store.rows[key]
        return found

    def _add_questions(self, rows: dict[Key, Row]) -> None:
        """Add the questions of tasks that wait for an answer."""
        loaded = LoadedRows()
        loaded.rows = rows
        keys: list[Key] = [(Question.table, *question) for question in loaded.questions()]
        rows |= {key: self._store.rows[key] for key in keys if key in self._store.rows}

    def _add_dependents(self, rows: dict[Key, Row], needs: AllNeeds) -> dict[tuple[str, str], list[str]]:
        """Add tasks that depend on others, and list them."""
        loaded = LoadedRows()
        loaded.rows = rows
        found: dict[tuple[str, str], list[str]] = {}
        for account, task, after, most in loaded.awaited(needs):
            keys = sorted(self._store.indexes.group("needs", account, task))
            dependents = [row for key in keys if isinstance(row := self._store.rows[key], Task)]
            needing = [row for row in dependents if row.id > after and needs_dependencies(row)][:most]
            found[account, task] = [row.id for row in needing]
            rows |= {row.key: row for row in needing}
        return found

    def _queues(self, needs: AllNeeds) -> list[Key]:
        """The queues with settings that were asked for."""
        accounts = {account for account, task_type in needs.queues if not task_type}
        wanted = {*needs.queues}
        for account, task_id in needs.queues_of:
            task = self._store.rows.get((Task.table, account, task_id))
            if isinstance(task, Task):
                wanted.add((account, task.type))
        queues = self._store.indexes.tables.get(Queue.table, {}).values()
        return [row.key for row in queues if row.account in accounts or (row.account, row.id) in wanted]

    def _in_open_queues(self, needs: AllNeeds, loaded: Iterable[Row | None]) -> AllNeeds:
        """The needs with claims of any type as claims of each type whose queue is open, or that the batch may open."""
        loaded = list(loaded)
        queues = [row for row in loaded if isinstance(row, Queue)]
        running = {(queue.account, queue.id): self._running(queue) for queue in queues}
        closed = needs.closed_queues(queues, running, loaded)
        split = needs.split_accounts(running)
        return needs.in_open_queues(closed, {account: self._ready_types(account) for account in split})

    def _running(self, queue: Row) -> int:
        return self._store.indexes.task_counts[queue.account, queue.id, tasks.CLAIMED]

    def _ready_types(self, account: str) -> list[str]:
        """The types that have claimable tasks, and perhaps others."""
        counted = self._store.indexes.task_counts
        return sorted({name for other, name, state in counted if (other, state) == (account, tasks.PENDING)})

    def _capabilities(self, account: str, session: str) -> str | None:
        found = self._store.rows.get((Session.table, account, session))
        return found.capabilities if isinstance(found, Session) else None

    def _ready(self, account: str, task_type: str, capabilities: str, limit: int, wall: Instant) -> list[Key]:
        """The first tasks of a queue, and the first scheduled tasks that are due but not marked ready yet.

        Without capabilities those that require none, else those that require some of them and no others.
        """
        indexes, store = self._store.indexes, self._store

        def is_wanted(requires: str | None) -> bool:
            return bool(requires) == bool(capabilities) and may_take(capabilities, requires)

        queues = indexes.ready.get((account, task_type), {})
        keys = [key for words, queue in queues.items() if is_wanted(words) for key in queue.first(limit)]
        scheduled = (store.rows[key] for _, key in indexes.schedules.up_to(wall) if key[1] == account)
        tasks_due = (row for row in scheduled if isinstance(row, Task) and tasks.is_schedule_due(row, wall))
        wanted = (row for row in tasks_due if task_type in {"", row.type} and is_wanted(row.requires))
        return [*keys, *(row.key for row in sorted(wanted, key=tasks.queue_order)[:limit])]

    def _limited_queues(self, rows: dict[Key, Row], needs: AllNeeds) -> list[LimitedQueue]:
        """The loaded queues with a limit for each concurrency key."""
        limited = limited_queues((row for row in rows.values() if isinstance(row, Queue)), needs)
        for queue in limited:
            queue.running = self._store.indexes.running_keys(queue.account, queue.type)
            set_ending(queue, rows)
        return limited

    def _with_room(self, claim: LimitedClaim, wall: Instant) -> Iterator[Key]:
        """The first tasks of a queue whose keys have room, and those that have just come due."""
        store, queue = self._store, claim.queue
        lists = [*store.indexes.ready.get((queue.account, queue.type), {}).values()]
        due = (store.rows[key] for _, key in store.indexes.schedules.up_to(wall) if key[1] == queue.account)
        tasks_due = [row for row in due if isinstance(row, Task) and tasks.is_schedule_due(row, wall)]
        ours = sorted((row for row in tasks_due if row.type == queue.type), key=tasks.queue_order)
        for limit in queue.limits:
            for found in (*((store.rows[key] for _, key in each) for each in lists), ours):
                rows = (row for row in found if isinstance(row, Task))
                heads = (Head(row.id, row.concurrency_key, row.requires) for row in rows)
                for head in claim.choose(heads, limit):
                    yield (Task.table, queue.account, head.id)

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

    def advance_tokens(self, floor: int) -> None:
        """Move the counter ahead."""
        self._drawn = max(self._drawn, floor)

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
