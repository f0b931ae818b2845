"""The statements that only SQLite understands; `postgres/queries.py` has the same names in the same order.

A batch takes few statements, however many rows it has: SQLite then works in long calls without Python's global lock,
while requests are served. With one statement for each row it would release and take that lock at every row.
Measured per row: loading as one JSON document 5 µs (one SELECT for each row 18), inserting lease and event with many
rows in VALUES 12 µs (out of JSON 50).
"""

from __future__ import annotations

from functools import cache

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.reservation.row import Reservation
from holdfast.core.row import Row
from holdfast.core.task import Task
from holdfast.store.changes import Answer
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sql.column_groups import ColumnNames
from holdfast.store.sql.page_queries import columns


def _values(row: type[Row], column: str = "row.{0}") -> str:
    """A row as a JSON array of its columns; SQLite stores booleans as numbers."""
    boolean = "json(iif(row.{0}, 'true', 'false'))"
    values = ((boolean if name in row.booleans else column).format(name) for name in row.__struct_fields__)
    return f"json_array({', '.join(values)})"


def json_rows(row: type[Row], column: str = "row.{0}") -> str:
    """The rows found as one JSON array. As a blob: text that is not UTF-8 would make all of it unreadable."""
    return f"CAST(json_group_array({_values(row, column)}) AS blob)"


@cache
def with_blobs(row: type[Row], query: str) -> str:
    """A query of rows that also finds those with a blob, each as an array with its hexadecimal digits.

    json_array() refuses blobs. No column has one unless it is damaged, and looking for them makes the query 12 to 40 %
    slower, so only a query that failed is executed again in this form.
    """
    value = "iif(typeof(row.{0}) = 'blob', json_array(hex(row.{0})), row.{0})"
    return query.replace(json_rows(row), json_rows(row, value))


def _placeholders(names: ColumnNames, count: int) -> str:
    """Placeholders for that many records."""
    record = f"({', '.join('?' * len(names))})"
    return ", ".join([record] * count)


def _assignments(names: ColumnNames) -> str:
    """SET clauses: each column from the same position in VALUES; the first two are the key."""
    return ", ".join(f"{name} = new.column{position}" for position, name in enumerate(names[2:], 3))


# -- loading -----------------------------------------------------------------------------------------------------

ROW_BY_KEY = {
    row.table: f"SELECT {json_rows(row)} FROM json_each(?) AS wanted CROSS JOIN {row.table} AS row"
    " ON row.account = wanted.value ->> 0 AND row.id = wanted.value ->> 1"
    for row in ROW_TYPES
}
LEASES_OF_SESSION = (
    f"SELECT {json_rows(Lease)} FROM json_each(?) AS wanted CROSS JOIN leases AS row"
    " ON row.account = wanted.value ->> 0 AND row.session = wanted.value ->> 1"
    " AND row.ephemeral AND row.proof IS NOT NULL"
)
RESERVATIONS_OF_SESSION = (
    f"SELECT {json_rows(Reservation)} FROM json_each(?) AS wanted CROSS JOIN reservations AS row"
    " ON row.account = wanted.value ->> 0 AND row.session = wanted.value ->> 1 AND row.proof IS NOT NULL"
)
RESERVATIONS_UNDER = (
    f"SELECT {json_rows(Reservation)} FROM (SELECT paths.account, paths.id FROM json_each(?) AS wanted"
    " CROSS JOIN reserved_paths AS paths ON paths.account = wanted.value ->> 0 AND paths.space = wanted.value ->> 1"
    " AND paths.prefix = wanted.value ->> 2 UNION SELECT paths.account, paths.id FROM json_each(?) AS wanted"
    " CROSS JOIN reserved_paths AS paths ON paths.account = wanted.value ->> 0 AND paths.space = wanted.value ->> 1"
    " AND paths.prefix >= wanted.value ->> 2 AND (wanted.value ->> 3 IS NULL OR paths.prefix < wanted.value ->> 3))"
    " AS found CROSS JOIN reservations AS row ON row.account = found.account AND row.id = found.id"
)
TASKS_OF_SESSION = (
    f"SELECT {json_rows(Task)} FROM json_each(?) AS wanted CROSS JOIN tasks AS row"
    " ON row.account = wanted.value ->> 0 AND row.session = wanted.value ->> 1"
)
TASKS_UNDER_KEY = (
    f"SELECT {json_rows(Task)} FROM json_each(?) AS wanted CROSS JOIN tasks AS row"
    " ON row.account = wanted.value ->> 0 AND row.unique_key = wanted.value ->> 1"
    " AND row.unique_key IS NOT NULL AND row.state IN ('pending', 'claimed')"
)
KEYS_OF_TASKS = (
    "SELECT row.account, row.unique_key FROM json_each(?) AS wanted CROSS JOIN tasks AS row"
    " ON row.account = wanted.value ->> 0 AND row.id = wanted.value ->> 1 WHERE row.unique_key IS NOT NULL"
)
LAST_VERSIONS = (
    "SELECT wanted.value ->> 0, wanted.value ->> 1, max(version) FROM json_each(?) AS wanted CROSS JOIN events"
    " ON events.account = wanted.value ->> 0 AND events.subject = wanted.value ->> 1 GROUP BY 1, 2"
)
LIVE_LOCKS = "SELECT count(*) FROM leases WHERE account = ? AND principal = ? AND kind = 'lock' AND expires_at > ?"
LIVE_ELECTIONS = (
    "SELECT count(*) FROM leases WHERE account = ? AND id >= '__election/' AND id < '__election0'"
    " AND kind = 'election' AND proof IS NOT NULL AND expires_at > ?"
)
SPACE_USE = (
    "SELECT (SELECT count(*) FROM reservations WHERE account = ?1 AND space = ?2 AND proof IS NOT NULL"
    " AND expires_at > ?3), (SELECT count(*) FROM reservations WHERE account = ?1 AND space = ?2"
    " AND waits_until IS NOT NULL AND waits_until > ?3)"
)
WEBHOOKS = "SELECT count(*) FROM webhooks WHERE account = ? AND family = ? AND (? = '' OR principal = ?)"
ANSWER = f"SELECT {columns(Answer)} FROM answers WHERE account = ? AND key = ?"
STATE = "SELECT token, now, boot_id, boot_at FROM state"

# -- saving ------------------------------------------------------------------------------------------------------
# OR ROLLBACK: a batch that fails is rolled back as a whole. Otherwise SQLite copies each page that a statement is going
# to change, so that it could undo that statement alone; from 64 KB on into a temporary file.


@cache
def insert_row(row: type[Row], names: ColumnNames, count: int) -> str:
    """INSERT_ROW for that many rows in one statement."""
    return f"INSERT OR ROLLBACK INTO {row.table} ({', '.join(names)}) VALUES {_placeholders(names, count)}"


@cache
def update_row(row: type[Row], names: ColumnNames, count: int) -> str:
    """UPDATE_ROW for that many rows in one statement."""
    if count == 1:
        assignments = ", ".join(f"{name} = ?{position}" for position, name in enumerate(names[2:], 3))
        return f"UPDATE OR ROLLBACK {row.table} SET {assignments} WHERE account = ?1 AND id = ?2"
    return (
        f"UPDATE OR ROLLBACK {row.table} SET {_assignments(names)} FROM (VALUES {_placeholders(names, count)}) AS new"
        f" WHERE {row.table}.account = new.column1 AND {row.table}.id = new.column2"
    )


DELETE_ROW = {
    row.table: f"DELETE FROM {row.table} WHERE (account, id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
    for row in ROW_TYPES
}


@cache
def insert_answer(count: int) -> str:
    """INSERT_ANSWER for that many answers in one statement."""
    return (
        f"INSERT OR ROLLBACK INTO answers ({columns(Answer)}) VALUES {_placeholders(Answer.__struct_fields__, count)}"
    )


@cache
def insert_event(count: int) -> str:
    """INSERT_EVENT for that many events in one statement."""
    return f"INSERT OR ROLLBACK INTO events ({columns(Event)}) VALUES {_placeholders(Event.__struct_fields__, count)}"


ADD_PATHS = (
    "INSERT OR ROLLBACK INTO reserved_paths (account, space, prefix, id)"
    " SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)"
)
REMOVE_PATHS = (
    "DELETE FROM reserved_paths WHERE (account, space, prefix, id) IN"
    " (SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?))"
)
COUNT_TASKS = (
    "INSERT INTO task_counts (account, type, state, total)"
    " SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true"
    " ON CONFLICT (account, type, state) DO UPDATE SET total = total + excluded.total"
)
COUNT_CREATED = (
    "INSERT INTO usage (account, cycle, created)"
    " SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE true ON CONFLICT (account) DO UPDATE"
    " SET created = excluded.created + CASE WHEN excluded.cycle > cycle THEN 0 ELSE created END,"
    " cycle = max(cycle, excluded.cycle)"
)
COUNT_EVENTS = (
    "INSERT INTO event_counters (account, seq) VALUES (?1, ?2)"
    " ON CONFLICT (account) DO UPDATE SET seq = seq + ?2 RETURNING seq"
)
SAVE_STATE = "UPDATE state SET token = ?, now = ?, boot_id = ?, boot_at = ?"

# Browser sessions would stay valid, and budgets stay used up, until the time at which they were made comes again.
SET_CLOCK = (
    "DELETE FROM budgets WHERE started_at > ?",
    "DELETE FROM badges WHERE seen_at > ?",
    "UPDATE key_uses SET used_at = ? WHERE used_at > ?",
    "UPDATE deliveries SET next_at = ?, claimed_until = NULL WHERE state = 'pending' AND next_at > ?",
    "UPDATE state SET alive_at = ? WHERE alive_at > ?",
)

# -- reading and housekeeping ------------------------------------------------------------------------------------

TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
HAS_MINIMUM_SCHEMA = "SELECT 1 FROM pragma_table_info('state') WHERE name = 'minimum_schema'"
SKIP_LOCKED = ""
"""There is one writer at a time."""


def first_rows(table: str, condition: str, key: str = "rowid") -> str:
    """A condition for the first rows of a table that meet another condition; the last argument is how many.

    `key` is the primary key of a table without row ids.
    """
    return f"({key}) IN (SELECT {key} FROM {table} WHERE {condition} LIMIT ?)"
