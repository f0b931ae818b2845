"""Rows: the result of loading the needs of a batch."""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from holdfast.core.account import Account
from holdfast.core.errors import DamagedRow
from holdfast.core.lease import Lease
from holdfast.core.offer import claimed_for
from holdfast.core.plan import Usage
from holdfast.core.principal import Principal
from holdfast.core.purchase import Purchase
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation, SpaceUse
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.core.task.queue import Queue
from holdfast.core.webhooks.webhook import LimitGroup, Webhook
from holdfast.store.changes import Answer
from holdfast.store.needs import AllNeeds, dependents_of_each

ROW_TYPES: tuple[type[Row], ...] = (
    *(Session, Lease, Reservation, Task, Question, Queue, Principal, Account, Purchase, Webhook),
)
"""Every kind of row, in the order in which their locks are taken."""

REUSED_IDS: tuple[type[Row], ...] = (Session, Lease)
"""Rows that may be made again under the same id after retention removed them: their versions continue from the log."""
_HOLDINGS = (Lease, Task, Reservation)
"""Rows that may be claimed for a session."""
_REUSED_NOUNS = {row_type.table: row_type.noun for row_type in REUSED_IDS}


class Rows(msgspec.Struct):
    """The answer to `AllNeeds`. The dictionaries belong to the caller, who may change them."""

    now: Instant
    """The store's clock, read after the last lock was granted."""
    rows: dict[Key, Row] = {}
    answers: list[Answer] = []
    lock_counts: dict[tuple[str, str], int] = {}
    """(account, principal): live locks."""
    election_counts: dict[str, int] = {}
    """By account: live elections."""
    webhook_counts: dict[LimitGroup, int] = {}
    spaces: dict[tuple[str, str], SpaceUse] = {}
    """(account, space): how many reservations are held, and how many wait."""
    dependents: dict[tuple[str, str], list[str]] = {}
    """(account, task): ids of live tasks that depend on it, in order, as far as they were asked for and fit."""
    versions: dict[Key, int] = {}
    """Last versions, from the log, of rows that were asked for and removed earlier."""
    usage: dict[str, Usage] = {}
    """By account: what it has used of its plan."""
    running: dict[tuple[str, str], int] = {}
    """(account, type) of the loaded queues with settings: how many of their tasks are claimed."""
    running_by_key: dict[tuple[str, str], dict[str, int]] = {}
    """(account, type) of those with a limit for each concurrency key, or that get one: how many run, by key."""
    skipped: bool = False
    """Whether another server has locked tasks of such queues that claims could take."""
    held_tasks: dict[str, int] = {}
    """By account whose usage was asked for: how many of its tasks are held."""
    damaged: dict[Key, DamagedRow] = {}
    """Rows and answers that are stored but cannot be used; a command that needs one of them fails."""
    wall: Instant | None = None
    """The wall clock, which schedules follow, if it may differ from the store's clock."""


class LoadedRows:
    """The rows and answers that a transaction has loaded so far, the damaged ones apart."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.answers: list[Answer] = []
        self.damaged: dict[Key, DamagedRow] = {}

    def add(self, found: Iterable[Row | DamagedRow]) -> None:
        """Add rows."""
        for row in found:
            if isinstance(row, DamagedRow):
                self._set_aside(row)
            else:
                self.rows[row.key] = row

    def add_answers(self, found: Iterable[Answer | DamagedRow]) -> None:
        """Add answers."""
        for answer in found:
            if isinstance(answer, DamagedRow):
                self._set_aside(answer)
            else:
                self.answers.append(answer)

    @property
    def known(self) -> Container[Key]:
        """The keys of everything that is stored."""
        return self.rows.keys() | self.damaged.keys() if self.damaged else self.rows

    def sessions(self) -> set[tuple[str, str]]:
        """(account, session) of every lease, task and reservation that was claimed for a session."""
        held = (row for row in self.rows.values() if isinstance(row, _HOLDINGS))
        return {(row.account, session) for row in held if (session := claimed_for(row))}

    def awaited(self, needs: AllNeeds) -> list[tuple[str, str, str, int]]:
        """(account, task, after, most) for each task whose dependents are asked for, if it has or had any."""
        found = [self.rows.get((Task.table, *task)) for task in needs.dependents]
        awaited = [row for row in found if isinstance(row, Task) and row.awaited]
        most = dependents_of_each(len(awaited))
        return [(row.account, row.id, row.releasing or "", most) for row in awaited]

    def queues(self) -> list[Queue]:
        """The queues with settings."""
        return [row for row in self.rows.values() if isinstance(row, Queue)]

    def queue_names(self) -> list[tuple[str, str]]:
        """(account, type) of the queues with settings, also of those whose settings are damaged."""
        names = [(row.account, row.id) for row in self.queues()]
        return names + [(account, name) for table, account, name in self.damaged if table == Queue.table]

    def capabilities_of(self, account: str, session: str) -> str | None:
        """What a session can do."""
        found = self.rows.get((Session.table, account, session))
        return found.capabilities if isinstance(found, Session) else None

    def questions(self) -> set[tuple[str, str]]:
        """(account, question) of every task that waits for an answer, or would if it was requeued."""
        asking = (row for row in self.rows.values() if isinstance(row, Task) and row.question is not None)
        found = {(row.account, row.question or "") for row in asking}
        return {each for each in found if (Question.table, *each) not in self.known}

    def _set_aside(self, error: DamagedRow) -> None:
        account, key = error.key
        self.damaged[error.table, account, key] = error


def absent_subjects(needs: AllNeeds, found: Container[Key]) -> dict[tuple[str, str], Key]:
    """(account, subject) of every row that was asked for, is not stored now, and may have been stored before."""
    return {
        (account, f"{_REUSED_NOUNS[table]}:{row_id}"): (table, account, row_id)
        for table, account, row_id in needs.rows
        if table in _REUSED_NOUNS and (table, account, row_id) not in found
    }
