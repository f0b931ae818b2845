"""Loading of rows on PostgreSQL in further round trips: what depends on the rows that the first one has found."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.question import Question
from holdfast.core.row import Instant, Key, Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.damaged_rows import DamagedRows
from holdfast.store.needs import AllNeeds
from holdfast.store.postgres import dependency_queries, queries, ready_queries
from holdfast.store.postgres.concurrency_loading import ConcurrencyLoading
from holdfast.store.postgres.load_statements import last_versions, queue_statements, ready_statements
from holdfast.store.postgres.parameters import document
from holdfast.store.postgres.pipeline import Pipeline, ResultRows, Statement
from holdfast.store.postgres.results import document_of, take, text
from holdfast.store.rows import LoadedRows


class RowLoading:
    """The part of a transaction that adds rows to those that a batch has loaded."""

    _run: Callable[..., list[ResultRows]]
    _pipeline: Pipeline
    _damaged_rows: DamagedRows
    _versions: dict[Key, int]
    _limited: ConcurrencyLoading | None
    """The queues with a limit for each concurrency key, once they were loaded."""
    _of_types: AllNeeds
    """The claims of any type beside queues with settings, as claims of each type that was loaded for them."""
    _split: list[str]
    """The accounts of these claims."""
    _replaced: int
    """How many ready tasks more than wanted were loaded of each queue, in the place of damaged ones."""

    def _load_open_queues(
        self, rows: LoadedRows, needs: AllNeeds, running: dict[tuple[str, str], int], test_time: Instant | None
    ) -> Instant:
        """Count what runs in the queues with settings, and load for claims of any type beside them."""
        queues = rows.queues()
        self._split = accounts = needs.split_accounts(rows.queue_names())
        limited = ConcurrencyLoading(self._run, rows, needs, test_time)
        statements = queue_statements(queues, accounts, test_time)
        counted, *listed = self._run(*statements, *limited.statements)
        self._limited, found_limited = limited, listed[len(statements) - 1 :]
        del listed[len(statements) - 1 :]
        running |= {(row.account, row.id): 0 for row in queues}
        running |= {(text(account), text(name)): int(total or b"0") for account, name, total in counted}
        now = self._add_chosen(rows, found_limited) if limited.queues else 0
        if not accounts:
            return now
        found = sorted({(text(account), text(name)) for result in listed for account, name in result})
        types = {account: [name for other, name in found if other == account] for account in accounts}
        closed = needs.closed_queues(queues, running, rows.rows.values())
        self._of_types = needs.with_claims(typed=False).in_open_queues(closed, types).with_claims(typed=True)
        of_types = ready_statements(self._of_types, test_time)
        results = self._run(*(statement for _, statement in of_types)) if of_types else []
        return self._add_rows(rows, [Task] * len(results), results) or now

    def _add_chosen(self, rows: LoadedRows, found: list[ResultRows]) -> Instant:
        """Add tasks of queues with a limit for each key that have room, others in the place of damaged ones."""
        assert self._limited is not None
        near = self._limited.read(found)
        now, damaged = self._add_rows(rows, [Task] * len(near), near), -1
        while damaged < len(rows.damaged):
            damaged = len(rows.damaged)
            missing = self._limited.choose()
            if missing:
                now = self._add_rows(rows, [Task], self._run((ready_queries.CHOSEN, (document(missing),))))
        return now

    def _replace_damaged_ready(self, rows: LoadedRows, needs: AllNeeds, test_time: Instant | None) -> Instant:
        """Load further ready tasks in the place of damaged ones."""
        now = 0
        while needs.ready and self._replaced < len(rows.damaged):
            self._replaced = len(rows.damaged)
            claims = (needs, self._of_types)
            more = [statement for each in claims for _, statement in ready_statements(each, test_time, self._replaced)]
            now = self._add_rows(rows, [Task] * len(more), self._run(*more))
        return now

    def _load_dependents(self, rows: LoadedRows, needs: AllNeeds) -> dict[tuple[str, str], list[str]]:
        """Load tasks that depend on others, and list them. Unlike the time of other rows, that of these is not used."""
        awaited = rows.awaited(needs)
        if not awaited:
            return {}
        wanted = (document(awaited),)
        listed, loaded = self._run(
            (dependency_queries.DEPENDENTS, wanted), (dependency_queries.DEPENDENT_TASKS, wanted)
        )
        self._add_rows(rows, [Task], [loaded])
        found: dict[tuple[str, str], list[str]] = {(account, task): [] for account, task, _, _ in awaited}
        for account, task, dependent in listed:
            found[(account or b"").decode(), (task or b"").decode()].append((dependent or b"").decode())
        return found

    def _load_more(
        self, rows: LoadedRows, subjects: dict[tuple[str, str], Key], versions: ResultRows | None
    ) -> Instant:
        """Load what depends on the first results: sessions of holders, questions of tasks, removed rows.

        `versions` are the last versions of all subjects, if they were loaded with the rows. A row that is absent after
        its lock was tried is absent in every later statement, or was made by another batch: then this one runs again.
        """
        holders = rows.sessions() - {key[1:] for key in rows.rows if key[0] == Session.table}
        known = rows.known
        absent = {subject: key for subject, key in subjects.items() if key not in known}
        self._pipeline.expects_new = 2 * len(absent) > len(subjects)
        statements: list[Statement] = []
        if holders:
            statements.append((queries.SESSIONS_OF_LEASES, (document(sorted(holders)),)))
        asked = sorted(rows.questions())
        if asked:  # locked after their tasks, as in every batch
            statements.append((queries.ROW_BY_KEY[Question.table], (document(asked),)))
        if absent and versions is None:
            statements.append(last_versions(absent))
        found = self._run(*statements) if statements else []
        row_types: list[type[Row]] = [*([Session] if holders else []), *([Question] if asked else [])]
        now = self._add_rows(rows, row_types, take(found, len(row_types)))
        for account, subject, version in found.pop() if found else versions or ():
            key = absent.get((text(account), text(subject)))
            if key is not None and version is not None:
                self._versions[key] = int(version)
        return now

    def _add_rows(self, rows: LoadedRows, row_types: list[type[Row]], results: list[ResultRows]) -> Instant:
        """Add the rows that were found; returns the time at which the last of them was read."""
        now = 0
        for row_type, result in zip(row_types, results, strict=True):
            rows.add(self._damaged_rows.decode_document(row_type, document_of(result)))
            now = int(result[0][1] or b"0")
        return now
