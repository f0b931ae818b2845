"""The statements that lock and load what a batch needs on PostgreSQL, in the one order of locks (`transaction.py`)."""

from __future__ import annotations

from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Instant, Key, Row
from holdfast.core.task import Task
from holdfast.core.webhooks.webhook import Webhook
from holdfast.store.needs import AllNeeds
from holdfast.store.postgres import queries
from holdfast.store.postgres.documents import document, text_array
from holdfast.store.postgres.wire import Statement
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
        elif keys:
            statements += [(row_type, statement) for statement in _lock_by_key(row_type, keys)]
    # These never wait, so they may come last.
    return statements + ready_statements(needs.ready, test_time)


def ready_statements(queues: list[tuple[str, str, int]], test_time: Instant | None) -> list[RowStatement]:
    """The statements that lock and read the first claimable tasks of these queues."""
    statements: list[RowStatement] = []
    typed = [queue for queue in queues if queue[1]]
    if typed:
        statements.append((Task, (queries.READY, (document(typed),))))
        statements.append((Task, (queries.DUE_TASKS, (document(typed), test_time))))
    untyped = [queue for queue in queues if not queue[1]]
    if untyped:
        statements.append((Task, (queries.READY_ANY, (document(untyped),))))
        statements.append((Task, (queries.DUE_TASKS_ANY, (document(untyped), test_time))))
    return statements


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
