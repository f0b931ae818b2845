"""The simulated database: the rules of the in-memory store, with transactions that overlap as on PostgreSQL.

Loaded rows are locked until the end of the transaction; a row that does not exist cannot be locked, so of two
transactions that insert it the second one runs again; ready tasks that are locked are skipped; tokens come from a
sequence; tasks are counted from what each transaction reports. While one server's transaction is open, others act.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import OutcomeUnknown, StoreUnavailable
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import LIVE_STATES, Task
from holdfast.store.changes import Changes
from holdfast.store.concurrency_keys import LimitedClaim
from holdfast.store.contract import Rerun, RowsLocked
from holdfast.store.memory.reader import MemoryReader
from holdfast.store.memory.store import MemoryStore
from holdfast.store.memory.transaction import MemoryTransaction
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import Rows

if TYPE_CHECKING:
    from tests.simulation.server import Server
    from tests.simulation.world import World


class Database(MemoryStore):
    """What survives every crash."""

    def __init__(self, world: World) -> None:
        super().__init__(lambda: world.time.now)
        self.world = world
        self.locks: dict[Hashable, DatabaseTransaction] = {}
        self.task_counts: Counter[tuple[str, str, str]] = Counter()
        self.wall_step: Instant = 0
        """By how much the wall clock was set."""
        self.beat_at: Instant | None = None
        self.is_clean = True

    def wall(self) -> Instant:
        return self.world.time.now + self.wall_step

    def beat(self) -> tuple[Instant | None, Instant]:
        before = None if self.is_clean else self.beat_at
        self.beat_at, self.is_clean = self.now(), False
        return before, self.beat_at

    def last_beat(self) -> tuple[Instant, Instant] | None:
        return None if self.is_clean or self.beat_at is None else (self.beat_at, self.now())

    def close_outage(self, last_beat: Instant) -> None:
        self.is_clean = self.is_clean or self.beat_at == last_beat


class DatabaseReader(MemoryReader):
    """Reads the committed state; the numbers of tasks are those that were counted."""

    def task_counts(self, account: str) -> list[tuple[str, str, int]]:
        counted = self._store.task_counts.items()
        return sorted((*key[1:], total) for key, total in counted if key[0] == account and total)


class DatabaseTransaction(MemoryTransaction):
    """One transaction of one server."""

    def __init__(self, database: Database, server: Server) -> None:
        super().__init__(database)
        self.database = database
        self._server = server
        self._newest_token = database.token
        """Before this transaction: it must draw larger ones."""
        self._has_skipped = False
        """Whether tasks of queues with a limit for each key were locked that claims could take."""

    def load(self, needs: AllNeeds, lock_seconds: float | None = None) -> Rows:
        rows = super().load(needs)
        rows.skipped = self._has_skipped
        if self.database.world.faults.overlaps:
            self._lock(needs, rows)
            self.database.world.interleave(self._server)
        return rows

    def _lock(self, needs: AllNeeds, rows: Rows) -> None:
        asked = set(needs.rows)
        # The session of a loaded lease is read, not locked: who ends it locks the lease.
        wanted: list[Hashable] = [key for key in rows.rows if key in asked or key[0] != Session.table]
        wanted += [("count", *owner) for owner in (*needs.lock_counts, *needs.webhook_counts)]
        wanted += [("answer", *key) for key in needs.answers if needs.ready]
        wanted += self._space_locks(needs)
        locks = self.database.locks
        if any(key in locks for key in wanted):
            self.database.world.count("locked row")
            raise RowsLocked
        locks.update(dict.fromkeys(wanted, self))

    def _space_locks(self, needs: AllNeeds) -> list[Hashable]:
        return [("space", *space) for space in needs.spaces()]

    def _add_dependents(self, rows: dict[Key, Row], needs: AllNeeds) -> dict[tuple[str, str], list[str]]:
        """Dependents that another server has locked are listed, and not loaded."""
        asked = set(rows)
        found = super()._add_dependents(rows, needs)
        for key in [key for key in rows if key not in asked and key in self.database.locks]:
            self.database.world.count("locked dependent")
            del rows[key]
        return found

    def _ready(self, account: str, task_type: str, capabilities: str, limit: int, wall: Instant) -> list[Key]:
        locks = self.database.locks
        found = super()._ready(account, task_type, capabilities, limit + len(locks), wall)
        return [key for key in found if key not in locks] if locks else found

    def _with_room(self, claim: LimitedClaim, wall: Instant) -> Iterator[Key]:
        for key in super()._with_room(claim, wall):
            if key in self.database.locks:
                self._has_skipped = True
            else:
                yield key

    def count_claimable(self, needs: AllNeeds) -> dict[tuple[str, str, str], int] | None:  # type: ignore[override]
        if not self.database.world.faults.overlaps:
            return None
        find, wall = super()._ready, self.database.wall()
        loaded = [*needs.rows, *self._queues(needs)]
        needs = self._in_open_queues(needs, map(self.database.rows.get, loaded))
        ready = {(*queue, ""): {*find(*queue, "", most, wall)} for *queue, most in needs.ready}
        most = {(*queue, ""): number for *queue, number in needs.ready}
        return {queue: min(len(keys), most[queue]) for queue, keys in ready.items()}

    def draw(self, count: int) -> list[int]:
        first = self.database.token + 1
        self.database.token += count
        return list(range(first, first + count))

    def commit(self) -> None:
        """Apply everything, or nothing if another transaction was faster."""
        if self._changes is None:
            return
        if self.database.world.faults.overlaps:
            self._check_conflicts(self._changes)
        self._drawn = self.database.token
        super().commit()
        self.database.task_counts.update(self._changes.counts)
        self.database.world.checker.committed(self._server, self._changes.events, self._newest_token)

    def _check_conflicts(self, changes: Changes) -> None:
        rows, answers = self.database.rows, self.database.answers
        inserted = [row for group in changes.inserts.values() for row in group]
        updated = [row for group in (changes.updates, changes.deletes) for rows_ in group.values() for row in rows_]
        if len({answer.key for answer in changes.answers}) < len(changes.answers):
            self.database.world.fail("P8: two requests under one Idempotency-Key had an effect in one transaction")
        is_late = any(row.key in rows for row in inserted)
        is_late |= any(rows.get(row.key) is not changes.loaded[row.key] for row in updated)
        is_late |= any((answer.account, answer.key) in answers for answer in changes.answers)
        changed = {row.key: row for row in updated}
        if is_late or any(self._is_duplicate(row, changed) for row in (*inserted, *updated)):
            self.database.world.count("lost race")
            raise Rerun

    def _is_duplicate(self, row: Row, changed: dict[Key, Row]) -> bool:
        """Whether another live task has its unique key, also after the changes of this transaction."""
        if not _is_live_task(row) or row.unique_key is None:
            return False
        others = self.database.indexes.group("unique key", row.account, row.unique_key)
        return any(key != row.key and _is_live_task(changed.get(key, self.database.rows[key])) for key in others)

    @property
    def only_gives_grace(self) -> bool:
        events = () if self._changes is None else self._changes.events
        return bool(events) and all(event.kind.endswith(".extended") for event in events)

    @property
    def has_changes(self) -> bool:
        return self._changes is not None

    def unlock(self) -> None:
        locks = self.database.locks
        for key in [key for key, owner in locks.items() if owner is self]:
            del locks[key]


def _is_live_task(row: Row) -> bool:
    return isinstance(row, Task) and row.state in LIVE_STATES


class Connection:
    """The store as one server process sees it: it may be unreachable, and it ends with the process."""

    lanes = 1
    name = "simulated"
    is_local = False
    clock_jump: Instant = 0

    def __init__(self, database: Database, server: Server) -> None:
        self._database = database
        self._server = server

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[DatabaseTransaction]:
        self._server.check_alive()
        self._reach()
        transaction = DatabaseTransaction(self._database, self._server)
        try:
            yield transaction
            self._server.check_alive()
            self._commit(transaction)
            if not transaction.only_gives_grace:  # a server that has done nothing else has served nobody
                self._served()
        finally:
            if self._database.locks:
                transaction.unlock()
        if self._database.world.faults.overlaps:
            self._database.world.interleave(self._server)

    def _commit(self, transaction: DatabaseTransaction) -> None:
        """Commit, or fail in one of the ways in which a commit can fail."""
        world = self._database.world
        fate = world.faults.fate_of_commit() if transaction.has_changes else ""
        if fate:
            world.note(self._server, f"fault at the commit: {fate}")
        if fate == "unavailable":
            raise StoreUnavailable("the connection broke before COMMIT")
        if fate == "run again":
            raise Rerun
        if fate not in {"crash before", "unknown, not applied"}:
            transaction.commit()
        if fate.startswith("unknown"):
            raise OutcomeUnknown("the connection broke inside COMMIT")
        if fate.startswith("crash"):
            world.count("crash inside a commit")
            world.crash(self._server)
            self._server.check_alive()

    @contextmanager
    def read(self) -> Iterator[DatabaseReader]:
        self._server.check_alive()
        self._reach()
        yield DatabaseReader(self._database)

    def watch(self, on_change: Callable[[], None]) -> Notices:
        self._server.notices = Notices(self._database.world, self._server, on_change)
        return self._server.notices

    def beat(self) -> tuple[Instant | None, Instant]:
        self._server.check_alive()
        self._reach()
        beat = self._database.beat()
        self._served()
        self._database.world.has_stopped = False
        return beat

    def last_beat(self) -> tuple[Instant, Instant] | None:
        self._reach()
        return self._database.last_beat()

    def close_outage(self, last_beat: Instant) -> None:
        self._server.check_alive()
        self._reach()
        self._database.close_outage(last_beat)
        if self._server.serving:  # it stops on purpose
            self._database.world.has_stopped = self._database.is_clean

    def _served(self) -> None:
        if self._server.serving:
            self._database.world.served()

    def _reach(self) -> None:
        if self._database.world.is_cut_off(self._server):
            raise StoreUnavailable("the database cannot be reached")

    def __getattr__(self, name: str) -> Any:
        """The rest is not subject to faults of its own."""
        return getattr(self._database, name)


class Notices:
    """Watcher of one server: notices of other servers' commits, which may be lost, and a check every second."""

    LOST_SECONDS = 1.0

    def __init__(self, world: World, server: Server, on_change: Callable[[], None]) -> None:
        self._world = world
        self._server = server
        self._on_change = on_change
        self._is_waiting = False
        self._reported = 0.0
        self.has_notice = False

    def notify(self) -> None:
        for other in self._world.servers:
            if self._world.faults.loses_notice():
                self._world.count("lost notice")
            elif other is not self._server:
                other.notices.has_notice = True

    def set_waiting(self, *, waiting: bool) -> None:
        self._is_waiting = waiting

    def next_moment(self) -> float | None:
        """When it reports next by itself."""
        return self._reported + self.LOST_SECONDS if self._is_waiting else None

    def run(self, now: float) -> None:
        is_late = self._is_waiting and now - self._reported >= self.LOST_SECONDS
        if self.has_notice or is_late:
            self.has_notice, self._reported = False, now
            self._on_change()

    def close(self) -> None:
        pass
