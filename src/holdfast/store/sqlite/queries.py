"""Every statement we say to SQLite. `postgres/queries.py` has the same names in the same order.

A batch goes through few statements, however many rows it has: SQLite then works in long calls, without
Python's lock, while the doors go on. A statement a row would give the lock up and fight for it at every row.
Measured per row: loading as one JSON document 5 µs (a SELECT a row 18), inserting lease and event with many
rows in VALUES 12 µs (out of JSON 50).
"""

from __future__ import annotations

from functools import cache

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.row import Row
from holdfast.core.session import Session
from holdfast.store.view import ROW_TYPES, Answer


def _columns(record: type[Row | Event | Answer]) -> str:
    return ", ".join(record.__struct_fields__)


def _object(row: type[Row]) -> str:
    """A row as a JSON object; SQLite has no booleans of its own."""
    shown = (
        f"'{name}', json(iif(row.{name}, 'true', 'false'))" if name in row.booleans else f"'{name}', row.{name}"
        for name in row.__struct_fields__
    )
    return f"json_object({', '.join(shown)})"


def _rows(record: type[Row | Event | Answer], count: int) -> str:
    """Places for that many records."""
    one = f"({', '.join('?' * len(record.__struct_fields__))})"
    return ", ".join([one] * count)


def _settings(row: type[Row]) -> str:
    """Each column from the one at its place in VALUES; the first two are the key."""
    return ", ".join(f"{name} = new.column{place}" for place, name in enumerate(row.__struct_fields__[2:], 3))


# -- loading -----------------------------------------------------------------------------------------------------

ROW_BY_KEY = {
    row.table: f"SELECT json_group_array({_object(row)}) FROM json_each(?) AS wanted CROSS JOIN {row.table} AS row"
    " ON row.account = wanted.value ->> 0 AND row.id = wanted.value ->> 1"
    for row in ROW_TYPES
}
LEASES_OF_SESSION = (
    f"SELECT json_group_array({_object(Lease)}) FROM json_each(?) AS wanted CROSS JOIN leases AS row"
    " ON row.account = wanted.value ->> 0 AND row.session = wanted.value ->> 1"
    " AND row.ephemeral AND row.proof IS NOT NULL"
)
LIVE_LOCKS = "SELECT count(*) FROM leases WHERE account = ? AND principal = ? AND kind = 'lock' AND expires_at > ?"
LIVE_ROOMS = (
    "SELECT count(*) FROM leases WHERE account = ? AND id >= '__election/' AND id < '__election0'"
    " AND kind = 'election' AND expires_at > ?"
)
ANSWER = f"SELECT {_columns(Answer)} FROM answers WHERE account = ? AND key = ?"
STATE = "SELECT token, now, boot_id, boot_at FROM state"

# -- saving ------------------------------------------------------------------------------------------------------


@cache
def insert_row(row: type[Row], count: int) -> str:
    """INSERT_ROW for that many rows in one statement."""
    return f"INSERT INTO {row.table} ({_columns(row)}) VALUES {_rows(row, count)}"


@cache
def update_row(row: type[Row], count: int) -> str:
    """UPDATE_ROW for that many rows in one statement."""
    return (
        f"UPDATE {row.table} SET {_settings(row)} FROM (VALUES {_rows(row, count)}) AS new"
        f" WHERE {row.table}.account = new.column1 AND {row.table}.id = new.column2"
    )


@cache
def insert_answer(count: int) -> str:
    """INSERT_ANSWER for that many answers in one statement."""
    return f"INSERT INTO answers ({_columns(Answer)}) VALUES {_rows(Answer, count)}"


@cache
def insert_event(count: int) -> str:
    """INSERT_EVENT for that many events in one statement."""
    return f"INSERT INTO events ({_columns(Event)}) VALUES {_rows(Event, count)}"


COUNT_EVENTS = (
    "INSERT INTO event_counters (account, seq) VALUES (?1, ?2)"
    " ON CONFLICT (account) DO UPDATE SET seq = seq + ?2 RETURNING seq"
)
SAVE_STATE = "UPDATE state SET token = ?, now = ?, boot_id = ?, boot_at = ?"

# -- looking -----------------------------------------------------------------------------------------------------

LIST_LEASES = (
    f"SELECT {_columns(Lease)} FROM leases WHERE account = ?1 AND id > ?2 AND id >= ?3 AND (?4 IS NULL OR id < ?4)"
    " AND expires_at > ?5 ORDER BY id LIMIT ?6"
)
COUNT_OF_SESSION = "SELECT count(*) FROM leases WHERE account = ? AND session = ?"
COUNT_LIVE = "SELECT count(*) FROM leases WHERE account = ? AND expires_at > ?"
COUNT_PRINCIPALS = "SELECT count(*) FROM principals WHERE account = ? AND revoked_at IS NULL"
PRINCIPAL_BY_KEY = f"SELECT {_columns(Principal)} FROM principals WHERE key_hash = ? AND revoked_at IS NULL"
LIST_PRINCIPALS = f"SELECT {_columns(Principal)} FROM principals WHERE account = ? ORDER BY id"
DUE = (
    "SELECT 'leases', account, id, expires_at FROM leases WHERE expires_at IS NOT NULL AND expires_at <= ?1"
    " UNION ALL SELECT 'sessions', account, id, expires_at FROM sessions WHERE ended_at IS NULL AND expires_at <= ?1"
    " ORDER BY 4, 1, 2, 3 LIMIT ?2"
)
NEXT_DEADLINE = (
    "SELECT min(at) FROM (SELECT min(expires_at) AS at FROM leases WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(expires_at) FROM sessions WHERE ended_at IS NULL)"
)
JOBS_LIVE_AT = "SELECT account, id FROM leases WHERE kind = 'job' AND expires_at > ? ORDER BY account, id"
EVENTS = f"SELECT {_columns(Event)} FROM events WHERE account = ? AND seq > ? ORDER BY seq LIMIT ?"
HISTORY = f"SELECT {_columns(Event)} FROM events WHERE account = ? AND subject = ? ORDER BY version"

# -- keeping house -----------------------------------------------------------------------------------------------

BEAT = "UPDATE state SET alive_at = ?, clean = ?"
LAST_BEAT = "SELECT alive_at FROM state WHERE NOT clean"
FORGET_ANSWERS = "DELETE FROM answers WHERE answered_at < ?"

LEASE_BY_KEY = f"SELECT {_columns(Lease)} FROM leases WHERE account = ? AND id = ?"
SESSION_BY_KEY = f"SELECT {_columns(Session)} FROM sessions WHERE account = ? AND id = ?"
