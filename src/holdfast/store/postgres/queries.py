"""Every statement we say to PostgreSQL. `sqlite/queries.py` has the same names in the same order.

A batch travels as one JSON document per statement: encoding it costs less than arrays of parameters. Loading and
saving go straight over libpq (`wire.py`), whose places are $1, $2; looking goes through psycopg, whose places are %s.
"""

from __future__ import annotations

from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.row import Row
from holdfast.core.session import Session
from holdfast.store.view import ROW_TYPES, Answer


def _columns(record: type[Row | Event | Answer], alias: str = "") -> str:
    return ", ".join(f"{alias}{name}" for name in record.__struct_fields__)


_KEYS = "SELECT value ->> 0, value ->> 1 FROM json_array_elements($1::json)"


def _and_now(select: str) -> str:
    """The rows as one JSON document, and the clock read after the last of them was locked."""
    return f"WITH found AS ({select}) SELECT coalesce(json_agg(found), '[]')::text, holdfast_now() FROM found"


# -- loading -----------------------------------------------------------------------------------------------------

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
ROW_BY_KEY = {
    row.table: _and_now(
        f"SELECT {_columns(row)} FROM {row.table} WHERE (account, id) IN ({_KEYS}) ORDER BY account, id FOR UPDATE"
    )
    for row in ROW_TYPES
}
LEASES_OF_SESSION = _and_now(
    f"SELECT {_columns(Lease)} FROM leases WHERE (account, id) IN ({_KEYS} UNION"
    f" SELECT account, id FROM leases WHERE (account, session) IN ({_KEYS.replace('$1', '$2')})"
    " AND ephemeral AND proof IS NOT NULL) ORDER BY account, id FOR UPDATE"
)
# Read, not locked: a lease's session is looked at after the lease is locked, and whoever ends that session must
# wait for the lease.
SESSIONS_OF_LEASES = _and_now(f"SELECT {_columns(Session)} FROM sessions WHERE (account, id) IN ({_KEYS})")
# Counting alone would let two transactions count the same free place; whoever counts a principal's locks goes first.
COUNT_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
LIVE_LOCKS = (
    "SELECT count(*) FROM leases WHERE account = $1 AND principal = $2 AND kind = 'lock'"
    " AND expires_at > (SELECT coalesce($3::bigint, holdfast_now()))"
)
LIVE_ROOMS = (
    "SELECT count(*) FROM leases WHERE account = $1 AND id >= '__election/' AND id < '__election0'"
    " AND kind = 'election' AND expires_at > (SELECT coalesce($2::bigint, holdfast_now()))"
)
ANSWER = _and_now(f"SELECT {_columns(Answer)} FROM answers WHERE (account, key) IN ({_KEYS})")
NOW_OR = "SELECT coalesce($1::bigint, holdfast_now())"
DRAW = "SELECT nextval('fencing_tokens') FROM generate_series(1, $1::int)"
ROLLBACK = "ROLLBACK"

# -- saving ------------------------------------------------------------------------------------------------------

INSERT_ROW = {
    row.table: f"WITH done AS (INSERT INTO {row.table} ({_columns(row)})"
    f" SELECT {_columns(row)} FROM json_populate_recordset(NULL::{row.table}, $1::json)"
    " ON CONFLICT DO NOTHING RETURNING 1) SELECT holdfast_expect((SELECT count(*) FROM done), $2::bigint)"
    for row in ROW_TYPES
}
UPDATE_ROW = {
    row.table: f"WITH done AS (UPDATE {row.table} AS old"
    f" SET {', '.join(f'{name} = new.{name}' for name in row.__struct_fields__[2:])}"
    f" FROM ROWS FROM (json_populate_recordset(NULL::{row.table}, $1::json), unnest($2::bigint[])) AS new"
    " WHERE old.account = new.account AND old.id = new.id AND old.version = new.unnest RETURNING 1)"
    " SELECT holdfast_expect((SELECT count(*) FROM done), $3::bigint)"
    for row in ROW_TYPES
}
INSERT_ANSWER = (
    f"WITH done AS (INSERT INTO answers ({_columns(Answer)})"
    f" SELECT {_columns(Answer)} FROM json_populate_recordset(NULL::answers, $1::json)"
    " ON CONFLICT DO NOTHING RETURNING 1) SELECT holdfast_expect((SELECT count(*) FROM done), $2::bigint)"
)
# The counter row is locked last and held only over COMMIT: readers by cursor then see every event
# once, in order, and writers meet here for the shortest time. `seq` comes in as a place within the batch.
INSERT_EVENT = (
    "WITH new AS (SELECT * FROM json_populate_recordset(NULL::events, $1::json)),"
    " totals AS (SELECT account, count(*) AS total FROM new GROUP BY account ORDER BY account),"
    " counters AS (INSERT INTO event_counters AS counter (account, seq) SELECT account, total FROM totals"
    " ON CONFLICT (account) DO UPDATE SET seq = counter.seq + excluded.seq RETURNING account, seq)"
    f" INSERT INTO events ({_columns(Event)})"
    f" SELECT {_columns(Event, 'new.').replace('new.seq', 'counters.seq - totals.total + new.seq')}"
    " FROM new JOIN counters USING (account) JOIN totals USING (account)"
)

COMMIT = "COMMIT"

# -- looking -----------------------------------------------------------------------------------------------------

LIST_LEASES = (
    f"SELECT {_columns(Lease)} FROM leases WHERE account = %s AND id > %s AND id >= %s"
    " AND (%s::text IS NULL OR id < %s) AND expires_at > %s ORDER BY id LIMIT %s"
)
COUNT_OF_SESSION = "SELECT count(*) FROM leases WHERE account = %s AND session = %s"
COUNT_LIVE = "SELECT count(*) FROM leases WHERE account = %s AND expires_at > %s"
COUNT_PRINCIPALS = "SELECT count(*) FROM principals WHERE account = %s AND revoked_at IS NULL"
PRINCIPAL_BY_KEY = f"SELECT {_columns(Principal)} FROM principals WHERE key_hash = %s AND revoked_at IS NULL"
LIST_PRINCIPALS = f"SELECT {_columns(Principal)} FROM principals WHERE account = %s ORDER BY id"
DUE = (
    "SELECT 'leases', account, id, expires_at FROM leases WHERE expires_at IS NOT NULL AND expires_at <= %s"
    " UNION ALL SELECT 'sessions', account, id, expires_at FROM sessions WHERE ended_at IS NULL AND expires_at <= %s"
    " ORDER BY 4, 1, 2, 3 LIMIT %s"
)
NEXT_DEADLINE = (
    "SELECT min(at) FROM (SELECT min(expires_at) AS at FROM leases WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(expires_at) FROM sessions WHERE ended_at IS NULL) AS deadlines"
)
JOBS_LIVE_AT = "SELECT account, id FROM leases WHERE kind = 'job' AND expires_at > %s ORDER BY account, id"
NOW = "SELECT coalesce(%s::bigint, holdfast_now())"
EVENTS = f"SELECT {_columns(Event)} FROM events WHERE account = %s AND seq > %s ORDER BY seq LIMIT %s"
HISTORY = f"SELECT {_columns(Event)} FROM events WHERE account = %s AND subject = %s ORDER BY version"
NEXT_TOKEN = "SELECT last_value + is_called::int FROM fencing_tokens"

# -- keeping house -----------------------------------------------------------------------------------------------

BEAT = "UPDATE state SET alive_at = coalesce(%s::bigint, holdfast_now()), clean = %s"
LAST_BEAT = "SELECT alive_at, coalesce(%s::bigint, holdfast_now()) FROM state WHERE NOT clean"
FORGET_ANSWERS = "DELETE FROM answers WHERE answered_at < %s"
SIZE = "SELECT pg_database_size(current_database())"
LISTEN = "LISTEN holdfast"
NOTIFY = "NOTIFY holdfast"

LEASE_BY_KEY = f"SELECT {_columns(Lease)} FROM leases WHERE account = %s AND id = %s"
SESSION_BY_KEY = f"SELECT {_columns(Session)} FROM sessions WHERE account = %s AND id = %s"
