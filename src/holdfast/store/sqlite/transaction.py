"""One batch on a SQLite file. The file's write lock is held from the beginning to the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count, groupby
from operator import itemgetter
from typing import Any

import apsw
from msgspec.structs import astuple, replace

from holdfast.core.errors import OutcomeUnknown
from holdfast.core.lease import Lease
from holdfast.core.plan import Usage
from holdfast.core.question import Question
from holdfast.core.reservation.row import Reservation, SpaceUse
from holdfast.core.row import Instant, Key
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.changes import Answer, Changes
from holdfast.store.contract import Clock
from holdfast.store.damaged_rows import DamagedRows
from holdfast.store.needs import AllNeeds
from holdfast.store.rows import ROW_TYPES, LoadedRows, Rows, absent_subjects
from holdfast.store.sql import queries as sql
from holdfast.store.sql.column_groups import column_values, group_by_columns
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import dependency_queries, queries
from holdfast.store.sqlite.claim_start import ClaimStarts
from holdfast.store.sqlite.concurrency_loading import ConcurrencyLoading
from holdfast.store.sqlite.loading import document
from holdfast.store.sqlite.results import fetch

MAX_RECORDS = 64
"""Records in one statement."""

_ROW_TYPES = {row_type.table: row_type for row_type in ROW_TYPES}


class SqliteTransaction(ConcurrencyLoading):
    """A transaction between BEGIN IMMEDIATE and COMMIT."""

    def __init__(
        self, connection: apsw.Connection, clock: Clock | None, damaged_rows: DamagedRows, claim_starts: ClaimStarts
    ) -> None:
        self._execute = connection.execute
        self._claim_starts = claim_starts
        self._damaged_rows = damaged_rows
        state: Any = self._execute(queries.STATE).fetchone()
        self._token: int
        self._token, now, boot_id, boot_at = state
        self._reading = clocks.read()
        self.now: Instant = current_time(clock, clocks.Mark(now, boot_id, boot_at), self._reading)
        self.wall: Instant = wall_time(clock, self._reading)
        self._has_written = False

    def load(self, needs: AllNeeds, lock_seconds: float | None = None) -> Rows:
        """Everything the batch needs."""
        rows = LoadedRows()
        for table, keys in groupby(needs.rows, key=itemgetter(0)):
            self._add(rows, _ROW_TYPES[table], queries.ROW_BY_KEY[table], [key[1:] for key in keys])
        loaded = Rows(self.now, rows.rows, rows.answers, damaged=rows.damaged, wall=self.wall)
        if not needs.has_only_keys:
            self._add_holdings(rows, needs)
            loaded.running = self._add_queues(rows, needs)
            loaded.running_by_key = self._add_with_room(rows, needs)
            self._add_claimable(rows, needs, loaded.running)
            loaded.dependents = {} if not needs.dependents else self._add_dependents(rows, needs)
            self._add_counts(loaded, needs)
        if rows.rows:
            self._add(rows, Session, queries.ROW_BY_KEY[Session.table], list(rows.sessions()))
            self._add(rows, Question, queries.ROW_BY_KEY[Question.table], list(rows.questions()))
        for key in needs.answers:
            rows.add_answers(self._damaged_rows.decode(Answer, fetch(self._execute, queries.ANSWER, key)))
        loaded.versions = self._last_versions(absent_subjects(needs, rows.known))
        return loaded

    def _add_holdings(self, rows: LoadedRows, needs: AllNeeds) -> None:
        """Add what sessions hold, what is reserved under paths, and the tasks under unique keys."""
        self._add(rows, Lease, queries.LEASES_OF_SESSION, needs.holdings)
        self._add(rows, Task, queries.TASKS_OF_SESSION, needs.holdings)
        self._add(rows, Reservation, queries.RESERVATIONS_OF_SESSION, needs.holdings)
        if needs.paths:
            under = (document(needs.covering_prefixes()), document(needs.prefixes_below()))
            self._add_found(rows, Reservation, queries.RESERVATIONS_UNDER, under)
        unique_keys: list[Any] = [*needs.unique_keys]
        if needs.same_key_as:
            unique_keys += self._execute(queries.KEYS_OF_TASKS, (document(needs.same_key_as),)).fetchall()
        self._add(rows, Task, queries.TASKS_UNDER_KEY, unique_keys)

    def _add_dependents(self, rows: LoadedRows, needs: AllNeeds) -> dict[tuple[str, str], list[str]]:
        """Add tasks that depend on others, and list them."""
        found = {
            (account, task): [
                dependent
                for (dependent,) in fetch(self._execute, dependency_queries.DEPENDENTS, (account, task, after, most))
            ]
            for account, task, after, most in rows.awaited(needs)
        }
        keys = [(account, dependent) for (account, _), each in found.items() for dependent in each]
        self._add(rows, Task, queries.ROW_BY_KEY[Task.table], keys)
        return found

    def _add_counts(self, loaded: Rows, needs: AllNeeds) -> None:
        """Add the numbers that the batch needs; most need none."""
        for owner in needs.lock_counts:
            loaded.lock_counts[owner] = self._value(queries.LIVE_LOCKS, (*owner, self.now))
        for account in needs.election_counts:
            loaded.election_counts[account] = self._value(queries.LIVE_ELECTIONS, (account, self.now))
        for space in needs.spaces():
            found: Any = self._execute(queries.SPACE_USE, (*space, self.now)).fetchone()
            loaded.spaces[space] = SpaceUse(*found)
        for group in needs.webhook_counts:
            loaded.webhook_counts[group] = self._value(queries.WEBHOOKS, (*group, group[2]))
        for account in needs.usage:
            loaded.usage[account] = self._usage(account)
            loaded.held_tasks[account] = self._value(sql.HELD_TASKS, (account, account, self.now))

    def _usage(self, account: str) -> Usage:
        return next((Usage(*found) for found in self._execute(sql.USAGE, (account,))), Usage())

    def _last_versions(self, absent: dict[tuple[str, str], Key]) -> dict[Key, int]:
        """The last versions of rows that were removed: the next row under that id continues from there."""
        if not absent:
            return {}
        found = self._execute(queries.LAST_VERSIONS, (document(list(absent)),))
        return {absent[account, subject]: version for account, subject, version in found}

    def count_claimable(self, needs: AllNeeds) -> None:
        """No other server writes meanwhile, so everything claimable was loaded."""

    def draw(self, count: int) -> list[int]:
        """Fencing tokens; their counter is saved with the state row."""
        first = self._token + 1
        self._token += count
        return list(range(first, first + count))

    def advance_tokens(self, floor: int) -> None:
        """Move the counter ahead."""
        self._token = max(self._token, floor)

    def set_clock(self, to: Instant) -> None:
        """Set the store's clock, and the times that are not in the log: what was waited for is due at once."""
        for statement in queries.SET_CLOCK:
            self._execute(statement, (to,) * statement.count("?"))
        self.now = to

    def save(self, changes: Changes) -> None:
        """All rows that changed, their events and the remembered answers."""
        for write, saved in ((queries.update_row, changes.updates), (queries.insert_row, changes.inserts)):
            for table, changed in saved.items():
                for names, rows in group_by_columns(changed, changes.touched):
                    self._write(partial(write, _ROW_TYPES[table], names), rows, column_values(names))
            self._claim_starts.note_saved(saved.get(Task.table, ()))
        for table, deleted in changes.deletes.items():
            self._execute(queries.DELETE_ROW[table], (document([row.key[1:] for row in deleted]),))
        for statement, entries in (
            (queries.ADD_PATHS, changes.paths_added),
            (queries.REMOVE_PATHS, changes.paths_removed),
            (dependency_queries.ADD_DEPENDENCIES, changes.dependencies_added),
            (dependency_queries.REMOVE_DEPENDENCIES, changes.dependencies_removed),
        ):
            if entries:
                self._execute(statement, (document(entries),))
        if changes.created:
            created = [(account, used.cycle, used.created) for account, used in changes.created.items()]
            self._execute(queries.COUNT_CREATED, (document(created),))
        if changes.counts:
            self._execute(queries.COUNT_TASKS, (document([(*key, step) for key, step in changes.counts.items()]),))
        self._write(queries.insert_answer, changes.answers)
        self._save_events(changes)
        self._has_written = True

    def commit(self) -> None:
        """COMMIT, which flushes to disk; a transaction that wrote nothing is rolled back."""
        if not self._has_written:
            self._execute("ROLLBACK")
            return
        self._execute(queries.SAVE_STATE, (self._token, self.now, self._reading.boot_id, self._reading.boot_at))
        try:
            self._execute("COMMIT")
        except apsw.IOError as error:  # the WAL may hold the batch, flushed or not
            raise OutcomeUnknown("the disk failed while the change was being committed") from error

    def execute(self, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
        """Execute a statement that is not part of a batch; it is committed with the transaction."""
        self._has_written = True
        self._claim_starts.forget()
        return fetch(self._execute, statement, arguments)

    def _save_events(self, changes: Changes) -> None:
        totals: dict[str, int] = {}
        for event in changes.events:
            totals[event.account] = totals.get(event.account, 0) + 1
        following = {
            account: count(self._value(queries.COUNT_EVENTS, (account, total)) - total + 1)
            for account, total in totals.items()
        }
        numbered = [replace(event, seq=next(following[event.account])) for event in changes.events]
        self._write(queries.insert_event, numbered)

    def _write(
        self,
        statement: Callable[[int], str],
        records: Sequence[Any],
        columns: Callable[[Any], tuple[Any, ...]] = astuple,
    ) -> None:
        """Write all records in few statements, in sizes that repeat, so that SQLite need not parse them again."""
        if len(records) == 1:
            self._execute(statement(1), columns(records[0]))
            return
        written, size = 0, MAX_RECORDS
        while written < len(records):
            while size > len(records) - written:
                size //= 2
            self._execute(statement(size), [*chain.from_iterable(map(columns, records[written : written + size]))])
            written += size


def current_time(clock: Clock | None, mark: clocks.Mark, reading: clocks.Reading) -> Instant:
    """The store's time: by its own clock or by a test's, and never before the last commit."""
    return clocks.advance(mark, reading) if clock is None else max(clock(), mark.now)


def wall_time(clock: Clock | None, reading: clocks.Reading) -> Instant:
    """The time of the wall clock, or of a test's clock."""
    return reading.wall if clock is None else clock()
