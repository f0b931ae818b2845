"""The reads of SQLite and PostgreSQL."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import msgspec

from holdfast.core.browser_session import BrowserSession
from holdfast.core.errors import DamagedRow
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.page import PAGE_BYTES, is_full
from holdfast.core.plan import Usage
from holdfast.core.principal import Principal, accepts_key
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import STATES, Task
from holdfast.core.task.missing_workers import ReadyWork
from holdfast.store.contract.counts import Counts, Totals
from holdfast.store.contract.reads import HISTORY_PAGE, TaskPath
from holdfast.store.sql import queries
from holdfast.store.sql.dependency_reader import DependencyReader
from holdfast.store.sql.ready_work_queries import READY_WORK
from holdfast.store.sql.records import Size, usable

R = TypeVar("R", bound=Row)


class SqlReader(DependencyReader):
    """Reads the committed state with statements that both dialects share."""

    now: Instant
    wall: Instant

    def snapshot(self) -> AbstractContextManager[None]:
        """A reader of SQLite sees one state from its beginning."""
        return nullcontext()

    # -- single rows -----------------------------------------------------------------------------------------

    def row(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """A row by its key."""
        for row in self.records(row_type, queries.ROW_BY_ID[row_type.table], account, row_id):
            return usable(row)
        return None

    def principal(self, key_hash: str) -> Principal | None:
        """The principal that a credential is valid for now."""
        found = map(usable, self.records(Principal, queries.PRINCIPALS_BY_KEY, key_hash, key_hash))
        return next((row for row in found if accepts_key(row, key_hash, self.now)), None)

    def browser_session(self, session_id: str) -> BrowserSession | None:
        """A browser session or sign-in link."""
        found = self.records(BrowserSession, queries.BROWSER_SESSION, session_id)
        return next((each for each in found if not isinstance(each, DamagedRow)), None)

    def history(
        self, account: str, subject: str, after: int = 0, limit: int = HISTORY_PAGE, max_bytes: int = PAGE_BYTES
    ) -> list[Event]:
        """The events of one subject after a version."""
        return self.event_page(queries.HISTORY, (limit, max_bytes), account, subject, after)

    def brief_history(
        self, account: str, subject: str, after: int = 0, limit: int = HISTORY_PAGE, max_bytes: int = PAGE_BYTES
    ) -> list[Event]:
        """The events of one subject after a version, without repeated renewals."""
        return self.event_page(queries.BRIEF_HISTORY, (limit, max_bytes), account, subject, after)

    def last_grant(self, account: str, subject: str, version: int) -> Event | None:
        """The last event of a lease below a version that shows its holder."""
        found = self.damaged_rows.events(self.execute(queries.LAST_GRANT, account, subject, version))
        return found[0] if found else None

    def recent_events(self, account: str, subject: str, limit: int) -> list[Event]:
        """The newest events of one subject, newest first, without renewals."""
        return self.damaged_rows.events(self.execute(queries.RECENT_EVENTS, account, subject, limit))

    def changes(self, account: str, after: int, before: int, limit: int, max_bytes: int | None = None) -> list[Event]:
        """The newest events between two cursors, newest first, without renewals."""
        return self.event_page(queries.CHANGES, (limit, max_bytes), account, after, before)

    # -- lists -----------------------------------------------------------------------------------------------

    def leases(
        self, account: str, prefix: str, after: str, limit: int, max_bytes: int | None = None, *, done: bool = False
    ) -> list[Lease]:
        """Live leases, or jobs that are done, by name."""
        end = after_prefix(prefix)
        where = (account, after, prefix, end, end, self.now)
        return self.page(Lease, queries.DONE_LEASES if done else queries.LIVE_LEASES, (limit, max_bytes), *where)

    def principals(self, account: str) -> list[Principal]:
        """All principals of an account by id."""
        return self.rows(Principal, queries.PRINCIPALS, account)

    def sessions(
        self, account: str, after: str, limit: int, max_bytes: int | None = None, *, live: bool = False
    ) -> list[Session]:
        """Sessions by id."""
        if live:
            where = (account, after, self.now)
            return self.page(Session, queries.LIVE_SESSIONS, (limit, max_bytes), *where)
        return self.page(Session, queries.SESSIONS, (limit, max_bytes), account, after)

    def tasks(self, account: str, by: TaskPath, before: str, limit: int, max_bytes: int | None = None) -> list[Task]:
        """Tasks with an id below `before`, newest first, along one index."""
        size = (limit, max_bytes)
        if by.tag is not None:
            return self.page(Task, queries.TASKS_BY_TAG, size, account, by.tag, before)
        if by.unique_key is not None:
            return self.page(Task, queries.TASKS_BY_UNIQUE_KEY, size, account, by.unique_key, before)
        if by.waits_for is not None:
            return self.page(Task, queries.TASKS_WAITING, size, account, by.waits_for, before)
        if by.type is None and by.state is None:
            return self.page(Task, queries.TASKS_BY_ID, size, account, before)
        return self._tasks_by_state(account, by, before, size)

    def _tasks_by_state(self, account: str, by: TaskPath, before: str, size: Size) -> list[Task]:
        """Tasks of a type or state. Each type and state is one range of the index; the counts list the ranges."""
        limit, max_bytes = size
        ranges = [
            (task_type, state)
            for task_type, state, _ in self.task_counts(account)
            if by.type in {None, task_type} and by.state in {None, state}
        ]
        most = limit
        while True:
            found = [self.execute(queries.TASK_IDS_BY_STATE, account, *each, before, most) for each in ranges]
            ids = sorted((task_id for each in found for (task_id,) in each), reverse=True)[:most]
            first = msgspec.json.encode([(task_id,) for task_id in ids]).decode()
            tasks = self.page(Task, queries.TASKS_AMONG, size, account, first)
            if len(ids) < most or is_full(tasks, limit, PAGE_BYTES if max_bytes is None else max_bytes):
                return tasks
            most *= 2  # some of the first ones are damaged

    def rows_after(
        self, row_type: type[R], account: str, row_id: str, limit: int, max_bytes: int | None = None
    ) -> list[R]:
        """Rows of all accounts, in the order of their keys."""
        query = queries.ROWS_AFTER[row_type.table]
        return self.page(row_type, query, (limit, max_bytes), account, row_id)

    # -- counts ----------------------------------------------------------------------------------------------

    def counts(self, account: str) -> Counts:
        """Live leases and active principals of an account."""
        live = self.value(queries.COUNT_LIVE_LEASES, account, self.now)
        return Counts(live, self.value(queries.COUNT_USERS, account))

    def usage(self, account: str) -> tuple[Usage, int]:
        """What an account has used, and how many tasks are held."""
        used = next((Usage(*found) for found in self.execute(queries.USAGE, account)), Usage())
        return used, int(self.value(queries.HELD_TASKS, account, account, self.now))

    def key_uses(self, account: str) -> dict[str, Instant]:
        """When each key of an account was last used."""
        return dict(self.execute(queries.KEY_USES, account))

    def count_session_leases(self, account: str, session_id: str) -> int:
        """How many leases name this session."""
        return int(self.value(queries.COUNT_SESSION_LEASES, account, session_id))

    def running_keys(self, account: str, task_type: str) -> dict[str, int]:
        """How many tasks of a queue are claimed, by concurrency key."""
        return dict(self.execute(queries.RUNNING_KEYS, account, task_type))

    def task_counts(self, account: str) -> list[tuple[str, str, int]]:
        """(type, state, count)."""
        counts = []
        for task_type, state, total in self.execute(queries.TASK_COUNTS, account):
            if state in STATES:
                counts.append((task_type, state, total))
            else:
                key = (account, str(task_type), str(state))
                self.damaged_rows.add(
                    DamagedRow("task_counts", key, f"its state is {state!r}, which does not exist", {})
                )
        return counts

    def count_resolved(self, account: str, limit: int) -> int:
        """How many of at most `limit` dead letters are resolved."""
        return int(self.value(queries.COUNT_RESOLVED, account, limit))

    def queues(self, account: str, limit: int) -> list[tuple[str, int, Instant]]:
        """(type, how many tasks wait, when the oldest of them was created), the oldest first."""
        return [(found[0], found[1], found[2]) for found in self.execute(queries.QUEUES, account, limit)]

    def ready_work(self, account: str, limit: int) -> list[ReadyWork]:
        """Ready tasks by type and required words."""
        found = self.execute(READY_WORK, account, limit)
        return [ReadyWork(*each) for each in found]

    def next_to_expire(self, account: str, limit: int, max_bytes: int | None = None) -> list[Task]:
        """Claimed tasks, those that expire first at the front."""
        return self.page(Task, queries.NEXT_TO_EXPIRE, (limit, max_bytes), account, account, limit)

    def totals(self) -> Totals:
        """Numbers over all accounts."""
        tasks = {state: total for state, total in self.execute(queries.TASK_TOTALS) if state in STATES}
        heads = (self.value(queries.OLDEST_READY), self.value(queries.OLDEST_REQUIRING))
        waited = max(self.now - min((at for at in heads if at is not None), default=self.now), 0)
        return Totals(self.value(queries.TOTAL_LIVE_LEASES, self.now), tasks, waited)

    # -- deadlines -------------------------------------------------------------------------------------------

    def due(self, limit: int, account: str = "") -> list[Key]:
        """Rows that have expired or become due."""
        found = self.execute(queries.DUE, *[self.now] * 5, *[self.wall] * 3, account, limit)
        return list(dict.fromkeys(_keys(values[:3] for values in found)))

    def next_deadline(self) -> Instant | None:
        """When the next row expires or becomes due."""
        at: Instant | None = self.value(queries.NEXT_DEADLINE, *[self.now - self.wall] * 3)
        return at

    def held_at(self, instant: Instant) -> list[Key]:
        """Held jobs, reservations and tasks and open named sessions that had not expired at that time."""
        return _keys(self.execute(queries.HELD_AT, *[instant] * 4))

    def finished_before(self, account: str, instant: Instant, limit: int, *, dead: bool) -> list[Key]:
        """Tasks that finished before then, oldest first."""
        found = self.execute(queries.FINISHED_TASKS, account, instant, dead, limit)
        return _keys((Task.table, *values) for values in found)

    def oldest_done(self, account: str, keep: int, limit: int) -> list[Key]:
        """Jobs that are done, without the newest ones."""
        return _keys((Lease.table, *values) for values in self.execute(queries.OLDEST_DONE, account, limit, keep))

    # -- the log ---------------------------------------------------------------------------------------------

    def events(self, account: str, after: int, limit: int, max_bytes: int | None = None) -> list[Event]:
        """Events after a cursor."""
        return self.event_page(queries.EVENTS, (limit, max_bytes), account, after)

    def events_of_request(
        self, account: str, request_id: str, after: int, limit: int, max_bytes: int | None = None
    ) -> list[Event]:
        """The events of one request after a cursor."""
        where = (account, after, request_id)
        return self.event_page(queries.EVENTS_OF_REQUEST, (limit, max_bytes), *where)

    def events_per_minute(self, account: str, after: int) -> list[tuple[int, str, int]]:
        """(minute, kind, count) after a cursor."""
        return [
            (minute, kind, count) for minute, kind, count in self.execute(queries.EVENTS_PER_MINUTE, account, after)
        ]

    def log_bounds(self, account: str) -> tuple[int, int]:
        """(the last event removed by retention, the last event)."""
        floor, last = next(iter(self.execute(queries.LOG_BOUNDS, account)), (0, 0))
        return floor, last

    def log_accounts(self) -> list[str]:
        """Every account that has a log."""
        return [account for (account,) in self.execute(queries.LOG_ACCOUNTS)]

    def last_event_before(self, account: str, instant: Instant, limit: int) -> int:
        """The last of an account's `limit` oldest events that is older than `instant` and follows no younger event."""
        return self.value(queries.LAST_EVENT_BEFORE, account, limit, instant, self.now, instant) or 0

    def subjects_up_to(self, account: str, seq: int) -> list[str]:
        """The subjects of all events up to a cursor."""
        return [subject for (subject,) in self.execute(queries.SUBJECTS_UP_TO, account, seq)]

    def subjects_after(self, account: str, subject: str, limit: int) -> list[str]:
        """The subjects that sort after one."""
        return [found for (found,) in self.execute(queries.SUBJECTS_AFTER, account, subject, limit)]


def _keys(found: Iterable[tuple[Any, ...]]) -> list[Key]:
    """The keys of a result. Text that is not UTF-8 comes as bytes: nobody can name such a row, so nobody holds it."""
    return [
        (table, account, row_id)
        for table, account, row_id in found
        if not isinstance(account, bytes) and not isinstance(row_id, bytes)
    ]


_SURROGATES = range(0xD800, 0xE000)
"""Code points that are not characters."""


def after_prefix(prefix: str) -> str | None:
    """The smallest string, bytewise, that sorts after everything beginning with `prefix`; None if there is none."""
    for cut in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[cut]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= sys.maxunicode:
            return prefix[:cut] + chr(following)
    return None
