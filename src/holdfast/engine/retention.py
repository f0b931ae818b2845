"""Retention: how long finished rows are kept, and the commands that remove them."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from holdfast.core import account as accounts
from holdfast.core import lease as leases
from holdfast.core import task as tasks
from holdfast.core.account import Account
from holdfast.core.lease import Lease
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.plan import DAY, PLANS, SELF_HOSTED, Catalogue
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import SECOND, Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.command import Command
from holdfast.engine.expiry import needs_to_end
from holdfast.engine.view import View
from holdfast.store.needs import Needs

VACANT_ELECTION_RETENTION = 3600 * SECOND
"""How long a vacant election is kept. Any client can create elections, so there may be many."""


ENDED_RESERVATION_RETENTION = DAY
"""How long a reservation is kept after its end: so long its former holder is told how it ended."""
MAX_DONE = 100_000


class Retention(msgspec.Struct, frozen=True):
    """How long finished rows and old events are kept; 0 means for ever."""

    tasks: Instant = 30 * DAY
    events: Instant = 90 * DAY
    names: Instant = 30 * DAY
    done_jobs: int = MAX_DONE
    """How many jobs of an account are remembered as done; the oldest are forgotten first."""
    dead_letters: bool = True
    """Whether dead letters are removed like other finished tasks."""
    plans: Catalogue = msgspec.field(default_factory=lambda: PLANS)
    plan: str = SELF_HOSTED
    """The plan of accounts that bought none: a plan may keep tasks for less time, or for more."""

    def for_tasks(self, account: Account, now: Instant) -> Instant:
        """How long an account's finished tasks are kept."""
        days = accounts.allowance(account, self.plans, self.plan).in_force(now).retention_days
        return self.tasks if days is None else days * DAY


def is_removable(row: Row, before: Instant, now: Instant) -> bool:
    """Whether it is a free name, an ended session or an ended reservation, unchanged since `before`."""
    if isinstance(row, Session):
        return row.ended_at is not None and row.changed_at < before
    if isinstance(row, Reservation):
        return row.ended_at is not None and row.changed_at < max(before, now - ENDED_RESERVATION_RETENTION)
    if not isinstance(row, Lease) or leases.is_held(row) or row.acl is not None or leases.is_delayed(row, now):
        return False
    if leases.is_done(row, now):
        return False
    is_election = row.id.startswith(ELECTION_PREFIX)
    return row.changed_at < (max(before, now - VACANT_ELECTION_RETENTION) if is_election else before)


class PurgeTask(Command[bool], frozen=True):
    """Remove a finished task that is old enough, with its questions."""

    task_id: str
    before: Instant
    dead: bool
    questions: tuple[str, ...] = ()
    """The ids of all its questions: a finished task asks no new one."""

    def needs(self) -> Needs:
        """The task, those that depend on it, and its questions."""
        asked = ((Question.table, self.account, row_id) for row_id in self.questions)
        needs = needs_to_end(self.account, self.task_id)
        return replace(needs, rows=(*needs.rows, *asked))

    def decide(self, view: View) -> bool:
        """Whether it was removed. It is kept while a live task depends on it, which may need its result."""
        task = view.find(Task, self.account, self.task_id)
        if task is None or not tasks.is_purgeable(task, self.before) or (task.state == tasks.DEAD and not self.dead):
            return False
        key = (self.account, self.task_id)
        if task.releasing is not None or view.dependents.get(key) or view.new_dependents.get(key):
            return False
        view.remove(task, "purged")
        for row_id in self.questions:
            question = view.find(Question, self.account, row_id)
            if question is not None:
                view.remove(question, "purged")
        return True


class RemoveRow(Command[bool], frozen=True):
    """Remove a name, a session or a reservation; if it is used again, its versions continue from the log."""

    key: Key
    before: Instant

    def needs(self) -> Needs:
        """The row."""
        return Needs(rows=(self.key,))

    def decide(self, view: View) -> bool:
        """Whether it was removed."""
        row = view.at(self.key)
        if row is None or not is_removable(row, self.before, view.now):
            return False
        view.remove(row, "forgotten")
        return True


class ForgetDone(Command[bool], frozen=True):
    """Remove a name whose work is done, because the account has too many of them."""

    key: Key

    def needs(self) -> Needs:
        """The row."""
        return Needs(rows=(self.key,))

    def decide(self, view: View) -> bool:
        """Whether it was removed."""
        row = view.at(self.key)
        if not isinstance(row, Lease) or row.done_at is None or leases.is_held(row) or row.acl is not None:
            return False
        view.remove(row, "forgotten")
        return True


class WriteSnapshot(Command[bool], frozen=True):
    """Write a whole row to the log, so that its earlier events are not needed any more."""

    key: Key

    def needs(self) -> Needs:
        """The row."""
        return Needs(rows=(self.key,))

    def decide(self, view: View) -> bool:
        """Whether the row exists."""
        row = view.at(self.key)
        if row is not None:
            view.snapshot(row)
        return row is not None
