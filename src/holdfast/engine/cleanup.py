"""The cleanup thread: removes data that is older than its retention period."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from holdfast.clock import boot_seconds
from holdfast.core.account import Account
from holdfast.core.errors import DamagedRow, HoldfastError
from holdfast.core.event import Cause
from holdfast.core.lease import Lease
from holdfast.core.log_gap import is_log_subject
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.page import is_full
from holdfast.core.plan import DAY
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Instant, Key, Row
from holdfast.core.session import Session
from holdfast.engine.command import Command
from holdfast.engine.retention import ForgetDone, PurgeTask, RemoveRow, Retention, WriteSnapshot, is_removable
from holdfast.store.contract import Store
from holdfast.store.rows import ROW_TYPES
from holdfast.telemetry.heartbeats import LoopHeartbeats
from holdfast.telemetry.registry import Registry

KEEP_ANSWERS = 7 * DAY
KEEP_DELIVERED, KEEP_DEAD_DELIVERIES = DAY, 30 * DAY
ROUND_SECONDS = 60.0
UNCOUNTED_FOR = DAY
"""How much longer than others events are kept that a server still has to count for charts."""
SUSPICIOUS_JUMP = 30 * DAY
"""A store whose clock is further ahead of its last commit than this was unused for long, or the clock is wrong."""
JUMP_WAIT_SECONDS = 24 * 3600.0
"""How long nothing is removed after such a jump: time to notice the error and set the clock right."""
STUCK_SECONDS = 600.0
"""A round that takes longer than this is reported as stuck."""
ANSWERS_PER_PASS = 10_000
TASKS_PER_PASS = 1_000
DELIVERIES_PER_PASS = 1_000
EVENTS_PER_PASS = 10_000
ROWS_PER_PASS, ROW_BYTES_PER_PASS = 5_000, 64 * 1024 * 1024
ERASE_AGAIN_FOR = 3600 * SECOND
"""How long after its deletion an account is erased again in every pass."""
ERASE_PAUSE_SECONDS = 0.01
"""Between two slices of an account others may write."""

log = logging.getLogger("holdfast.retention")

_CAUSE = Cause("retention", "")

RunAll = Callable[[Sequence[Command[bool]]], list[bool | None]]


class Cleanup:
    """The thread that removes old data. The sweep never waits for it. A round repeats its pass until little is left."""

    def __init__(
        self, store: Store, run_all: RunAll, retention: Retention, loop_heartbeats: LoopHeartbeats | None = None
    ) -> None:
        self._store = store
        self._run_all = run_all
        self._retention = retention
        self._loop_heartbeats = loop_heartbeats or LoopHeartbeats(Registry())
        self._cursors: dict[type[Row], tuple[str, str]] = {}
        self._without_snapshot: set[Key] = set()
        """Rows whose last snapshot could not be written, most likely because they are damaged."""
        self._stopped = threading.Event()
        self._began = boot_seconds()
        self._has_warned = False
        self._thread = threading.Thread(target=self._run, name="holdfast-cleanup", daemon=True)
        self.finished_at: Instant | None = None
        """When its last pass ended, by the store's clock."""

    def start(self) -> None:
        """Start the thread; its first pass is a minute later."""
        self._loop_heartbeats.expect("retention", STUCK_SECONDS)
        self._thread.start()

    def stop(self) -> None:
        """Finish the current pass and stop."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(ROUND_SECONDS):
            try:
                while self.run() and not self._stopped.is_set():
                    pass
            except HoldfastError as error:
                log.warning("cleanup failed: %s", error.message)
            except Exception:
                log.exception("cleanup failed")

    def run(self) -> bool:
        """Run one pass over everything; returns whether there is more to remove."""
        if self._is_clock_doubtful():
            return False
        with self._store.read() as reader:
            store_time = reader.now
            # A wrong clock must not make everything look old: the store's clock keeps a jump ahead for ever.
            now = min(store_time, reader.wall)
        self._store.forget_browser_sessions()
        more = self._store.forget_answers(now - KEEP_ANSWERS, ANSWERS_PER_PASS) == ANSWERS_PER_PASS
        more |= self._purge_tasks(now)
        settled = (now - KEEP_DELIVERED, now - KEEP_DEAD_DELIVERIES)
        more |= self._store.deliveries.delete_old(*settled, DELIVERIES_PER_PASS) >= DELIVERIES_PER_PASS
        self._erase_again(now)
        self._remove_rows(now, store_time)
        more |= self._forget_done()
        more |= self._remove_events(now)
        self.finished_at = store_time
        self._loop_heartbeats.beat("retention")
        return more

    def _is_clock_doubtful(self) -> bool:
        """Whether the clock jumped so far when the store was opened that it may be wrong."""
        jump = self._store.clock_jump
        if jump <= SUSPICIOUS_JUMP or boot_seconds() - self._began > JUMP_WAIT_SECONDS:
            return False
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "the clock is %d days ahead of the store's last change: nothing is removed for a day; if the clock is"
                " wrong, set it and run `holdfast doctor --set-clock`",
                jump // DAY,
            )
        return True

    def _purge_tasks(self, now: Instant) -> bool:
        with self._store.read() as reader:
            accounts = reader.log_accounts()  # every account with tasks has a log
        more = [self._purge_account(account, now) for account in accounts]
        return any(more)

    def _purge_account(self, account: str, now: Instant) -> bool:
        dead = self._retention.dead_letters
        with self._store.read() as reader:
            try:
                settings = reader.row(Account, account, account) or Account(account, account)
            except DamagedRow:  # how long its tasks are kept is unknown
                return False
            keep = self._retention.for_tasks(settings, now)
            if not keep:
                return False
            before = now - keep
            keys = reader.finished_before(account, before, TASKS_PER_PASS, dead=dead)
            asked: dict[str, list[str]] = {}
            for task_id, question in reader.questions_of_tasks(account, [key[2] for key in keys]) if keys else ():
                asked.setdefault(task_id, []).append(question)
        removed = self._run_all(
            [
                PurgeTask(
                    account=account,
                    cause=_CAUSE,
                    task_id=task_id,
                    before=before,
                    dead=dead,
                    questions=tuple(asked.get(task_id, ())),
                )
                for _, _, task_id in keys
            ]
        )
        return len(keys) == TASKS_PER_PASS and all(removed)

    def _erase_again(self, now: Instant) -> None:
        """Erase what is left of deleted accounts.

        Those that were deleted recently may have new rows, because other servers accept a key for seconds after its
        account is gone. Of others something is left if the server that erased them was stopped.
        """
        with self._store.read() as reader:
            unfinished = set(reader.log_accounts())
        for tombstone in self._tombstones():
            if tombstone.id in unfinished or now - ERASE_AGAIN_FOR < tombstone.created_at:
                while self._store.erase(tombstone.id) and not self._stopped.wait(ERASE_PAUSE_SECONDS):
                    pass

    def _tombstones(self) -> Iterator[Account]:
        """The rows that record deleted accounts, in the server's own account."""
        after = ""
        while True:
            with self._store.read() as reader:
                page = reader.rows_after(Account, DEFAULT_ACCOUNT, after, ROWS_PER_PASS)
            own = [row for row in page if row.account == DEFAULT_ACCOUNT]
            yield from (row for row in own if row.id != DEFAULT_ACCOUNT)
            if len(own) < ROWS_PER_PASS:
                return
            after = own[-1].id

    def _remove_rows(self, now: Instant, store_time: Instant) -> None:
        """Check the next page of names, reservations and sessions, and remove those that are not needed any more."""
        before = now - self._retention.names if self._retention.names else 0
        for row_type in (Lease, Reservation, Session):
            with self._store.read() as reader:
                after = self._cursors.get(row_type, ("", ""))
                rows = reader.rows_after(row_type, *after, ROWS_PER_PASS, ROW_BYTES_PER_PASS)
            has_more = is_full(rows, ROWS_PER_PASS, ROW_BYTES_PER_PASS)
            self._cursors[row_type] = rows[-1].key[1:] if has_more else ("", "")
            keys = [row.key for row in rows if is_removable(row, before, store_time)]
            self._run_all([RemoveRow(account=key[1], cause=_CAUSE, key=key, before=before) for key in keys])

    def _forget_done(self) -> bool:
        """Remove the oldest done jobs of accounts that have too many."""
        with self._store.read() as reader:
            keys = [
                key
                for account in reader.log_accounts()
                for key in reader.oldest_done(account, self._retention.done_jobs, ROWS_PER_PASS)
            ]
        removed = self._run_all([ForgetDone(account=key[1], cause=_CAUSE, key=key) for key in keys])
        return any(removed)

    def _remove_events(self, now: Instant) -> bool:
        if not self._retention.events:
            return False
        before, more = now - self._retention.events, False
        with self._store.read() as reader:
            accounts = reader.log_accounts()
        for account in accounts:
            with self._store.read() as reader:
                first = reader.events(account, reader.log_bounds(account)[0], 1)
                is_young = not first or before <= first[0].at <= reader.now
                floor = 0 if is_young else reader.last_event_before(account, before, EVENTS_PER_PASS)
            floor = min(floor, self._counted_up_to(account, before - UNCOUNTED_FOR, floor))
            if floor:
                more |= self._cut_log(account, floor)
        return more

    def _counted_up_to(self, account: str, since: Instant, otherwise: int) -> int:
        """The last event that is counted for charts; `otherwise` if no server has counted any since then."""
        until = self._store.rollups.counted_until(account) if otherwise else None
        return until.seq if until is not None and until.counted_to >= since else otherwise

    def _cut_log(self, account: str, floor: int) -> bool:
        """Write a snapshot of every row with events up to `floor`, then remove these events; returns whether any were.

        A row whose snapshot cannot be written keeps its events, and so all later ones. In the next passes it is tried
        first: otherwise the rows behind it would get one more snapshot in each pass, for nothing.
        """
        if self._without_snapshot:
            floor = self._write_snapshots(account, floor, self._without_snapshot.copy())
        floor = self._write_snapshots(account, floor)
        with self._store.read() as reader:
            removed = reader.log_bounds(account)[0]
        if floor <= removed:
            return False
        self._store.forget_events(account, floor)
        return True

    def _write_snapshots(self, account: str, floor: int, only: set[Key] | None = None) -> int:
        """Write a snapshot of rows with events up to `floor`; returns the last event before those of failed rows."""
        with self._store.read() as reader:
            subjects = [subject for subject in reader.subjects_up_to(account, floor) if not is_log_subject(subject)]
        # A row that does not exist needs none: if it is made again meanwhile, its first event has every column.
        found = zip(subjects, map(_key_of(account), subjects), strict=True)
        keys = {subject: key for subject, key in found if key is not None and (only is None or key in only)}
        written = self._run_all([WriteSnapshot(account=account, cause=_CAUSE, key=key) for key in keys.values()])
        failed = [subject for subject, result in zip(keys, written, strict=True) if result is None]
        self._without_snapshot.difference_update(keys.values())
        self._without_snapshot.update(keys[subject] for subject in failed)
        with self._store.read() as reader:
            first = [event.seq for subject in failed for event in reader.history(account, subject, limit=1)]
        return min([floor, *(seq - 1 for seq in first)])


def _key_of(account: str) -> Callable[[str], Key | None]:
    """A function that returns the key of a subject's row; None if no kind of row has such subjects."""
    tables = {row_type.noun: row_type.table for row_type in ROW_TYPES}

    def key(subject: str) -> Key | None:
        noun, _, row_id = subject.partition(":")
        return (tables[noun], account, row_id) if noun in tables else None

    return key
