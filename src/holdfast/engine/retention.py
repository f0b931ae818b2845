"""What is kept for how long, and how the rest goes: finished tasks, old events, names nobody uses any more."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import msgspec

from holdfast.core import account as accounts
from holdfast.core import lease as leases
from holdfast.core import task as tasks
from holdfast.core.account import Account
from holdfast.core.errors import HoldfastError
from holdfast.core.event import Cause
from holdfast.core.lease import Lease
from holdfast.core.log_gap import is_log_subject
from holdfast.core.names import DEFAULT_ACCOUNT, ELECTION_PREFIX
from holdfast.core.plan import DAY, PLANS, SELF_HOSTED, Catalogue
from holdfast.core.row import SECOND, Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Command
from holdfast.engine.view import View
from holdfast.store.contract import Store
from holdfast.store.needs import Needs
from holdfast.store.rows import ROW_TYPES
from holdfast.telemetry.heartbeats import LoopHeartbeats
from holdfast.telemetry.registry import Registry

KEEP_ANSWERS = 7 * DAY
KEEP_DELIVERED, KEEP_DEAD_DELIVERIES = DAY, 30 * DAY
ROUND_SECONDS = 60.0
STUCK_SECONDS = 600.0
"""A round that has not come to its end for so long is stuck."""
ANSWERS_A_PASS = 10_000
TASKS_A_PASS = 1_000
DELIVERIES_A_PASS = 1_000
EVENTS_A_PASS = 10_000
ROWS_A_PASS = 5_000
ROOM_KEPT = 3600 * SECOND

log = logging.getLogger("holdfast.retention")

_CAUSE = Cause("retention", "")

RunAll = Callable[[Sequence[Command[bool]]], list[bool | None]]


class Retention(msgspec.Struct, frozen=True):
    """How long what is over is kept; 0 means for ever."""

    tasks: Instant = 30 * DAY
    events: Instant = 90 * DAY
    names: Instant = 30 * DAY
    dead_letters: bool = True
    """Whether dead letters go as other finished tasks do."""
    plans: Catalogue = msgspec.field(default_factory=lambda: PLANS)
    plan: str = SELF_HOSTED
    """What accounts have that bought nothing: a plan may keep tasks for less time, or for more."""

    def for_tasks(self, account: Account, now: Instant) -> Instant:
        """How long an account's finished tasks are kept."""
        days = accounts.allowance(account, self.plans, self.plan).in_force(now).retention_days
        return self.tasks if days is None else days * DAY


class Tidying:
    """One thread beside the sweep, which must never wait for it. Each round goes on until there is little left."""

    def __init__(
        self, store: Store, run_all: RunAll, retention: Retention, loop_heartbeats: LoopHeartbeats | None = None
    ) -> None:
        self._store = store
        self._run_all = run_all
        self._keep = retention
        self._loop_heartbeats = loop_heartbeats or LoopHeartbeats(Registry())
        self._cursors: dict[type[Row], tuple[str, str]] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-tidying", daemon=True)
        self.tidied_at: Instant | None = None
        """When it last came to the end of a round, by the store's clock."""

    def start(self) -> None:
        """Begin, a minute from now."""
        self._loop_heartbeats.expect("retention", STUCK_SECONDS)
        self._thread.start()

    def stop(self) -> None:
        """Finish the bite that is under way."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(ROUND_SECONDS):
            try:
                while self.run() and not self._stopped.is_set():
                    pass
            except HoldfastError as error:
                log.warning("old things could not be removed: %s", error.message)
            except Exception:
                log.exception("old things could not be removed")

    def run(self) -> bool:
        """One bite of everything. Whether there is more."""
        with self._store.read() as reader:
            now = reader.now
        self._store.forget_browser_sessions()
        more = self._store.forget_answers(now - KEEP_ANSWERS, ANSWERS_A_PASS) == ANSWERS_A_PASS
        more |= self._purge_tasks(now)
        settled = (now - KEEP_DELIVERED, now - KEEP_DEAD_DELIVERIES)
        more |= self._store.deliveries.delete_old(*settled, DELIVERIES_A_PASS) >= DELIVERIES_A_PASS
        self._erase_again(now)
        self._forget_rows(now)
        more |= self._forget_events(now)
        self.tidied_at = now
        self._loop_heartbeats.beat("retention")
        return more

    def _purge_tasks(self, now: Instant) -> bool:
        with self._store.read() as reader:
            task_accounts = reader.log_accounts()  # every account with tasks has a log
        more = [self._purge_account(account, now) for account in task_accounts]
        return any(more)

    def _purge_account(self, account: str, now: Instant) -> bool:
        dead = self._keep.dead_letters
        with self._store.read() as reader:
            keep = self._keep.for_tasks(reader.row(Account, account, account) or Account(account, account), now)
            if not keep:
                return False
            before = now - keep
            keys = reader.finished_before(account, before, TASKS_A_PASS, dead=dead)
        went = self._run_all(
            [PurgeTask(account=key[1], cause=_CAUSE, task_id=key[2], before=before, dead=dead) for key in keys]
        )
        return len(keys) == TASKS_A_PASS and all(went)

    def _erase_again(self, now: Instant) -> None:
        """Other servers know a key for seconds after its account is gone: what they wrote goes as well."""
        with self._store.read() as reader:
            stones = reader.rows_after(Account, DEFAULT_ACCOUNT, "", ROWS_A_PASS)
        for stone in stones:
            if stone.account == DEFAULT_ACCOUNT != stone.id and now - ROOM_KEPT < stone.created_at:
                self._store.erase(stone.id)

    def _forget_rows(self, now: Instant) -> None:
        """Walk through names and sessions a stretch at a time, and forget those that nobody can miss."""
        before = now - self._keep.names if self._keep.names else 0
        for row_type in (Lease, Session):
            with self._store.read() as reader:
                rows = reader.rows_after(row_type, *self._cursors.get(row_type, ("", "")), ROWS_A_PASS)
            self._cursors[row_type] = rows[-1].key[1:] if len(rows) == ROWS_A_PASS else ("", "")
            keys = [row.key for row in rows if is_forgettable(row, before, now)]
            self._run_all([ForgetRow(account=key[1], cause=_CAUSE, key=key, before=before) for key in keys])

    def _forget_events(self, now: Instant) -> bool:
        if not self._keep.events:
            return False
        before, more = now - self._keep.events, False
        with self._store.read() as reader:
            accounts = reader.log_accounts()
        for account in accounts:
            with self._store.read() as reader:
                first = reader.events(account, reader.log_bounds(account)[0], 1)
                is_old = bool(first) and first[0].at < before
                floor = reader.last_event_before(account, before, EVENTS_A_PASS) if is_old else 0
            if floor:
                self._cut(account, floor)
                more = True
        return more

    def _cut(self, account: str, floor: int) -> None:
        """Tell every subject that survives once more, then remove the log up to there."""
        with self._store.read() as reader:
            subjects = [subject for subject in reader.subjects_up_to(account, floor) if not is_log_subject(subject)]
        again = [TellAgain(account=account, cause=_CAUSE, key=key) for key in map(_key_of(account), subjects)]
        told = self._run_all(again)
        # A name that was forgotten may come back while the others are told: then it is told as well.
        absent = [command for command, was_there in zip(again, told, strict=True) if not was_there]
        told += self._run_all(absent)
        if None not in told:
            self._store.forget_events(account, floor)


def is_forgettable(row: Row, before: Instant, now: Instant) -> bool:
    """A free name, or a session that is over, which nobody has touched since then.

    Election rooms go after an hour: anybody can make them, so there may be many.
    """
    if isinstance(row, Session):
        return row.ended_at is not None and row.changed_at < before
    if not isinstance(row, Lease) or leases.is_held(row) or row.acl is not None or leases.is_delayed(row, now):
        return False
    is_room = row.id.startswith(ELECTION_PREFIX)
    return row.changed_at < (max(before, now - ROOM_KEPT) if is_room else before)


def _key_of(account: str) -> Callable[[str], Key]:
    tables = {row_type.noun: row_type.table for row_type in ROW_TYPES}

    def key(subject: str) -> Key:
        noun, _, row_id = subject.partition(":")
        return (tables[noun], account, row_id)

    return key


class PurgeTask(Command[bool], frozen=True):
    """Remove a finished task whose time is over."""

    task_id: str
    before: Instant
    dead: bool

    def needs(self) -> Needs:
        """The task."""
        return Needs(rows=((Task.table, self.account, self.task_id),))

    def decide(self, view: View) -> bool:
        """Whether it went."""
        task = view.find(Task, self.account, self.task_id)
        if task is None or not tasks.is_purgeable(task, self.before) or (task.state == tasks.DEAD and not self.dead):
            return False
        view.remove(task, "purged")
        return True


class ForgetRow(Command[bool], frozen=True):
    """Forget a name or a session; if it comes back, its versions go on from the log."""

    key: Key
    before: Instant

    def needs(self) -> Needs:
        """The row."""
        return Needs(rows=(self.key,))

    def decide(self, view: View) -> bool:
        """Whether it went."""
        row = view.at(self.key)
        if row is None or not is_forgettable(row, self.before, view.now):
            return False
        view.remove(row, "forgotten")
        return True


class TellAgain(Command[bool], frozen=True):
    """Write a whole row to the log, so that its earlier events are needed no more."""

    key: Key

    def needs(self) -> Needs:
        """The row."""
        return Needs(rows=(self.key,))

    def decide(self, view: View) -> bool:
        """Whether there was a row to tell."""
        row = view.at(self.key)
        if row is not None:
            view.snapshot(row)
        return row is not None
