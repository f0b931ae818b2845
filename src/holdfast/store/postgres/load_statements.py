"""The statements that lock and load what a batch needs on PostgreSQL, in the one order of locks (`transaction.py`)."""

from __future__ import annotations

from typing import Any

from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant, Key, Row
from holdfast.core.task import Task
from holdfast.core.task.queue import Queue
from holdfast.core.webhooks.webhook import Webhook
from holdfast.store.needs import AllNeeds
from holdfast.store.postgres import queries
from holdfast.store.postgres import ready_queries as ready
from holdfast.store.postgres.parameters import document, text_array
from holdfast.store.postgres.pipeline import Statement
from holdfast.store.rows import ROW_TYPES

RowStatement = tuple[type[Row], Statement]

ROWS_PER_ACCOUNT = 8
"""If a batch needs so many rows of each account, one statement for each account costs less than one for all."""


def lock_statements(needs: AllNeeds, test_time: Instant | None) -> list[RowStatement]:
    """The statements that lock and read rows."""
    statements: list[RowStatement] = []
    for row_type in ROW_TYPES:
        keys = [key[1:] for key in needs.rows if key[0] == row_type.table]
        if row_type is Lease and needs.holdings:
            statements.append((Lease, (queries.LEASES_OF_SESSION, (document(keys), document(needs.holdings)))))
        elif row_type is Reservation and (needs.holdings or needs.paths):
            under = (document(needs.covering_prefixes()), document(needs.prefixes_below()))
            held = (document(keys), document(needs.holdings))
            statements.append((Reservation, (queries.RESERVATIONS_UNDER, (*held, *under))))
        elif row_type is Task and (needs.holdings or needs.unique_keys or needs.same_key_as):
            paths = (keys, needs.holdings, needs.unique_keys, needs.same_key_as)
            statements.append((Task, (queries.TASKS_OF_SESSION, tuple(map(document, paths)))))
        elif row_type is Queue and (needs.queues or needs.queues_of):
            named = [*keys, *(queue for queue in needs.queues if queue[1])]
            accounts = [account for account, task_type in needs.queues if not task_type]
            settings = (document(named), document(accounts), document(needs.queues_of))
            statements.append((Queue, (ready.QUEUES_OF, settings)))
        elif keys:
            statements += [(row_type, statement) for statement in _lock_by_key(row_type, keys)]
    # These never wait, so they may come last.
    return statements + ready_statements(needs, test_time)


def ready_statements(needs: AllNeeds, test_time: Instant | None, more: int = 0) -> list[RowStatement]:
    """The statements that lock and read the first claimable tasks of the queues, and `more` of each."""
    statements: list[RowStatement] = []
    for wanted, typed, untyped in (
        (needs.ready, (ready.READY, ready.DUE_TASKS), (ready.READY_ANY, ready.DUE_TASKS_ANY)),
        (
            needs.requiring,
            (ready.READY_REQUIRING, ready.DUE_REQUIRING),
            (ready.READY_REQUIRING_ANY, ready.DUE_REQUIRING_ANY),
        ),
    ):
        for (first, due), queues in zip((typed, untyped), _by_type(wanted), strict=True):
            if queues:
                given = _document(queues, more)
                statements += [(Task, (first, (given,))), (Task, (due, (given, test_time)))]
    return statements


def count_statements(needs: AllNeeds, test_time: Instant | None, more: int = 0) -> list[Statement]:
    """The statements that count claimable tasks, also those that other servers have locked, and `more` of each."""
    plain = zip((ready.COUNT_CLAIMABLE, ready.COUNT_CLAIMABLE_ANY), _by_type(needs.ready), strict=True)
    requiring = zip((ready.COUNT_REQUIRING, ready.COUNT_REQUIRING_ANY), _by_type(needs.requiring), strict=True)
    return [(query, (_document(queues, more), test_time)) for query, queues in (*plain, *requiring) if queues]


def queue_statements(queues: list[Queue], accounts: list[str], test_time: Instant | None) -> list[Statement]:
    """The statements that count what runs in these queues, and list the types of these accounts."""
    statements: list[Statement] = [(ready.RUNNING, (document([row.key[1:] for row in queues]),))]
    if accounts:
        given = document(accounts)
        statements += [(ready.READY_TYPES, (given,)), (ready.GROUPED_TYPES, (given,))]
        statements.append((ready.DUE_TYPES, (given, test_time)))
    return statements


def _document(queues: list[Any], more: int) -> bytes:
    """Queues, of each of which `more` tasks are meant."""
    return document([(*queue[:-1], queue[-1] + more) for queue in queues] if more else queues)


def _by_type(queues: list[Any]) -> tuple[list[Any], list[Any]]:
    """Queues of one type, and those of all types of an account."""
    return [queue for queue in queues if queue[1]], [queue for queue in queues if not queue[1]]


def metering_statements(needs: AllNeeds, test_time: Instant | None) -> list[Statement]:
    """Three statements for each account with limits: the second reads its usage, the third how many tasks it holds."""
    statements: list[Statement] = []
    for account in needs.usage:
        statements += [
            (queries.OPEN_USAGE, (account,)),
            (queries.LOCK_USAGE, (account,)),
            (queries.HELD_TASKS, (account, test_time)),
        ]
    return statements


def counting_statements(needs: AllNeeds, test_time: Instant | None) -> list[Statement]:
    """Two statements for each limit of locks, then of webhooks: the second counts."""
    statements: list[Statement] = []
    for owner in needs.lock_counts:
        statements += [(queries.COUNT_LOCK, ("\x1f".join(owner),)), (queries.LIVE_LOCKS, (*owner, test_time))]
    for group in needs.webhook_counts:
        lock = "\x1f".join((Webhook.table, *group))
        statements += [(queries.COUNT_LOCK, (lock,)), (queries.WEBHOOKS, group)]
    return statements


def election_statements(needs: AllNeeds, test_time: Instant | None) -> list[Statement]:
    """The statements that count live elections."""
    return [(queries.LIVE_ELECTIONS, (account, test_time)) for account in needs.election_counts]


def space_statements(needs: AllNeeds, test_time: Instant | None) -> list[Statement]:
    """The statements that count the reservations of a space."""
    return [(queries.SPACE_USE, (*space, test_time)) for space in needs.spaces()]


def last_versions(subjects: dict[tuple[str, str], Key]) -> Statement:
    """The statement that reads the last version of each subject from the log."""
    return queries.LAST_VERSIONS, (document([*subjects]),)


def _lock_by_key(row_type: type[Row], keys: list[tuple[str, str]]) -> list[Statement]:
    """The statements that lock and read these rows: one for each account, unless accounts are many."""
    ids: dict[str, list[str]] = {}
    for account, row_id in keys:
        ids.setdefault(account, []).append(row_id)
    if len(ids) > 1 and len(keys) < ROWS_PER_ACCOUNT * len(ids):
        return [(queries.ROW_BY_KEY[row_type.table], (document(keys),))]
    return [(queries.ROW_BY_ID[row_type.table], (account, text_array(ids[account]))) for account in sorted(ids)]
