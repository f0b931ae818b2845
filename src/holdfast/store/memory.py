"""The store that forgets: for simulation and tests. It keeps the same promises as the others, but for durability."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import session as sessions
from holdfast.core.event import Event
from holdfast.core.lease import ELECTION, JOB, LOCK, Lease
from holdfast.core.principal import Principal
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.store.contract import Clock, Counts
from holdfast.store.view import AllNeeds, Answer, Changes, View


class MemoryStore:
    """Rows in dictionaries, one transaction at a time."""

    lanes = 1
    name = "memory"

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or _boot_clock()
        self._lock = threading.RLock()
        self.rows: dict[Key, Row] = {}
        self.log: dict[str, list[Event]] = {}
        self.answers: dict[tuple[str, str], Answer] = {}
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

    def forget_answers(self, before: Instant) -> None:
        """Drop remembered answers older than that."""
        with self._lock:
            self.answers = {key: answer for key, answer in self.answers.items() if answer.answered_at >= before}

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

    def load(self, needs: AllNeeds) -> View:
        """Everything the batch needs."""
        store, now = self._store, self._store.now()
        held = [row for row in store.rows.values() if isinstance(row, Lease) and leases.is_held(row)]
        wanted = {key: store.rows[key] for key in needs.rows if key in store.rows}
        for row in held:
            if row.ephemeral and (row.account, row.session) in needs.session_leases:
                wanted[row.key] = row
        for lease in [row for row in wanted.values() if isinstance(row, Lease)]:
            if lease.session is not None:
                key = (Session.table, lease.account, lease.session)
                wanted.setdefault(key, store.rows[key])
        return View(
            now,
            wanted.values(),
            locks_of={
                owner: sum(leases.counts_for(row, LOCK, now) for row in held if (row.account, row.principal) == owner)
                for owner in needs.locks_of
            },
            rooms={
                account: sum(leases.counts_for(row, ELECTION, now) for row in held if row.account == account)
                for account in needs.rooms
            },
            answers=[store.answers[key] for key in needs.answers if key in store.answers],
        )

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
        for rows in (self._changes.inserts, self._changes.updates):
            for table in rows.values():
                store.rows |= {row.key: row for row in table}
        for event in self._changes.events:
            log = store.log.setdefault(event.account, [])
            log.append(replace(event, seq=len(log) + 1))
        store.answers |= {(answer.account, answer.key): answer for answer in self._changes.answers}


class MemoryReader:
    """A look at the dictionaries."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.now = store.now()

    def _leases(self) -> list[Lease]:
        return [row for row in self._store.rows.values() if isinstance(row, Lease)]

    def lease(self, account: str, name: str) -> Lease | None:
        """The row of a name."""
        row = self._store.rows.get((Lease.table, account, name))
        return row if isinstance(row, Lease) else None

    def session(self, account: str, session_id: str) -> Session | None:
        """The row of a session."""
        row = self._store.rows.get((Session.table, account, session_id))
        return row if isinstance(row, Session) else None

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

    def counts(self, account: str) -> Counts:
        """Totals."""
        live = sum(row.account == account and leases.is_live(row, self.now) for row in self._leases())
        return Counts(live, sum(row.revoked_at is None for row in self.principals(account)))

    def principal(self, key_hash: str) -> Principal | None:
        """Whom a credential stands for."""
        rows = [row for row in self._store.rows.values() if isinstance(row, Principal) and row.key_hash == key_hash]
        return next((row for row in rows if row.revoked_at is None), None)

    def principals(self, account: str) -> list[Principal]:
        """Everybody with a credential."""
        rows = [row for row in self._store.rows.values() if isinstance(row, Principal) and row.account == account]
        return sorted(rows, key=lambda row: row.id)

    def due(self, limit: int) -> list[Key]:
        """Rows whose time has run out."""
        found: list[tuple[Instant, Key]] = []
        for row in self._store.rows.values():
            if isinstance(row, Lease) and leases.is_due(row, self.now):
                found.append((row.expires_at or 0, row.key))
            elif isinstance(row, Session) and sessions.is_due(row, self.now):
                found.append((row.expires_at, row.key))
        return [key for _, key in sorted(found)][:limit]

    def next_deadline(self) -> Instant | None:
        """When the next row's time runs out."""
        deadlines = [row.expires_at for row in self._leases() if row.expires_at is not None]
        deadlines += [
            row.expires_at for row in self._store.rows.values() if isinstance(row, Session) and row.ended_at is None
        ]
        return min(deadlines, default=None)

    def jobs_live_at(self, instant: Instant) -> list[Key]:
        """Jobs live at a moment."""
        return sorted(row.key for row in self._leases() if leases.counts_for(row, JOB, instant))

    def events(self, account: str, after: int, limit: int) -> list[Event]:
        """The log from a cursor on."""
        return self._store.log.get(account, [])[after : after + limit]

    def history(self, account: str, subject: str) -> list[Event]:
        """All events of one subject."""
        return [event for event in self._store.log.get(account, []) if event.subject == subject]


def _boot_clock() -> Clock:
    offset = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return lambda: (time.clock_gettime_ns(time.CLOCK_BOOTTIME) + offset) // 1000
