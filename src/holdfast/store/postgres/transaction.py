"""One batch on PostgreSQL, in two round trips: lock and load, then save and COMMIT; one more if tokens are drawn.

READ COMMITTED with explicit row locks. The order of locks is the same in every batch: the Idempotency-Keys of task
claims, spaces of reservations, then sessions, leases, reservations, tasks, queues, principals, accounts, purchases,
webhooks (each by account and id, bytewise), then ready tasks (never waiting), then the usage of accounts with limits,
then the locks for counting locks or webhooks, then the counters of creations, tasks and events. Rows that do not exist
cannot be locked, so a batch whose insert meets a row made meanwhile runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Container

import psycopg

from holdfast.core.errors import OutcomeUnknown
from holdfast.core.plan import Usage
from holdfast.core.reservation.row import SpaceUse
from holdfast.core.row import Instant, Key
from holdfast.store.changes import Answer, Changes
from holdfast.store.concurrency_keys import running_by_key
from holdfast.store.contract import Clock, Rerun
from holdfast.store.damaged_rows import DamagedRows
from holdfast.store.needs import AllNeeds
from holdfast.store.postgres import queries
from holdfast.store.postgres.clock_watch import ClockReading, own_time
from holdfast.store.postgres.connection import COMMIT_SECONDS, LANE_SETTINGS, LOCK_SECONDS, Connection, is_broken
from holdfast.store.postgres.durability import SET_FOR_COMMIT, confirmed_commit, unconfirmed
from holdfast.store.postgres.errors import translate
from holdfast.store.postgres.load_statements import (
    count_statements,
    counting_statements,
    election_statements,
    last_versions,
    lock_statements,
    metering_statements,
    space_statements,
)
from holdfast.store.postgres.loading import RowLoading
from holdfast.store.postgres.parameters import document
from holdfast.store.postgres.pipeline import Pipeline, Statement
from holdfast.store.postgres.results import document_of, number, take, text
from holdfast.store.postgres.save_statements import answer_statements, counter_statements, row_statements
from holdfast.store.rows import LoadedRows, Rows, absent_subjects

_SET_SESSION: list[Statement] = [(f"SET LOCAL {name} = '{value}'", ()) for name, value in LANE_SETTINGS.items()]


class PostgresTransaction(RowLoading):
    """A transaction between BEGIN and COMMIT on one connection."""

    def __init__(
        self,
        connection: Connection,
        pipeline: Pipeline,
        clock: Clock | None,
        check_clock: Callable[[ClockReading], None],
        damaged_rows: DamagedRows,
        *,
        pooled: bool = False,
        require_standby: bool = False,
    ) -> None:
        self._connection = connection
        self._damaged_rows = damaged_rows
        self._check_clock = check_clock
        self._begin: list[Statement] = [(queries.BEGIN, ()), *(_SET_SESSION if pooled else ())]
        self._pipeline = pipeline
        self._run = pipeline.run
        self._clock = clock
        self._counter_lock_seconds = LOCK_SECONDS
        self._begun = False
        self.loaded = False
        self._require_standby = require_standby
        self._changes: Changes | None = None
        self._versions: dict[Key, int] = {}
        self._limited = None
        self._of_types, self._split = AllNeeds(), list[str]()
        self._replaced = 0

    def load(self, needs: AllNeeds, lock_seconds: float | None = None) -> Rows:
        """Lock and read everything in one round trip; the clock is read after the last lock is granted."""
        if lock_seconds is not None:
            self._begin.append((f"SET LOCAL lock_timeout = '{lock_seconds}s'", ()))
            self._counter_lock_seconds = lock_seconds
        if needs.ready and needs.answers:
            self._begin.append((queries.LOCK_ANSWERS, (document(needs.answers),)))
        if needs.paths:
            self._begin.append((queries.LOCK_SPACES, (document(needs.spaces()),)))
        test_time = None if self._clock is None else self._clock()
        locking = lock_statements(needs, test_time)
        metering = metering_statements(needs, test_time)
        counting = counting_statements(needs, test_time)
        elections = election_statements(needs, test_time)
        spaces = space_statements(needs, test_time)
        answers: list[Statement] = [(queries.ANSWER, (document(needs.answers),))] if needs.answers else []
        subjects = absent_subjects(needs, ())
        versions = [last_versions(subjects)] if subjects and self._pipeline.expects_new else []
        # Without further locks after the rows, the time that was read with the last row is exact.
        clock: list[Statement] = [] if locking and not counting and not metering else [(queries.NOW_OR, (test_time,))]
        self._begun = True
        statements = [statement for _, statement in locking]
        asked_at = own_time()
        found = self._run(
            *self._begin, *statements, *metering, *counting, *elections, *spaces, *answers, *versions, *clock
        )
        answered_at = own_time()
        del found[: len(self._begin)]
        self.loaded = True
        rows = LoadedRows()
        now = self._add_rows(rows, [row_type for row_type, _ in locking], take(found, len(locking)))
        if clock:
            now = number(found.pop())
        if test_time is None:
            self._check_clock(ClockReading(now, asked_at, answered_at))
        metered = take(found, len(metering))
        counts = [number(result) for result in take(found, len(counting))[1::2]]
        election_counts = [number(result) for result in take(found, len(elections))]
        uses = [SpaceUse(*(int(number or b"0") for number in result[0])) for result in take(found, len(spaces))]
        if answers:
            rows.add_answers(self._damaged_rows.decode_document(Answer, document_of(found.pop(0))))
        if rows.answers:
            self._check_absent(rows.known, needs)
        running: dict[tuple[str, str], int] = {}
        opened = self._load_open_queues(rows, needs, running, test_time) if rows.queue_names() else 0
        replaced = self._replace_damaged_ready(rows, needs, test_time)
        dependents = {} if not needs.dependents else self._load_dependents(rows, needs)
        more = self._load_more(rows, subjects, found.pop() if versions else None)
        now = max(first := now, opened, replaced, more)
        if test_time is None and now > first:  # the clock may have been set since the first round trip
            self._check_clock(ClockReading(now, answered_at, own_time()))
        return Rows(
            test_time or now,
            rows.rows,
            lock_counts=dict(zip(needs.lock_counts, counts, strict=False)),
            webhook_counts=dict(zip(needs.webhook_counts, counts[len(needs.lock_counts) :], strict=True)),
            election_counts=dict(zip(needs.election_counts, election_counts, strict=True)),
            spaces=dict(zip(needs.spaces(), uses, strict=True)),
            answers=rows.answers,
            damaged=rows.damaged,
            versions=self._versions,
            dependents=dependents,
            usage={
                account: Usage(int(used[0][0] or b"0"), int(used[0][1] or b"0"))
                for account, used in zip(needs.usage, metered[1::3], strict=True)
            },
            running=running,
            running_by_key={} if self._limited is None else running_by_key(self._limited.queues),
            skipped=self._limited is not None and self._limited.has_skipped((*needs.ready, *self._of_types.ready)),
            held_tasks=dict(zip(needs.usage, map(number, metered[2::3]), strict=True)),
            wall=test_time or now,
        )

    def _check_absent(self, stored: Container[Key], needs: AllNeeds) -> None:
        """Run the batch again if a row appeared after the rows were read.

        The transaction that made it may have saved one of the answers that were read since. A replayed claim may
        therefore take a row that is absent after this check as removed.
        """
        absent: dict[str, list[tuple[str, str]]] = {}
        for table, account, row_id in needs.rows:
            if (table, account, row_id) not in stored:
                absent.setdefault(table, []).append((account, row_id))
        statements = [(queries.COUNT_ROWS[table], (document(keys),)) for table, keys in absent.items()]
        if statements and any(map(number, self._run(*statements))):
            raise Rerun("a row was made while the batch was loaded")

    def count_claimable(self, needs: AllNeeds) -> dict[tuple[str, str, str], int]:
        """How many claimable tasks there are, also those that another server has locked."""
        test_time = None if self._clock is None else self._clock()
        # In queues with a limit for each key tasks are chosen, and those that are locked are known.
        limited = [] if self._limited is None else self._limited.queues
        chosen = {(queue.account, queue.type) for queue in limited}
        split = {(account, "") for account in self._split}
        claims = (needs.without_queues(chosen | split), self._of_types.without_queues(chosen))
        statements = [statement for each in claims for statement in count_statements(each, test_time, self._replaced)]
        counted: dict[tuple[str, str, str], int] = {}
        for found in self._run(*statements) if statements else ():
            for account, name, capabilities, total in found:
                claim = (text(account), text(name), text(capabilities))
                counted[claim] = max(counted.get(claim, 0), int(total or b"0"))
        return counted

    def draw(self, count: int) -> list[int]:
        """Fencing tokens from the sequence, exactly as many as are needed."""
        tokens = self._run((queries.DRAW, (count,)))[0][0][0]
        return sorted(map(int, (tokens or b"").split(b",")))

    def advance_tokens(self, floor: int) -> None:
        """Move the sequence ahead, while no other transaction can draw from it; an abandoned one leaves a gap."""
        self._run((queries.LOCK_TOKENS, ()), (queries.ADVANCE_TOKENS, (floor,)))

    def set_clock(self, to: Instant) -> None:
        """The clock is that of the database's machine: it is set there."""

    def save(self, changes: Changes) -> None:
        """Keep the changes: they are sent together with COMMIT."""
        self._changes = changes

    def commit(self) -> None:
        """Save and COMMIT in one round trip."""
        if self._changes is None:
            self.roll_back()
            return
        rows = row_statements(self._changes)
        try:
            with confirmed_commit(self._connection):
                results = self._run(
                    *rows,
                    (SET_FOR_COMMIT, (f"{self._counter_lock_seconds}s",)),
                    *answer_statements(self._changes),
                    *counter_statements(self._changes),
                    (queries.COMMIT, ()),
                    seconds=COMMIT_SECONDS,
                )
        except psycopg.errors.LockNotAvailable:
            raise
        except psycopg.Error as error:
            if is_broken(self._connection):
                raise OutcomeUnknown("the connection broke while the change was being committed") from error
            raise translate(error) from error
        self._begun = False
        standbys = results[len(rows)][0][0]
        if self._require_standby and not standbys:
            raise unconfirmed()

    def roll_back(self) -> None:
        """Drop everything."""
        if self._begun:
            self._begun = False
            self._run((queries.ROLLBACK, ()))
