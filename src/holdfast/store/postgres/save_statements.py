"""The statements that save a batch on PostgreSQL: rows first, then answers, then the counters."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.core.row import Row
from holdfast.store.changes import Changes
from holdfast.store.postgres import queries
from holdfast.store.postgres.wire import Statement
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sql.column_groups import ColumnNames, column_values, group_by_columns

_encode = msgspec.json.Encoder().encode


def row_statements(changes: Changes) -> list[Statement]:
    """The statements that write rows."""
    statements: list[Statement] = []
    for row_type in ROW_TYPES:
        for names, rows in group_by_columns(changes.updates.get(row_type.table, []), changes.touched):
            statements.append((queries.update_row(row_type, names), (_rows(names, rows, changes), len(rows))))
        for names, rows in group_by_columns(changes.inserts.get(row_type.table, []), changes.touched):
            statements.append((queries.insert_row(row_type, names), (_rows(names, rows), len(rows))))
        if deleted := changes.deletes.get(row_type.table):
            keys = _rows(("account", "id"), deleted, changes)
            statements.append((queries.DELETE_ROW[row_type.table], (keys, len(deleted))))
    return statements


def answer_statements(changes: Changes) -> list[Statement]:
    """The statement that remembers answers, if there are any. A batch may write nothing else."""
    if not changes.answers:
        return []
    return [(queries.INSERT_ANSWER, (document(changes.answers), len(changes.answers)))]


def counter_statements(changes: Changes) -> list[Statement]:
    """The statements that count, and write the events. For these, batches of one account wait for each other."""
    statements: list[Statement] = []
    if changes.created:
        created = [(account, used.cycle, used.created) for account, used in changes.created.items()]
        statements.append((queries.COUNT_CREATED, (document(created),)))
    if changes.counts:
        steps = [(*key, step) for key, step in changes.counts.items()]
        statements.append((queries.COUNT_TASKS, (document(steps),)))
    if changes.events:
        statements.append((queries.INSERT_EVENT, (document(_number_events(changes.events)),)))
    return statements


def _rows(names: ColumnNames, rows: list[Row], changes: Changes | None = None) -> str:
    """Rows as JSON objects with these columns, and with the versions that were loaded if `changes` is given."""
    read_columns = column_values(names)
    documents: list[dict[str, Any]] = [dict(zip(names, read_columns(row), strict=True)) for row in rows]
    if changes is not None:
        for row, columns in zip(rows, documents, strict=True):
            columns["was"] = changes.loaded[row.key].version
    return document(documents)


def _number_events(events: list[Event]) -> list[Event]:
    """Each event with its position among those of its account in this batch."""
    positions: dict[str, int] = {}
    numbered = []
    for event in events:
        positions[event.account] = position = positions.get(event.account, 0) + 1
        numbered.append(replace(event, seq=position))
    return numbered


def document(records: list[Any]) -> str:
    """Records as one JSON document, which is the parameter of a statement."""
    return _encode(records).decode()
