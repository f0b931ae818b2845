"""The statements that save a batch on PostgreSQL: rows first, then answers, then the counters."""

from __future__ import annotations

from holdfast.core.event import Event
from holdfast.core.row import Row
from holdfast.store.changes import Answer, Changes
from holdfast.store.postgres import dependency_queries, queries
from holdfast.store.postgres.parameters import document, recordset, text_array
from holdfast.store.postgres.pipeline import Statement
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sql.column_groups import ColumnNames, column_values, group_by_columns

_answer_values = column_values(Answer.__struct_fields__)
_SEQ = Event.__struct_fields__.index("seq")
_before_seq = column_values(Event.__struct_fields__[:_SEQ])
_after_seq = column_values(("account", *Event.__struct_fields__[_SEQ + 1 :]))
"""The account, which the number depends on, and the columns that follow `seq`."""


def row_statements(changes: Changes) -> list[Statement]:
    """The statements that write rows."""
    statements: list[Statement] = []
    for row_type in ROW_TYPES:
        if updated := changes.updates.get(row_type.table):
            for names, rows in group_by_columns(updated, changes.touched):
                statements.append((queries.update_row(row_type, names), (_loaded(names, rows, changes),)))
        if inserted := changes.inserts.get(row_type.table):
            for names, rows in group_by_columns(inserted, changes.touched):
                statements.append((queries.insert_row(row_type, names), (_new(names, rows),)))
        if deleted := changes.deletes.get(row_type.table):
            keys = _loaded(("account", "id"), deleted, changes)
            statements.append((queries.DELETE_ROW[row_type.table], (keys,)))
    for statement, entries in (
        (dependency_queries.REMOVE_DEPENDENCIES, changes.dependencies_removed),
        (dependency_queries.ADD_DEPENDENCIES, changes.dependencies_added),
        (queries.REMOVE_PATHS, changes.paths_removed),
        (queries.ADD_PATHS, changes.paths_added),
    ):
        if entries:
            statements.append((statement, (recordset(entries),)))
    return statements


def answer_statements(changes: Changes) -> list[Statement]:
    """The statement that remembers answers, if there are any. A batch may write nothing else."""
    if not changes.answers:
        return []
    return [(queries.INSERT_ANSWER, (recordset([*map(_answer_values, changes.answers)]),))]


def counter_statements(changes: Changes) -> list[Statement]:
    """The statements that count, and write the events. For these, batches of one account wait for each other."""
    statements: list[Statement] = []
    if changes.created:
        created = [(account, used.cycle, used.created) for account, used in changes.created.items()]
        statements.append((queries.COUNT_CREATED, (document(created),)))
    if changes.counts:
        steps = [(*key, step) for key, step in changes.counts.items()]
        statements.append((queries.COUNT_TASKS, (recordset(steps),)))
    if changes.events:
        statements.append(_insert_events(changes.events))
    return statements


def _new(names: ColumnNames, rows: list[Row]) -> bytes:
    return recordset([*map(column_values(names), rows)])


def _loaded(names: ColumnNames, rows: list[Row], changes: Changes) -> bytes:
    """Rows that were loaded, each with the version that it had."""
    values, loaded = column_values(names), changes.loaded
    return recordset([(*values(row), loaded[row.key].version) for row in rows])


def _insert_events(events: list[Event]) -> Statement:
    """The statement that writes events. `seq` is how many of their account follow; counters are moved in order."""
    totals: dict[str, int] = {}
    for event in events:
        totals[event.account] = totals.get(event.account, 0) + 1
    left = dict(totals)
    accounts = sorted(totals)
    several = len(accounts) > 1
    places = {account: (place,) if several else () for place, account in enumerate(accounts, 1)}
    records = []
    for event in events:
        account, *others = _after_seq(event)
        left[account] -= 1
        records.append((*_before_seq(event), left[account], *others, *places[account]))
    if not several:
        return queries.INSERT_EVENT, (recordset(records), accounts[0], len(events))
    counts = "{" + ",".join(str(totals[account]) for account in accounts) + "}"
    return queries.INSERT_EVENTS, (recordset(records), text_array(accounts), counts)
