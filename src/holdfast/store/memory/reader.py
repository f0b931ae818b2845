"""Reads of the in-memory store. Each is the rule that a query of the databases must match."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice, takewhile
from typing import TypeVar

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.browser_session import BrowserSession
from holdfast.core.event import RENEWALS, Event, without_repeated_renewals
from holdfast.core.lease import JOB, Lease
from holdfast.core.limits import COUNTED_READY
from holdfast.core.page import PAGE_BYTES, take_bytes
from holdfast.core.plan import Usage
from holdfast.core.principal import Principal, accepts_key, is_user
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.core.task.missing_workers import ReadyWork
from holdfast.store.contract.counts import Counts, Totals
from holdfast.store.contract.reads import HISTORY_PAGE, TaskPath
from holdfast.store.memory.dependency_reader import DependencyReader

R = TypeVar("R", bound=Row)


class MemoryReader(DependencyReader):
    """Reads the dictionaries."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Nothing is written while anything is read."""
        return nullcontext()

    def _leases(self) -> list[Lease]:
        return self._rows(Lease)

    def _tasks(self) -> list[Task]:
        return self._rows(Task)

    def row(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """A row by its key."""
        row = self._store.rows.get((row_type.table, account, row_id))
        return row if isinstance(row, row_type) else None

    def rows_after(
        self, row_type: type[R], account: str, row_id: str, limit: int, max_bytes: int | None = None
    ) -> list[R]:
        """Rows of every account, in the order of their keys."""
        after = sorted(
            (row for row in self._rows(row_type) if row.key[1:] > (account, row_id)), key=lambda row: row.key
        )
        return list(take_bytes(after[:limit], max_bytes))

    def leases(
        self, account: str, prefix: str, after: str, limit: int, max_bytes: int | None = None, *, done: bool = False
    ) -> list[Lease]:
        """Live leases, or jobs that are done, by name."""
        belongs = leases.is_done if done else leases.is_live
        found = [
            row
            for row in self._leases()
            if row.account == account and row.id.startswith(prefix) and belongs(row, self.now)
        ]
        following = sorted((row for row in found if row.id.encode() > after.encode()), key=lambda row: row.id.encode())
        return list(take_bytes(following[:limit], max_bytes))

    def count_session_leases(self, account: str, session_id: str) -> int:
        """How many leases name this session."""
        return sum(row.account == account and row.session == session_id for row in self._leases())

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return self._store.token + 1

    def usage(self, account: str) -> tuple[Usage, int]:
        """What an account has used, and how many tasks are held."""
        return self._store.usage.get(account, Usage()), self._store.indexes.count_held_tasks(account, self.now)

    def key_uses(self, account: str) -> dict[str, Instant]:
        """When each key of an account was last used."""
        return {row_id: at for (owner, row_id), at in self._store.key_uses.items() if owner == account}

    def counts(self, account: str) -> Counts:
        """Live leases and users of an account."""
        live = self._store.indexes.count_live_leases(account, self.now)
        return Counts(live, sum(map(is_user, self.principals(account))))

    def principal(self, key_hash: str) -> Principal | None:
        """The principal that a credential is valid for now."""
        rows = map(self._store.rows.__getitem__, self._store.indexes.group("key", key_hash))
        return next((row for row in rows if isinstance(row, Principal) and accepts_key(row, key_hash, self.now)), None)

    def browser_session(self, session_id: str) -> BrowserSession | None:
        """A browser session or sign-in link."""
        return self._store.browser_sessions.get(session_id)

    def principals(self, account: str) -> list[Principal]:
        """All principals of an account by id."""
        return sorted((row for row in self._rows(Principal) if row.account == account), key=lambda row: row.id)

    def sessions(
        self, account: str, after: str, limit: int, max_bytes: int | None = None, *, live: bool = False
    ) -> list[Session]:
        """Sessions by id."""
        found = [row for row in self._rows(Session) if row.account == account and row.id > after]
        found = [row for row in found if sessions.is_live(row, self.now)] if live else found
        return list(take_bytes(sorted(found, key=lambda row: row.id)[:limit], max_bytes))

    def tasks(self, account: str, by: TaskPath, before: str, limit: int, max_bytes: int | None = None) -> list[Task]:
        """Tasks older than an id, newest first."""
        found = [row for row in self._tasks() if row.account == account and row.id < before]
        if by.tag is not None:
            found = [row for row in found if row.tag == by.tag]
        elif by.unique_key is not None:
            found = [row for row in found if row.unique_key == by.unique_key]
        elif by.waits_for is not None:
            found = [row for row in found if row.waits_for == by.waits_for]
        else:
            found = [row for row in found if by.type in {None, row.type} and by.state in {None, row.state}]
        return list(take_bytes(sorted(found, key=lambda row: row.id, reverse=True)[:limit], max_bytes))

    def running_keys(self, account: str, task_type: str) -> dict[str, int]:
        """How many tasks of a queue are claimed, by concurrency key."""
        return dict(self._store.indexes.running_keys(account, task_type))

    def task_counts(self, account: str) -> list[tuple[str, str, int]]:
        """(type, state, count)."""
        counted = self._store.indexes.task_counts
        return [(*key[1:], counted[key]) for key in sorted(counted) if key[0] == account and counted[key]]

    def count_resolved(self, account: str, limit: int) -> int:
        """How many of at most `limit` dead letters are resolved."""
        dead = (row for row in self._tasks() if (row.account, row.state) == (account, tasks.DEAD))
        return sum(row.resolved_at is not None for row in islice(dead, limit))

    def queues(self, account: str, limit: int) -> list[tuple[str, int, Instant]]:
        """(type, how many tasks wait, when the oldest of them was created), the oldest first."""
        waiting = [row for row in self._tasks() if (row.account, row.state) == (account, tasks.PENDING)]
        heads = {row.type: row.created_at for row in sorted(waiting, key=lambda row: row.id, reverse=True)}
        counted = Counter(row.type for row in waiting)
        found = [(task_type, counted[task_type], oldest) for task_type, oldest in heads.items()]
        return sorted(found, key=lambda queue: (queue[2], queue[0]))[:limit]

    def ready_work(self, account: str, limit: int) -> list[ReadyWork]:
        """Ready tasks by type and required words."""
        found = []
        for (owner, task_type), sets in sorted(self._store.indexes.ready.items()):
            for words, keys in sorted(sets.items()):
                first = next(iter(keys), None)
                if owner == account and task_type and first is not None:
                    head = self._store.rows[first[1]]
                    assert isinstance(head, Task)
                    count = sum(1 for _ in islice(keys, COUNTED_READY))
                    found.append(ReadyWork(task_type, words, head.place, count))
        return found[:limit]

    def next_to_expire(self, account: str, limit: int, max_bytes: int | None = None) -> list[Task]:
        """Claimed tasks, those that expire first at the front."""
        held = [row for row in self._tasks() if (row.account, row.state) == (account, tasks.CLAIMED)]
        return list(take_bytes(sorted(held, key=lambda row: (row.expires_at or 0, row.id))[:limit], max_bytes))

    def totals(self) -> Totals:
        """Numbers over all accounts."""
        store, by_state = self._store, Counter[str]()
        for (_, _, state), count in store.indexes.task_counts.items():
            by_state[state] += count
        live = sum(at > self.now and key[0] == Lease.table for at, key in store.indexes.deadlines)
        queues = (
            queue for (_, task_type), sets in store.indexes.ready.items() if not task_type for queue in sets.values()
        )
        ready = [row for _, key in chain.from_iterable(queues) if isinstance(row := store.rows[key], Task)]
        return Totals(live, dict(+by_state), tasks.longest_wait(ready, self.now))

    def due(self, limit: int, account: str = "") -> list[Key]:
        """Rows that have expired or become due."""
        indexes, ahead = self._store.indexes, self.now - self.wall
        found = [*indexes.deadlines.up_to(self.now)]
        found += [(at + ahead, key) for at, key in indexes.schedules.up_to(self.wall)]
        found += self._releasing()
        return [key for _, key in sorted(found) if account in {"", key[1]}][:limit]

    def next_deadline(self) -> Instant | None:
        """When the next row expires or becomes due; a schedule follows the wall clock."""
        expires_at, scheduled_at = self._store.indexes.deadlines.lowest(), self._store.indexes.schedules.lowest()
        due_at = None if scheduled_at is None else scheduled_at + self.now - self.wall
        releasing = [at for at, _ in self._releasing()]
        return min((at for at in (expires_at, due_at, *releasing) if at is not None), default=None)

    def _releasing(self) -> list[tuple[Instant, Key]]:
        """Finished tasks with dependents that have not learned of it, each with when it finished."""
        rows = map(self._store.rows.__getitem__, self._store.indexes.group("releasing"))
        return [(row.changed_at, row.key) for row in rows]

    def held_at(self, instant: Instant) -> list[Key]:
        """Held jobs, reservations and tasks and open named sessions that had not expired at that time."""
        found: list[Row] = [row for row in self._leases() if leases.counts_toward_limit(row, JOB, instant)]
        found += [row for row in self._rows(Reservation) if leases.is_live(row, instant)]
        found += [row for row in self._tasks() if leases.is_live(row, instant)]
        found += [row for row in self._rows(Session) if row.name is not None and sessions.is_live(row, instant)]
        return sorted(row.key for row in found)

    def finished_before(self, account: str, instant: Instant, limit: int, *, dead: bool) -> list[Key]:
        """Tasks that finished before then, oldest first."""
        own = [row for row in self._tasks() if row.account == account]
        found = [row for row in own if tasks.is_purgeable(row, instant) and (dead or row.state != tasks.DEAD)]
        found = [row for row in found if not (row.awaited and self.is_needed(row))]
        return [row.key for row in sorted(found, key=lambda row: row.changed_at)][:limit]

    def oldest_done(self, account: str, keep: int, limit: int) -> list[Key]:
        """Jobs that are done, without the newest ones."""
        done = [(row.done_at, row.key) for row in self._leases() if row.account == account and row.done_at is not None]
        return [key for _, key in sorted(done, reverse=True)[keep : keep + limit]]

    def events(self, account: str, after: int, limit: int, max_bytes: int | None = None) -> list[Event]:
        """Events after a cursor."""
        log = self._store.log.get(account, [])
        first = bisect_right(log, after, key=lambda event: event.seq)
        return list(take_bytes(log[first : first + limit], max_bytes))

    def history(
        self, account: str, subject: str, after: int = 0, limit: int = HISTORY_PAGE, max_bytes: int = PAGE_BYTES
    ) -> list[Event]:
        """The events of one subject after a version."""
        found = [event for event in self._of_subject(account, subject) if event.version > after]
        return list(take_bytes(found[:limit], max_bytes))

    def _of_subject(self, account: str, subject: str) -> list[Event]:
        return self._store.history.get((account, subject), [])

    def brief_history(
        self, account: str, subject: str, after: int = 0, limit: int = HISTORY_PAGE, max_bytes: int = PAGE_BYTES
    ) -> list[Event]:
        """The events of one subject after a version, without repeated renewals."""
        history = without_repeated_renewals(self._of_subject(account, subject))
        return list(take_bytes([event for event in history if event.version > after][:limit], max_bytes))

    def last_grant(self, account: str, subject: str, version: int) -> Event | None:
        """The last event of a lease below a version that shows its holder."""
        earlier = [event for event in self._of_subject(account, subject) if event.version < version]
        return next((event for event in reversed(earlier) if event.kind in {"lease.claimed", "lease.snapshot"}), None)

    def events_of_request(
        self, account: str, request_id: str, after: int, limit: int, max_bytes: int | None = None
    ) -> list[Event]:
        """The events of one request after a cursor."""
        log = self._store.log.get(account, [])
        found = [event for event in log if event.seq > after and event.request_id == request_id]
        return list(take_bytes(found[:limit], max_bytes))

    def events_per_minute(self, account: str, after: int) -> list[tuple[int, str, int]]:
        """(minute, kind, count) after a cursor."""
        log = self._store.log.get(account, [])
        counted = Counter((event.at // 60_000_000, event.kind) for event in log if event.seq > after)
        return [(*key, counted[key]) for key in sorted(counted)]

    def recent_events(self, account: str, subject: str, limit: int) -> list[Event]:
        """The newest events of one subject, newest first, without renewals."""
        history = self._of_subject(account, subject)
        return [event for event in reversed(history) if event.kind not in RENEWALS][:limit]

    def changes(self, account: str, after: int, before: int, limit: int, max_bytes: int | None = None) -> list[Event]:
        """The newest events between two cursors, newest first, without renewals."""
        log = self._store.log.get(account, [])
        found = (event for event in reversed(log) if event.seq < before and event.kind not in RENEWALS)
        return list(take_bytes(list(islice(takewhile(lambda event: event.seq > after, found), limit)), max_bytes))

    def log_bounds(self, account: str) -> tuple[int, int]:
        """(the last event removed by retention, the last event)."""
        return self._store.log_bounds.get(account, (0, 0))

    def log_accounts(self) -> list[str]:
        """Every account that has a log."""
        return sorted(self._store.log_bounds)

    def last_event_before(self, account: str, instant: Instant, limit: int) -> int:
        """The last of the oldest events that is older than that time and follows no younger event."""
        oldest = self._store.log.get(account, [])[:limit]
        before_young = takewhile(lambda event: not instant <= event.at <= self.now, oldest)
        return max((event.seq for event in before_young if 0 <= event.at < instant), default=0)

    def subjects_up_to(self, account: str, seq: int) -> list[str]:
        """The subjects of all events up to a cursor."""
        return sorted({event.subject for event in self._store.log.get(account, []) if event.seq <= seq})

    def subjects_after(self, account: str, subject: str, limit: int) -> list[str]:
        """The subjects that sort after one."""
        found = {event.subject for event in self._store.log.get(account, []) if event.subject > subject}
        return sorted(found)[:limit]
