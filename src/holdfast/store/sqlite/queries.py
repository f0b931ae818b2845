"""Every statement we say to SQLite. `postgres/queries.py` has the same names in the same order."""

from __future__ import annotations

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.row import Row
from holdfast.core.session import Session
from holdfast.store.view import ROW_TYPES, Answer


def _columns(record: type[Row | Event | Answer]) -> str:
    return ", ".join(record.__struct_fields__)


def _places(record: type[Row | Event | Answer]) -> str:
    return ", ".join("?" * len(record.__struct_fields__))


def _settings(row: type[Row]) -> str:
    return ", ".join(f"{name} = ?{place}" for place, name in enumerate(row.__struct_fields__[2:], 3))


# -- loading -----------------------------------------------------------------------------------------------------

ROW_BY_KEY = {row.table: f"SELECT {_columns(row)} FROM {row.table} WHERE account = ? AND id = ?" for row in ROW_TYPES}
LEASES_OF_SESSION = (
    f"SELECT {_columns(Lease)} FROM leases WHERE account = ? AND session = ? AND ephemeral AND proof IS NOT NULL"
)
LIVE_LOCKS = "SELECT count(*) FROM leases WHERE account = ? AND principal = ? AND kind = 'lock' AND expires_at > ?"
LIVE_ROOMS = (
    "SELECT count(*) FROM leases WHERE account = ? AND id >= '__election/' AND id < '__election0'"
    " AND kind = 'election' AND expires_at > ?"
)
ANSWER = f"SELECT {_columns(Answer)} FROM answers WHERE account = ? AND key = ?"
STATE = "SELECT token, now, boot_id, boot_at FROM state"

# -- saving ------------------------------------------------------------------------------------------------------

INSERT_ROW = {row.table: f"INSERT INTO {row.table} ({_columns(row)}) VALUES ({_places(row)})" for row in ROW_TYPES}
UPDATE_ROW = {row.table: f"UPDATE {row.table} SET {_settings(row)} WHERE account = ?1 AND id = ?2" for row in ROW_TYPES}
INSERT_ANSWER = f"INSERT INTO answers ({_columns(Answer)}) VALUES ({_places(Answer)})"
COUNT_EVENTS = (
    "INSERT INTO event_counters (account, seq) VALUES (?1, ?2)"
    " ON CONFLICT (account) DO UPDATE SET seq = seq + ?2 RETURNING seq"
)
INSERT_EVENT = f"INSERT INTO events ({_columns(Event)}) VALUES ({_places(Event)})"
SAVE_STATE = "UPDATE state SET token = ?, now = ?, boot_id = ?, boot_at = ?"

# -- looking -----------------------------------------------------------------------------------------------------

LIST_LEASES = (
    f"SELECT {_columns(Lease)} FROM leases WHERE account = ?1 AND id > ?2 AND id >= ?3 AND (?4 IS NULL OR id < ?4)"
    " AND expires_at > ?5 ORDER BY id LIMIT ?6"
)
COUNT_OF_SESSION = "SELECT count(*) FROM leases WHERE account = ? AND session = ?"
COUNT_LIVE = "SELECT count(*) FROM leases WHERE account = ? AND expires_at > ?"
COUNT_PRINCIPALS = "SELECT count(*) FROM principals WHERE account = ? AND revoked_at IS NULL"
PRINCIPAL_BY_KEY = f"SELECT {_columns(ROW_TYPES[2])} FROM principals WHERE key_hash = ? AND revoked_at IS NULL"
LIST_PRINCIPALS = f"SELECT {_columns(ROW_TYPES[2])} FROM principals WHERE account = ? ORDER BY id"
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

SESSION_BY_KEY = ROW_BY_KEY[Session.table]
LEASE_BY_KEY = ROW_BY_KEY[Lease.table]
