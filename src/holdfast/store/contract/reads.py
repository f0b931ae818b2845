"""Reading the committed state: rows, counts, deadlines and the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import msgspec

from holdfast.core.browser_session import BrowserSession
from holdfast.core.errors import DamagedRow
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.plan import Usage
from holdfast.core.principal import Principal
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import RelatedTask, Task
from holdfast.core.task.missing_workers import ReadyWork
from holdfast.store.contract.counts import Counts, HeldCounts, Totals

R = TypeVar("R", bound=Row)
H = TypeVar("H", Lease, Task, Reservation)
A = TypeVar("A", bound=Lease | Task | Reservation | Session)

HISTORY_PAGE = 1_000


class TaskPath(msgspec.Struct, frozen=True):
    """The index along which tasks are listed: by tag, unique key, or what they wait for, else by type and state."""

    type: str | None = None
    state: str | None = None
    tag: str | None = None
    unique_key: str | None = None
    waits_for: str | None = None


class RowReads(Protocol):
    """Rows, one by one or as lists. Lists end at `limit` rows or about `max_bytes` bytes (`core.page.take_bytes`).

    Lists leave damaged rows out, so that one of them hides no other.
    """

    def snapshot(self) -> AbstractContextManager[None]:
        """All reads inside see one state; without it, PostgreSQL's reads may each see a later one."""

    def row(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """A row by its key; raises DamagedRow if it is damaged."""

    def rows_after(
        self, row_type: type[R], account: str, row_id: str, limit: int, max_bytes: int | None = None
    ) -> list[R]:
        """Rows of all accounts after (account, row_id), in that order."""

    def principal(self, key_hash: str) -> Principal | None:
        """The principal that a credential is valid for now."""

    def principals(self, account: str) -> list[Principal]:
        """All principals of an account by id, revoked ones included."""

    def browser_session(self, session_id: str) -> BrowserSession | None:
        """A browser session or sign-in link, also if it has expired."""

    def leases(
        self, account: str, prefix: str, after: str, limit: int, max_bytes: int | None = None, *, done: bool = False
    ) -> list[Lease]:
        """Live leases whose name begins with `prefix` and sorts after `after`, by name, bytewise.

        With `done`, names that nobody holds and whose work is done.
        """

    def sessions(
        self, account: str, after: str, limit: int, max_bytes: int | None = None, *, live: bool = False
    ) -> list[Session]:
        """Sessions by id; with `live`, only live ones."""

    def holdings(
        self, row_type: type[H], session: tuple[str, str], after: str, limit: int, max_bytes: int | None = None
    ) -> list[H]:
        """What a session (account, id) holds of one kind after an id, by id; of leases only ephemeral ones."""

    def reservations(
        self, account: str, space: str | None, after: tuple[str, str], limit: int, max_bytes: int | None = None
    ) -> list[Reservation]:
        """Open reservations of a space, or of all, after (space, id), in that order; those that wait included."""

    def reservations_covering(self, account: str, space: str, prefixes: Sequence[str]) -> list[Reservation]:
        """Open reservations of a space with a pattern whose prefix is one of these."""

    def questions(
        self, account: str, after: tuple[Instant, str], limit: int, max_bytes: int | None = None, *, is_open: bool
    ) -> list[Question]:
        """Open questions, the oldest first, or closed ones, the newest first, after (asked_at, id) in that order."""

    def count_open_questions(self, account: str, limit: int) -> int:
        """How many questions are open, counted up to a limit."""

    def questions_of_tasks(self, account: str, task_ids: Sequence[str]) -> list[tuple[str, str]]:
        """(task, question) of every question of these tasks, open or not, by question."""

    def held_by(
        self,
        row_type: type[A],
        principal: tuple[str, str],
        after: str,
        limit: int,
        max_bytes: int | None = None,
        *,
        owner: str | None = None,
    ) -> list[A]:
        """What a principal (account, id) holds now and sorts after an id, by id (`core.holdings.is_held_by`).

        There is no index by principal, which every claim would have to write: the cost is that of all live rows of the
        account.
        """

    def tasks(self, account: str, by: TaskPath, before: str, limit: int, max_bytes: int | None = None) -> list[Task]:
        """Tasks with an id below `before`, newest first, along one index."""

    def dependents(self, account: str, task_id: str, after: str, limit: int) -> list[RelatedTask]:
        """Tasks that depend on a task and have an id after `after`, by id; finished ones too, while they are kept."""

    def tasks_with_results(self, account: str, ids: Sequence[str], largest: int) -> list[RelatedTask]:
        """Tasks by id; a result of more than `largest` bytes is left out."""

    def next_to_expire(self, account: str, limit: int, max_bytes: int | None = None) -> list[Task]:
        """Claimed tasks, those that expire first at the front."""


class Statistics(Protocol):
    """Counts and usage."""

    def counts(self, account: str) -> Counts:
        """Live leases and users of an account (`core.principal.is_user`)."""

    def held_counts(self, account: str) -> HeldCounts:
        """How much an account holds now; the cost is that of its live rows."""

    def totals(self) -> Totals:
        """Numbers over all accounts."""

    def usage(self, account: str) -> tuple[Usage, int]:
        """What an account has used of its plan, and how many of its tasks are held."""

    def key_uses(self, account: str) -> dict[str, Instant]:
        """When each key of an account was last used, by its id."""

    def count_session_leases(self, account: str, session_id: str) -> int:
        """How many leases name this session."""

    def task_counts(self, account: str) -> list[tuple[str, str, int]]:
        """(type, state, count), where the count is not zero."""

    def running_keys(self, account: str, task_type: str) -> dict[str, int]:
        """How many tasks of a queue are claimed, by concurrency key."""

    def count_resolved(self, account: str, limit: int) -> int:
        """How many of the account's dead letters are resolved; of at most `limit` dead letters, in no certain order."""

    def queues(self, account: str, limit: int) -> list[tuple[str, int, Instant]]:
        """(type, how many tasks wait, when the oldest of them was created), the oldest first."""

    def ready_work(self, account: str, limit: int) -> list[ReadyWork]:
        """Ready tasks by type and required words, in this order; each counted up to `core.limits.COUNTED_READY`."""

    def next_token(self) -> int:
        """The token that the next grant would get."""


class Deadlines(Protocol):
    """Rows that the sweep and retention must act on."""

    def due(self, limit: int, account: str = "") -> list[Key]:
        """Rows that have expired or become due, longest overdue first; of one account or of all."""

    def next_deadline(self) -> Instant | None:
        """When the next row expires or becomes due, by the store's clock."""

    def held_at(self, instant: Instant) -> list[Key]:
        """Held jobs, reservations and tasks and open named sessions that had not expired at that time."""

    def finished_before(self, account: str, instant: Instant, limit: int, *, dead: bool) -> list[Key]:
        """Tasks of an account that finished before then, oldest first; with dead letters if `dead`."""

    def oldest_done(self, account: str, keep: int, limit: int) -> list[Key]:
        """Names of an account whose work is done, newest first, without the `keep` newest."""


class LogReads(Protocol):
    """The event log of each account. Lists end at `limit` events or about `max_bytes` bytes, as lists of rows do.

    A damaged event is replaced by `core.event.damaged_event`: no reader may miss a number.
    """

    def events(self, account: str, after: int, limit: int, max_bytes: int | None = None) -> list[Event]:
        """Events after a cursor."""

    def events_of_request(
        self, account: str, request_id: str, after: int, limit: int, max_bytes: int | None = None
    ) -> list[Event]:
        """The events of one request after a cursor."""

    def events_per_minute(self, account: str, after: int) -> list[tuple[int, str, int]]:
        """(minutes since 1970, kind of event, count) after a cursor."""

    def history(
        self, account: str, subject: str, after: int = 0, limit: int = HISTORY_PAGE, max_bytes: int = PAGE_BYTES
    ) -> list[Event]:
        """The events of one subject after a version, oldest first."""

    def brief_history(
        self, account: str, subject: str, after: int = 0, limit: int = HISTORY_PAGE, max_bytes: int = PAGE_BYTES
    ) -> list[Event]:
        """The same without repeated renewals (`core.event.without_repeated_renewals`): there may be very many."""

    def recent_events(self, account: str, subject: str, limit: int) -> list[Event]:
        """The newest events of one subject, newest first, without renewals."""

    def changes(self, account: str, after: int, before: int, limit: int, max_bytes: int | None = None) -> list[Event]:
        """The newest events between two cursors, newest first, without renewals."""

    def last_grant(self, account: str, subject: str, version: int) -> Event | None:
        """The last event below a version that records the whole holder: a claim or a snapshot."""

    def log_bounds(self, account: str) -> tuple[int, int]:
        """(the last event removed by retention, the last event)."""

    def log_accounts(self) -> list[str]:
        """Every account that has a log: every account that ever had a row."""

    def last_event_before(self, account: str, instant: Instant, limit: int) -> int:
        """The last of an account's `limit` oldest events that is older than `instant` and follows no younger one, or 0.

        Times before 1970 or ahead of the store's clock are wrong: such an event counts neither as older nor as younger.
        """

    def subjects_up_to(self, account: str, seq: int) -> list[str]:
        """The subjects of all events up to a cursor."""

    def subjects_after(self, account: str, subject: str, limit: int) -> list[str]:
        """The subjects in the log that sort after one, in order."""


class Reader(RowReads, Statistics, Deadlines, LogReads, Protocol):
    """One read of the committed state. It sees every write acknowledged before it began."""

    now: Instant
    """The store's clock, on which leases run."""
    wall: Instant
    """The wall clock, which schedules follow."""


def usable_row(reader: RowReads, row_type: type[R], account: str, row_id: str) -> R | None:
    """A row that is only a detail of others, such as the session of a lease: None if it is absent or damaged."""
    try:
        return reader.row(row_type, account, row_id)
    except DamagedRow:
        return None


def whole_history(reader: LogReads, account: str, subject: str, *, brief: bool = False) -> Iterator[Event]:
    """All events of one subject, oldest first, read in pages; `brief` leaves out repeated renewals."""
    read = reader.brief_history if brief else reader.history
    page = read(account, subject)
    yield from page
    while is_full(page, HISTORY_PAGE, PAGE_BYTES):
        page = read(account, subject, page[-1].version)
        yield from page
