"""The in-memory store, for tests and simulation: the behaviour of the other stores without durability."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from holdfast.clock import boot_nanoseconds
from holdfast.core import browser_session as browser_sessions
from holdfast.core.browser_session import BrowserSession
from holdfast.core.budget import Budget, Terms, lend
from holdfast.core.event import Event
from holdfast.core.plan import Usage
from holdfast.core.row import Instant, Key, Row
from holdfast.store.changes import Answer
from holdfast.store.contract import Clock
from holdfast.store.contract.housekeeping import ERASED_AT_ONCE
from holdfast.store.damaged_rows import DamagedRows
from holdfast.store.memory.deliveries import MemoryDeliveries
from holdfast.store.memory.indexes import Indexes
from holdfast.store.memory.reader import MemoryReader
from holdfast.store.memory.rollups import MemoryRollups
from holdfast.store.memory.transaction import MemoryTransaction


class MemoryStore:
    """Rows in dictionaries, one transaction at a time."""

    lanes = 1
    name = "memory"
    is_local = True
    clock_jump: Instant = 0

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or _boot_clock()
        self._has_own_clock = clock is None
        self._lock = threading.RLock()
        self.damaged_rows = DamagedRows()
        self.rows: dict[Key, Row] = {}
        self.indexes = Indexes()
        self.log: dict[str, list[Event]] = {}
        self.history: dict[tuple[str, str], list[Event]] = {}
        """By account and subject: the part of the log that is about it."""
        self.log_bounds: dict[str, tuple[int, int]] = {}
        """By account: (last event removed, last event)."""
        self.answers: dict[tuple[str, str], Answer] = {}
        self.usage: dict[str, Usage] = {}
        self.budgets: dict[tuple[str, str], tuple[Instant, int]] = {}
        self.key_uses: dict[tuple[str, str], Instant] = {}
        self.deliveries = MemoryDeliveries(self)
        self.rollups = MemoryRollups(self)
        self.browser_sessions: dict[str, BrowserSession] = {}
        self.token = 0
        self._now: Instant = 0

    def check_minimum_schema(self) -> None:
        """Do nothing: no other server can use this store."""

    def await_open_batches(self) -> None:
        """Do nothing: no other process has batches."""

    def open(self) -> None:
        """Nothing to prepare."""

    def check_other_records(self) -> None:
        """Nothing to check: its records were never written anywhere."""

    def now(self) -> Instant:
        """The time, which never goes back."""
        self._now = max(self._now, self._clock())
        return self._now

    def change(self, key: Key, row: Row | None) -> None:
        """Put a row, or delete it."""
        self.indexes.replace(self.rows.get(key), row)
        if row is None:
            del self.rows[key]
        else:
            self.rows[key] = row

    def append(self, event: Event) -> None:
        """Give an event its number and add it to the log."""
        floor, last = self.log_bounds.get(event.account, (0, 0))
        self.log_bounds[event.account] = (floor, last + 1)
        numbered = replace(event, seq=last + 1)
        self.log.setdefault(event.account, []).append(numbered)
        self.history.setdefault((event.account, event.subject), []).append(numbered)

    def _drop_history(self, account: str) -> None:
        self.history = {key: events for key, events in self.history.items() if key[0] != account}

    def set_clock(self, to: Instant) -> None:
        """Let the time begin again from here."""
        self._now = to

    def wall(self) -> Instant:
        """The time of the wall clock, or of a test's clock."""
        return time.time_ns() // 1000 if self._has_own_clock else self._clock()

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[MemoryTransaction]:
        """Begin a batch."""
        with self._lock:
            transaction = MemoryTransaction(self)
            yield transaction
            transaction.commit()

    @contextmanager
    def reserve(self) -> Iterator[bool]:
        """Always: nobody keeps this store for long."""
        yield True

    @contextmanager
    def read(self) -> Iterator[MemoryReader]:
        """Begin reading."""
        with self._lock:
            yield MemoryReader(self)

    def watch(self, on_change: Callable[[], None]) -> SilentWatcher:
        """A watcher that never reports: no other process can change this store."""
        return SilentWatcher()

    def beat(self) -> tuple[Instant | None, Instant]:
        """Nothing to record: the data ends with the process."""
        return None, self.now()

    def last_beat(self) -> tuple[Instant, Instant] | None:
        """No earlier process used this store."""
        return None

    def close_outage(self, last_beat: Instant) -> None:
        """Nothing to record."""

    def forget_answers(self, before: Instant, limit: int = 1_000) -> int:
        """Delete old answers."""
        with self._lock:
            old = [key for key, answer in self.answers.items() if answer.answered_at < before][:limit]
            for key in old:
                del self.answers[key]
            return len(old)

    def forget_events(self, account: str, floor: int) -> None:
        """Delete the oldest events of an account."""
        with self._lock:
            self.log[account] = [event for event in self.log.get(account, []) if event.seq > floor]
            self._drop_history(account)
            for event in self.log[account]:
                self.history.setdefault((account, event.subject), []).append(event)
            self.log_bounds[account] = (max(floor, self.log_bounds[account][0]), self.log_bounds[account][1])

    def erase(self, account: str, limit: int = ERASED_AT_ONCE) -> bool:
        """Delete rows of an account; after the last of them, everything else that it has."""
        with self._lock:
            rows = [row for row in self.rows.values() if row.account == account]
            for row in rows[:limit]:
                self.change(row.key, None)
            if len(rows) >= limit:
                return True
            self._drop_history(account)
            self.answers = {key: answer for key, answer in self.answers.items() if key[0] != account}
            self.key_uses = {key: at for key, at in self.key_uses.items() if key[0] != account}
            self.budgets = {key: spent for key, spent in self.budgets.items() if key[0] != account}
            self.deliveries.erase(account)
            self.rollups.erase(account)
            self.browser_sessions = {
                key: each for key, each in self.browser_sessions.items() if each.account != account
            }
            for table in (self.log, self.log_bounds, self.usage):
                table.pop(account, None)
            return False

    def borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        """Take a part of a shared budget."""
        with self._lock:
            now = self.now()
            started_at, used = self.budgets.get((subject, limit_class), (now, 0))
            budget = lend(started_at, used, terms, now)
            self.budgets[subject, limit_class] = (budget.started_at, budget.used)
            return budget

    def save_key_uses(self, uses: dict[tuple[str, str], Instant]) -> None:
        """Save when keys were last used."""
        with self._lock:
            self.key_uses |= {key: max(at, self.key_uses.get(key, at)) for key, at in uses.items()}

    def save_browser_session(self, browser_session: BrowserSession) -> None:
        """Insert a browser session."""
        with self._lock:
            self.browser_sessions[browser_session.id] = browser_session
            for other in browser_sessions.excess_sessions(self.browser_sessions.values(), browser_session):
                del self.browser_sessions[other.id]

    def update_browser_session(self, session_id: str, seen_at: Instant) -> None:
        """Save when a browser session was last seen."""
        with self._lock:
            found = self.browser_sessions.get(session_id)
            if found is not None and found.seen_at < seen_at:
                self.browser_sessions[session_id] = replace(found, seen_at=seen_at)

    def take_browser_session(self, session_id: str) -> BrowserSession | None:
        """Delete a browser session and return it."""
        with self._lock:
            return self.browser_sessions.pop(session_id, None)

    def forget_browser_sessions(self) -> int:
        """Delete expired browser sessions and sign-in links."""
        with self._lock:
            now, before = self.now(), len(self.browser_sessions)
            self.browser_sessions = {
                key: each for key, each in self.browser_sessions.items() if not browser_sessions.is_expired(each, now)
            }
            return before - len(self.browser_sessions)

    def check_durable(self) -> None:
        """Do nothing: memory promises no durability."""

    def size(self) -> int:
        """Nothing is on disk."""
        return 0

    def close(self) -> None:
        """Nothing to close."""


class SilentWatcher:
    """A watcher for a store that no other process can change."""

    def notify(self) -> None:
        """No process to notify."""

    def set_waiting(self, *, waiting: bool) -> None:
        """Nothing to poll."""

    def close(self) -> None:
        """Nothing to stop."""


def _boot_clock() -> Clock:
    """The time since 1970, counted on the boot clock: steps of the wall clock do not move it."""
    offset = time.time_ns() - boot_nanoseconds()
    return lambda: (boot_nanoseconds() + offset) // 1000
