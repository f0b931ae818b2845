"""The store that forgets: for simulation and tests. It keeps the same promises as the others, but for durability."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from msgspec.structs import replace

from holdfast.core import browser_session as badges
from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.browser_session import BrowserSession
from holdfast.core.budget import Budget, Terms, lend
from holdfast.core.event import RENEWALS, Event
from holdfast.core.event_page import take_bytes
from holdfast.core.lease import ELECTION, JOB, LOCK, Lease
from holdfast.core.plan import Usage
from holdfast.core.principal import Principal, accepts_key
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import LIVE_STATES, Task
from holdfast.core.webhooks.webhook import Webhook, is_in_group
from holdfast.store.changes import Answer, Changes
from holdfast.store.contract import Clock, Counts, TaskPath, Totals
from holdfast.store.memory.deliveries import MemoryDeliveries
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import Rows, absent_subjects

R = TypeVar("R", bound=Row)


class MemoryStore:
    """Rows in dictionaries, one transaction at a time."""

    lanes = 1
    name = "memory"

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or _boot_clock()
        self._lock = threading.RLock()
        self.rows: dict[Key, Row] = {}
        self.log: dict[str, list[Event]] = {}
        self.ends: dict[str, tuple[int, int]] = {}
        """(floor, last seq) of each account's log."""
        self.answers: dict[tuple[str, str], Answer] = {}
        self.usage: dict[str, Usage] = {}
        self.budgets: dict[tuple[str, str], tuple[Instant, int]] = {}
        self.uses: dict[tuple[str, str], Instant] = {}
        self.deliveries = MemoryDeliveries(self)
        self.badges: dict[str, BrowserSession] = {}
        self.token = 0
        self._now: Instant = 0

    def open(self) -> None:
        """Nothing to prepare."""

    def now(self) -> Instant:
        """The clock, which never goes back."""
        self._now = max(self._now, self._clock())
        return self._now

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[MemoryTransaction]:  # noqa: ARG002 - one lane only
        """Begin a batch."""
        with self._lock:
            transaction = MemoryTransaction(self)
            yield transaction
            transaction.commit()

    @contextmanager
    def read(self) -> Iterator[MemoryReader]:
        """Begin a look."""
        with self._lock:
            yield MemoryReader(self)

    def watch(self, on_change: Callable[[], None]) -> SilentWatcher:  # noqa: ARG002 - there are no other processes
        """Nobody else can see this store."""
        return SilentWatcher()

    def beat(self, *, clean: bool = False) -> None:
        """Nothing outlives the process, so nobody will ask."""

    def last_beat(self) -> tuple[Instant, Instant] | None:
        """There is no life before this one."""
        return None

    def forget_answers(self, before: Instant, limit: int = 1_000) -> int:
        """Drop remembered answers older than that."""
        with self._lock:
            old = [key for key, answer in self.answers.items() if answer.answered_at < before][:limit]
            for key in old:
                del self.answers[key]
            return len(old)

    def forget_events(self, account: str, floor: int) -> None:
        """Remove the oldest events of an account."""
        with self._lock:
            self.log[account] = [event for event in self.log.get(account, []) if event.seq > floor]
            self.ends[account] = (max(floor, self.ends[account][0]), self.ends[account][1])

    def erase(self, account: str) -> None:
        """Remove everything of an account."""
        with self._lock:
            self.rows = {key: row for key, row in self.rows.items() if row.account != account}
            self.answers = {key: answer for key, answer in self.answers.items() if key[0] != account}
            self.uses = {key: at for key, at in self.uses.items() if key[0] != account}
            self.budgets = {key: spent for key, spent in self.budgets.items() if key[0] != account}
            self.deliveries.erase(account)
            self.badges = {
                key: browser_session
                for key, browser_session in self.badges.items()
                if browser_session.account != account
            }
            for kept in (self.log, self.ends, self.usage):
                kept.pop(account, None)

    def borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        """Take a slice of a budget."""
        with self._lock:
            now = self.now()
            started_at, used = self.budgets.get((subject, limit_class), (now, 0))
            budget = lend(started_at, used, terms, now)
            self.budgets[subject, limit_class] = (budget.started_at, budget.used)
            return budget

    def note_uses(self, uses: dict[tuple[str, str], Instant]) -> None:
        """When keys were last seen."""
        with self._lock:
            self.uses |= {key: max(at, self.uses.get(key, at)) for key, at in uses.items()}

    def save_browser_session(self, browser_session: BrowserSession) -> None:
        """Let a browser in."""
        with self._lock:
            self.badges[browser_session.id] = browser_session
            for other in badges.excess_sessions(self.badges.values(), browser_session):
                del self.badges[other.id]

    def take_browser_session(self, badge_id: str) -> BrowserSession | None:
        """Remove a badge."""
        with self._lock:
            return self.badges.pop(badge_id, None)

    def forget_browser_sessions(self) -> int:
        """Drop those that let nobody in any more."""
        with self._lock:
            now, before = self.now(), len(self.badges)
            self.badges = {
                key: browser_session
                for key, browser_session in self.badges.items()
                if not badges.is_expired(browser_session, now)
            }
            return before - len(self.badges)

    def size(self) -> int:
        """Nothing is on disk."""
        return 0

    def close(self) -> None:
        """Nothing to let go of."""


class SilentWatcher:
    """For a store that no other process can change."""

    def tell(self) -> None:
        """Nobody listens."""

    def attend(self, waiting: bool) -> None:  # noqa: FBT001 - see the contract
        """Nothing to poll."""

    def close(self) -> None:
        """Nothing to stop."""


class MemoryTransaction:
    """One batch over the dictionaries."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._drawn = store.token
        self._changes: Changes | None = None

    def load(self, needs: AllNeeds) -> Rows:
        """Everything the batch needs."""
        store, now = self._store, self._store.now()
        held = [row for row in store.rows.values() if isinstance(row, Lease) and leases.is_held(row)]
        queued = [row for row in store.rows.values() if isinstance(row, Task)]
        wanted = {key: store.rows[key] for key in needs.rows if key in store.rows}
        keys = {(row.account, row.unique_key) for row in queued if (row.account, row.id) in needs.same_key_as}
        keys |= set(needs.unique_keys)
        own: list[Lease | Task] = [*(row for row in held if row.ephemeral), *queued]
        wanted |= {row.key: row for row in own if (row.account, row.session) in needs.holdings}
        for task in queued:
            if task.unique_key is not None and (task.account, task.unique_key) in keys and task.state in LIVE_STATES:
                wanted[task.key] = task
        for account, task_type, many in needs.ready:
            queue = [row for row in queued if row.account == account and task_type in {"", row.type}]
            ready = sorted((row for row in queue if tasks.is_claimable(row, now)), key=tasks.queue_order)
            wanted |= {row.key: row for row in ready[:many]}
        for carrier in [row for row in wanted.values() if isinstance(row, Lease | Task)]:
            if carrier.session is not None:
                key = (Session.table, carrier.account, carrier.session)
                if key in store.rows:
                    wanted[key] = store.rows[key]
        return Rows(
            now,
            wanted,
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
                peers: sum(isinstance(row, Webhook) and is_in_group(row, peers) for row in store.rows.values())
                for peers in needs.webhook_counts
            },
            answers=[store.answers[key] for key in needs.answers if key in store.answers],
            versions=self._last_versions(absent_subjects(needs, wanted)),
            usage={account: store.usage.get(account, Usage()) for account in needs.usage},
            held_tasks={
                account: sum(row.account == account and leases.is_live(row, now) for row in queued)
                for account in needs.usage
            },
        )

    def _last_versions(self, absent: dict[tuple[str, str], Key]) -> dict[Key, int]:
        """Rows that are not there may have been: their versions go on from the log."""
        found = {}
        for (account, subject), key in absent.items():
            told = [event.version for event in self._store.log.get(account, []) if event.subject == subject]
            if told:
                found[key] = max(told)
        return found

    def seen_ready(self, needs: AllNeeds) -> dict[tuple[str, str], int]:  # noqa: ARG002 - see the contract
        """Nobody else holds locks: what was loaded is all there is."""
        return {}

    def draw(self, count: int) -> list[int]:
        """Fencing tokens."""
        first = self._drawn + 1
        self._drawn += count
        return list(range(first, first + count))

    def save(self, changes: Changes) -> None:
        """Kept aside until the commit."""
        self._changes = changes

    def commit(self) -> None:
        """Make it so."""
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
            floor, last = store.ends.get(event.account, (0, 0))
            store.ends[event.account] = (floor, last + 1)
            store.log.setdefault(event.account, []).append(replace(event, seq=last + 1))
        store.answers |= {(answer.account, answer.key): answer for answer in self._changes.answers}
        for account, more in self._changes.created.items():
            store.usage[account] = store.usage.get(account, Usage()).plus(more)


class MemoryReader:
    """A look at the dictionaries."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.now = store.now()

    def _leases(self) -> list[Lease]:
        return [row for row in self._store.rows.values() if isinstance(row, Lease)]

    def _tasks(self) -> list[Task]:
        return [row for row in self._store.rows.values() if isinstance(row, Task)]

    def row(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """A row by its key."""
        row = self._store.rows.get((row_type.table, account, row_id))
        return row if isinstance(row, row_type) else None

    def rows_after(self, row_type: type[R], account: str, row_id: str, limit: int) -> list[R]:
        """Rows of every account, in the order of their keys."""
        found = [row for row in self._store.rows.values() if isinstance(row, row_type)]
        return sorted((row for row in found if row.key[1:] > (account, row_id)), key=lambda row: row.key)[:limit]

    def leases(self, account: str, prefix: str, after: str, limit: int) -> list[Lease]:
        """Live leases by name."""
        found = [
            row
            for row in self._leases()
            if row.account == account and row.id.startswith(prefix) and leases.is_live(row, self.now)
        ]
        return sorted((row for row in found if row.id.encode() > after.encode()), key=lambda row: row.id.encode())[
            :limit
        ]

    def count_of_session(self, account: str, session_id: str) -> int:
        """How many leases carry this session."""
        return sum(row.account == account and row.session == session_id for row in self._leases())

    def next_token(self) -> int:
        """The token that the next grant would get."""
        return self._store.token + 1

    def usage(self, account: str) -> tuple[Usage, int]:
        """What an account has used, and how many tasks are held."""
        held = sum(row.account == account and leases.is_live(row, self.now) for row in self._tasks())
        return self._store.usage.get(account, Usage()), held

    def uses(self, account: str) -> dict[str, Instant]:
        """When each key of an account was last seen."""
        return {row_id: at for (owner, row_id), at in self._store.uses.items() if owner == account}

    def counts(self, account: str) -> Counts:
        """Totals."""
        live = sum(row.account == account and leases.is_live(row, self.now) for row in self._leases())
        return Counts(live, sum(row.revoked_at is None for row in self.principals(account)))

    def principal(self, key_hash: str) -> Principal | None:
        """Whom a credential stands for."""
        rows = [row for row in self._store.rows.values() if isinstance(row, Principal)]
        return next((row for row in rows if accepts_key(row, key_hash, self.now)), None)

    def browser_session(self, badge_id: str) -> BrowserSession | None:
        """What lets a browser in."""
        return self._store.badges.get(badge_id)

    def principals(self, account: str) -> list[Principal]:
        """Everybody with a credential."""
        rows = [row for row in self._store.rows.values() if isinstance(row, Principal) and row.account == account]
        return sorted(rows, key=lambda row: row.id)

    def sessions(self, account: str, after: str, limit: int) -> list[Session]:
        """Sessions by id."""
        rows = [row for row in self._store.rows.values() if isinstance(row, Session)]
        found = [row for row in rows if row.account == account and row.id > after]
        return sorted(found, key=lambda row: row.id)[:limit]

    def live_sessions(self, account: str, after: str, limit: int) -> list[Session]:
        """Sessions that may still act."""
        live = [row for row in self.sessions(account, after, len(self._store.rows)) if sessions.is_live(row, self.now)]
        return live[:limit]

    def holdings(self, account: str, session_id: str) -> tuple[list[Lease], list[Task]]:
        """What was claimed for a session's life."""
        mine = (account, session_id)
        held = [row for row in self._leases() if row.ephemeral and (row.account, row.session) == mine]
        taken = [row for row in self._tasks() if (row.account, row.session) == mine]
        return sorted(held, key=lambda row: row.id), sorted(taken, key=lambda row: row.id)

    def tasks(self, account: str, by: TaskPath, before: str, limit: int) -> list[Task]:
        """Tasks older than an id, newest first."""
        found = [row for row in self._tasks() if row.account == account and row.id < before]
        if by.tag is not None:
            found = [row for row in found if row.tag == by.tag]
        elif by.unique_key is not None:
            found = [row for row in found if row.unique_key == by.unique_key]
        else:
            found = [row for row in found if by.type in {None, row.type} and by.state in {None, row.state}]
        return sorted(found, key=lambda row: row.id, reverse=True)[:limit]

    def task_counts(self, account: str) -> list[tuple[str, str, int]]:
        """(type, state, how many)."""
        counted = Counter((row.type, row.state) for row in self._tasks() if row.account == account)
        return [(*key, counted[key]) for key in sorted(counted)]

    def queues(self, account: str, limit: int) -> list[tuple[str, int, Instant]]:
        """(type, how many wait, when the oldest of them was made), the oldest first."""
        waiting = [row for row in self._tasks() if (row.account, row.state) == (account, tasks.PENDING)]
        heads = {row.type: row.created_at for row in sorted(waiting, key=lambda row: row.id, reverse=True)}
        counted = Counter(row.type for row in waiting)
        found = [(task_type, counted[task_type], oldest) for task_type, oldest in heads.items()]
        return sorted(found, key=lambda queue: (queue[2], queue[0]))[:limit]

    def running_out(self, account: str, limit: int) -> list[Task]:
        """Tasks that are held, those that run out first."""
        held = [row for row in self._tasks() if (row.account, row.state) == (account, tasks.CLAIMED)]
        return sorted(held, key=lambda row: (row.expires_at or 0, row.id))[:limit]

    def totals(self) -> Totals:
        """Numbers over all accounts."""
        live = sum(leases.is_live(row, self.now) for row in self._leases())
        return Totals(
            live, dict(Counter(row.state for row in self._tasks())), tasks.longest_wait(self._tasks(), self.now)
        )

    def due(self, limit: int, account: str = "") -> list[Key]:
        """Rows whose time has run out, or has come."""
        found = [(at, row.key) for at, row in self._deadlines() if at <= self.now and account in {"", row.account}]
        return [key for _, key in sorted(found)][:limit]

    def next_deadline(self) -> Instant | None:
        """When the next row's time runs out or comes."""
        return min((at for at, _ in self._deadlines()), default=None)

    def _deadlines(self) -> Iterator[tuple[Instant, Row]]:
        for row in self._store.rows.values():
            at: Instant | None = None
            if isinstance(row, Task):
                at = tasks.deadline(row)
            elif isinstance(row, Lease) or (isinstance(row, Session) and row.ended_at is None):
                at = row.expires_at
            if at is not None:
                yield at, row

    def held_at(self, instant: Instant) -> list[Key]:
        """Jobs, tasks and named sessions held at a moment."""
        found: list[Row] = [row for row in self._leases() if leases.counts_toward_limit(row, JOB, instant)]
        found += [row for row in self._tasks() if leases.is_live(row, instant)]
        found += [
            row
            for row in self._store.rows.values()
            if isinstance(row, Session) and row.name is not None and sessions.is_live(row, instant)
        ]
        return sorted(row.key for row in found)

    def task_accounts(self) -> list[str]:
        """Every account that has tasks."""
        return sorted({row.account for row in self._tasks()})

    def finished_before(self, account: str, instant: Instant, limit: int, *, dead: bool) -> list[Key]:
        """Tasks that finished before then, oldest first."""
        own = [row for row in self._tasks() if row.account == account]
        found = [row for row in own if tasks.is_purgeable(row, instant) and (dead or row.state != tasks.DEAD)]
        return [row.key for row in sorted(found, key=lambda row: row.changed_at)][:limit]

    def events(self, account: str, after: int, limit: int, most: int | None = None) -> list[Event]:
        """The log from a cursor on."""
        log = self._store.log.get(account, [])
        found = [event for event in log if event.seq > after][:limit]
        return found if most is None else list(take_bytes(found, most))

    def history(self, account: str, subject: str) -> list[Event]:
        """All events of one subject."""
        return [event for event in self._store.log.get(account, []) if event.subject == subject]

    def granted(self, account: str, subject: str, version: int) -> Event | None:
        """The last event of a lease before a version that told whose it is."""
        told = [event for event in self.history(account, subject) if event.version < version]
        return next((event for event in reversed(told) if event.kind in {"lease.claimed", "lease.snapshot"}), None)

    def events_of_request(self, account: str, request_id: str, after: int) -> list[Event]:
        """What one request changed."""
        log = self._store.log.get(account, [])
        return [event for event in log if event.seq > after and event.request_id == request_id]

    def pace(self, account: str, after: int) -> list[tuple[int, str, int]]:
        """(minute, kind, how many) from a cursor on."""
        log = self._store.log.get(account, [])
        counted = Counter((event.at // 60_000_000, event.kind) for event in log if event.seq > after)
        return [(*key, counted[key]) for key in sorted(counted)]

    def news(self, account: str, subject: str, limit: int) -> list[Event]:
        """The newest events of one subject but for renewals, newest first."""
        return [event for event in reversed(self.history(account, subject)) if event.kind not in RENEWALS][:limit]

    def log_bounds(self, account: str) -> tuple[int, int]:
        """(up to where retention has removed the log, its last event)."""
        return self._store.ends.get(account, (0, 0))

    def logs(self) -> list[str]:
        """Every account that has a log."""
        return sorted(self._store.ends)

    def older_than(self, account: str, instant: Instant, limit: int) -> int:
        """The last of the oldest events that is older than that."""
        first = self._store.log.get(account, [])[:limit]
        return max((event.seq for event in first if event.at < instant), default=0)

    def subjects_until(self, account: str, seq: int) -> list[str]:
        """Whom the log tells of up to there."""
        return sorted({event.subject for event in self._store.log.get(account, []) if event.seq <= seq})

    def subjects_after(self, account: str, subject: str, limit: int) -> list[str]:
        """Whom the log tells of, by name."""
        found = {event.subject for event in self._store.log.get(account, []) if event.subject > subject}
        return sorted(found)[:limit]


def _boot_clock() -> Clock:
    offset = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return lambda: (time.clock_gettime_ns(time.CLOCK_BOOTTIME) + offset) // 1000
