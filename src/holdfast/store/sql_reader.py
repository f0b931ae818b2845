"""Looks at the committed state that both databases answer alike; each says only how a statement is said."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import ModuleType
from typing import Any, TypeVar

from holdfast.core.browser_session import BrowserSession
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.plan import Usage
from holdfast.core.principal import Principal, accepts_key
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.contract import Counts, TaskPath, Totals

R = TypeVar("R", bound=Row)


class SqlReader(ABC):
    """The readers of SQLite and PostgreSQL: same questions, same arguments, two dialects."""

    queries: ModuleType
    now: Instant

    @abstractmethod
    def look(self, query: str, *arguments: Any) -> Iterable[tuple[Any, ...]]:
        """Say one statement."""

    def rows(self, row_type: type[R], query: str, *arguments: Any) -> list[R]:
        """Its answer as rows."""
        return [row_type(*columns) for columns in self.look(query, *arguments)]

    def value(self, query: str, *arguments: Any) -> Any:
        """The first column of the first row."""
        return next(iter(self.look(query, *arguments)))[0]

    # -- one thing -------------------------------------------------------------------------------------------

    def row(self, row_type: type[R], account: str, row_id: str) -> R | None:
        """A row by its key."""
        found = self.rows(row_type, self.queries.ROW_BY_ID[row_type.table], account, row_id)
        return found[0] if found else None

    def principal(self, key_hash: str) -> Principal | None:
        """Whom a credential stands for."""
        found = self.rows(Principal, self.queries.PRINCIPALS_BY_KEY, key_hash, key_hash)
        return next((row for row in found if accepts_key(row, key_hash, self.now)), None)

    def browser_session(self, badge_id: str) -> BrowserSession | None:
        """What lets a browser in."""
        return next((BrowserSession(*columns) for columns in self.look(self.queries.BADGE, badge_id)), None)

    def history(self, account: str, subject: str) -> list[Event]:
        """All events of one subject."""
        return [Event(*columns) for columns in self.look(self.queries.HISTORY, account, subject)]

    def granted(self, account: str, subject: str, version: int) -> Event | None:
        """The last event of a lease before a version that told whose it is."""
        found = self.look(self.queries.GRANTED, account, subject, version)
        return next((Event(*columns) for columns in found), None)

    def news(self, account: str, subject: str, limit: int) -> list[Event]:
        """The newest events of one subject but for renewals, newest first."""
        return [Event(*columns) for columns in self.look(self.queries.NEWS, account, subject, limit)]

    # -- lists -----------------------------------------------------------------------------------------------

    def leases(self, account: str, prefix: str, after: str, limit: int) -> list[Lease]:
        """Live leases by name."""
        end = after_prefix(prefix)
        return self.rows(Lease, self.queries.LIST_LEASES, account, after, prefix, end, end, self.now, limit)

    def principals(self, account: str) -> list[Principal]:
        """Everybody with a credential."""
        return self.rows(Principal, self.queries.LIST_PRINCIPALS, account)

    def sessions(self, account: str, after: str, limit: int) -> list[Session]:
        """Sessions by id."""
        return self.rows(Session, self.queries.LIST_SESSIONS, account, after, limit)

    def live_sessions(self, account: str, after: str, limit: int) -> list[Session]:
        """Sessions that may still act."""
        return self.rows(Session, self.queries.LIVE_SESSIONS, account, after, self.now, limit)

    def holdings(self, account: str, session_id: str) -> tuple[list[Lease], list[Task]]:
        """What a session holds."""
        return (
            self.rows(Lease, self.queries.LEASES_HELD, account, session_id),
            self.rows(Task, self.queries.TASKS_HELD, account, session_id),
        )

    def tasks(self, account: str, by: TaskPath, before: str, limit: int) -> list[Task]:
        """Tasks older than an id, newest first, along one index."""
        queries = self.queries
        if by.tag is not None:
            return self.rows(Task, queries.TASKS_TAGGED, account, by.tag, before, limit)
        if by.unique_key is not None:
            return self.rows(Task, queries.TASKS_KEYED, account, by.unique_key, before, limit)
        if by.type is None and by.state is None:
            return self.rows(Task, queries.TASKS_NEWEST, account, before, limit)
        # A type and a state are one stretch of the index; the stretches asked for are few and known from the counts.
        found = [
            task
            for task_type, state, _ in self.task_counts(account)
            if by.type in {None, task_type} and by.state in {None, state}
            for task in self.rows(Task, queries.TASKS_LISTED, account, task_type, state, before, limit)
        ]
        return sorted(found, key=lambda task: task.id, reverse=True)[:limit]

    def rows_after(self, row_type: type[R], account: str, row_id: str, limit: int) -> list[R]:
        """Rows of every account, in the order of their keys."""
        return self.rows(row_type, self.queries.NEXT_ROWS[row_type.table], account, row_id, limit)

    # -- counts ----------------------------------------------------------------------------------------------

    def counts(self, account: str) -> Counts:
        """Totals for the status page."""
        live = self.value(self.queries.COUNT_LIVE, account, self.now)
        return Counts(live, self.value(self.queries.COUNT_PRINCIPALS, account))

    def usage(self, account: str) -> tuple[Usage, int]:
        """What an account has used, and how many tasks are held."""
        used = next((Usage(*found) for found in self.look(self.queries.USAGE, account)), Usage())
        return used, int(self.value(self.queries.WORKERS, account, account, self.now))

    def uses(self, account: str) -> dict[str, Instant]:
        """When each key of an account was last seen."""
        return dict(self.look(self.queries.KEY_USES, account))

    def count_of_session(self, account: str, session_id: str) -> int:
        """How many leases carry this session."""
        return int(self.value(self.queries.COUNT_OF_SESSION, account, session_id))

    def task_counts(self, account: str) -> list[tuple[str, str, int]]:
        """(type, state, how many)."""
        return [(found[0], found[1], found[2]) for found in self.look(self.queries.TASK_COUNTS, account)]

    def queues(self, account: str, limit: int) -> list[tuple[str, int, Instant]]:
        """(type, how many wait, when the oldest of them was made), the oldest first."""
        return [(found[0], found[1], found[2]) for found in self.look(self.queries.QUEUES, account, limit)]

    def running_out(self, account: str, limit: int) -> list[Task]:
        """Tasks that are held, those that run out first."""
        return self.rows(Task, self.queries.RUNNING_OUT, account, account, limit)

    def totals(self) -> Totals:
        """Numbers over all accounts."""
        tasks = {found[0]: found[1] for found in self.look(self.queries.TASK_TOTALS)}
        oldest = self.value(self.queries.OLDEST_READY)
        waited = 0 if oldest is None else max(self.now - oldest, 0)
        return Totals(self.value(self.queries.TOTAL_LIVE, self.now), tasks, waited)

    # -- deadlines -------------------------------------------------------------------------------------------

    def due(self, limit: int, account: str = "") -> list[Key]:
        """Rows whose time has run out, or has come."""
        found = self.look(self.queries.DUE, *[self.now] * 4, account, limit)
        return [(table, account, row_id) for table, account, row_id, _ in found]

    def next_deadline(self) -> Instant | None:
        """When the next row's time runs out or comes."""
        at: Instant | None = self.value(self.queries.NEXT_DEADLINE)
        return at

    def held_at(self, instant: Instant) -> list[Key]:
        """Jobs, tasks and named sessions whose time had not run out at a moment."""
        found = self.look(self.queries.HELD_AT, *[instant] * 3)
        return [(table, account, row_id) for table, account, row_id in found]

    def task_accounts(self) -> list[str]:
        """Every account that has, or had, tasks."""
        return [account for (account,) in self.look(self.queries.TASK_ACCOUNTS)]

    def finished_before(self, account: str, instant: Instant, limit: int, *, dead: bool) -> list[Key]:
        """Tasks that finished before then, oldest first."""
        found = self.look(self.queries.TASKS_FINISHED, account, instant, dead, limit)
        return [(Task.table, account, task_id) for account, task_id in found]

    # -- the log ---------------------------------------------------------------------------------------------

    def events(self, account: str, after: int, limit: int, most: int | None = None) -> list[Event]:
        """The log from a cursor on."""
        if most is None:
            return [Event(*columns) for columns in self.look(self.queries.EVENTS, account, after, limit)]
        found = self.look(self.queries.EVENTS_WITHIN, account, after, limit, most)
        return [Event(*columns) for columns in found]

    def events_of_request(self, account: str, request_id: str, after: int) -> list[Event]:
        """What one request changed, looked for from a cursor on."""
        found = self.look(self.queries.EVENTS_OF_REQUEST, account, after, request_id)
        return [Event(*columns) for columns in found]

    def pace(self, account: str, after: int) -> list[tuple[int, str, int]]:
        """(minute, kind, how many) from a cursor on."""
        return [(minute, kind, many) for minute, kind, many in self.look(self.queries.PACE, account, after)]

    def log_bounds(self, account: str) -> tuple[int, int]:
        """(up to where retention has removed the log, its last event)."""
        floor, last = next(iter(self.look(self.queries.LOG_BOUNDS, account)), (0, 0))
        return floor, last

    def logs(self) -> list[str]:
        """Every account that has a log."""
        return [account for (account,) in self.look(self.queries.LOGS)]

    def older_than(self, account: str, instant: Instant, limit: int) -> int:
        """The last of an account's oldest events that is older than that; 0 if none is."""
        return self.value(self.queries.OLDER_EVENTS, account, limit, instant) or 0

    def subjects_until(self, account: str, seq: int) -> list[str]:
        """Whom the log tells of up to there."""
        return [subject for (subject,) in self.look(self.queries.SUBJECTS, account, seq)]

    def subjects_after(self, account: str, subject: str, limit: int) -> list[str]:
        """Whom the log tells of, by name."""
        return [found for (found,) in self.look(self.queries.NEXT_SUBJECTS, account, subject, limit)]


_SURROGATES = range(0xD800, 0xE000)
"""Code points that are no characters."""


def after_prefix(prefix: str) -> str | None:
    """The least text, bytewise, that sorts after everything beginning with `prefix`; None if there is none."""
    for cut in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[cut]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= sys.maxunicode:
            return prefix[:cut] + chr(following)
    return None
