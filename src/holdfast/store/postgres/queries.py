"""Every statement we say to PostgreSQL. `sqlite/queries.py` has the same names in the same order.

A batch travels as one JSON document per statement: encoding it costs less than arrays of parameters. Loading and
saving go straight over libpq (`wire.py`), whose places are $1, $2; looking goes through psycopg, whose places are %s.
"""

from __future__ import annotations

from functools import cache

from holdfast.core.browser_session import IDLE_TIMEOUT, LINK_LIFETIME, MAX_LIFETIME, MAX_PER_KEY, BrowserSession
from holdfast.core.event import RENEWALS, Event
from holdfast.core.lease import Lease
from holdfast.core.principal import Principal
from holdfast.core.row import Row
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.store.changes import Answer
from holdfast.store.column_groups import Shape, sql_types
from holdfast.store.rows import ROW_TYPES


def _columns(record: type[Row | Event | Answer | BrowserSession], alias: str = "") -> str:
    return ", ".join(f"{alias}{name}" for name in record.__struct_fields__)


def _keys(place: int) -> str:
    """Pairs of account and something, out of a JSON document."""
    return f"SELECT value ->> 0, value ->> 1 FROM json_array_elements(${place}::json)"


_KEYS = _keys(1)


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
    f" SELECT account, id FROM leases WHERE (account, session) IN ({_keys(2)})"
    " AND ephemeral AND proof IS NOT NULL) ORDER BY account, id FOR UPDATE"
)
TASKS_OF_SESSION = _and_now(
    f"SELECT {_columns(Task)} FROM tasks WHERE (account, id) IN ({_KEYS}"
    f" UNION SELECT account, id FROM tasks WHERE (account, session) IN ({_keys(2)})"
    f" UNION SELECT account, id FROM tasks WHERE (account, unique_key) IN ({_keys(3)} UNION"
    f" SELECT account, unique_key FROM tasks WHERE (account, id) IN ({_keys(4)}) AND unique_key IS NOT NULL)"
    " AND unique_key IS NOT NULL AND state IN ('pending', 'claimed')) ORDER BY account, id FOR UPDATE"
)
# The first tasks of each queue, past those that other servers have locked.
_QUEUES = (
    "queues AS (SELECT value ->> 0 AS account, value ->> 1 AS type, (value ->> 2)::int AS most"
    " FROM json_array_elements($1::json))"
)


def _first_of(where: str, priority: str = "priority DESC") -> str:
    """The first tasks of each of the queues in $1 that are as they should be."""
    return (
        f"WITH {_QUEUES}, found AS (SELECT task.* FROM queues CROSS JOIN LATERAL (SELECT {_columns(Task)} FROM tasks"
        f" WHERE account = queues.account AND {where}"
        f" ORDER BY {priority}, place, id LIMIT queues.most FOR UPDATE SKIP LOCKED) AS task)"
        " SELECT coalesce(json_agg(found), '[]')::text, holdfast_now() FROM found"
    )


_RIPE = "state = 'pending' AND NOT ready AND scheduled_at <= (SELECT coalesce($2::bigint, holdfast_now()))"
READY = _first_of("type = queues.type AND ready")
READY_ANY = _first_of("ready", "-priority")
RIPE = _first_of(f"type = queues.type AND {_RIPE}")
RIPE_ANY = _first_of(_RIPE)
# What could be claimed, locked elsewhere or not, up to as many as were asked for.
_SEEN = "(SELECT count(*) FROM (SELECT FROM tasks WHERE tasks.account = queues.account AND {} LIMIT most) AS seen)"
_OF_TYPE = "tasks.type = queues.type AND "
SEEN_READY = (
    f"WITH {_QUEUES} SELECT account, type, {_SEEN.format(_OF_TYPE + 'ready')} + {_SEEN.format(_OF_TYPE + _RIPE)}"
    f" FROM queues WHERE type <> '' UNION ALL SELECT account, type, {_SEEN.format('ready')} + {_SEEN.format(_RIPE)}"
    " FROM queues WHERE type = ''"
)
LAST_VERSIONS = (
    "SELECT wanted.value ->> 0, wanted.value ->> 1, (SELECT max(version) FROM events WHERE account = wanted.value ->> 0"
    " AND subject = wanted.value ->> 1) FROM json_array_elements($1::json) AS wanted"
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
WEBHOOKS_OF = "SELECT count(*) FROM webhooks WHERE account = $1 AND family = $2 AND ($3::text = '' OR principal = $3)"
ANSWER = _and_now(f"SELECT {_columns(Answer)} FROM answers WHERE (account, key) IN ({_KEYS})")
# Whoever creates or claims in an account with limits waits here in turn: for others of the same account only.
OPEN_USAGE = "INSERT INTO usage (account, cycle, created) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING"
USAGE_ALONE = "SELECT cycle, created FROM usage WHERE account = $1 FOR UPDATE"
# Counted when they changed; those that ran out and were not swept yet are nobody's.
_WORKERS = (
    "SELECT coalesce((SELECT sum(total) FROM task_counts WHERE account = {} AND state = 'claimed'), 0)"
    " - (SELECT count(*) FROM tasks WHERE account = {} AND expires_at <= {})"
)
HELD_TASKS = _WORKERS.format("$1", "$1", "(SELECT coalesce($2::bigint, holdfast_now()))")
NOW_OR = "SELECT coalesce($1::bigint, holdfast_now())"
DRAW = "SELECT nextval('fencing_tokens') FROM generate_series(1, $1::int)"
ROLLBACK = "ROLLBACK"

# -- saving ------------------------------------------------------------------------------------------------------


def _recordset(row: type[Row], shape: Shape, more: str = "") -> str:
    """A JSON document as rows of these columns."""
    types = sql_types(row)
    return f"json_to_recordset($1::json) AS new({', '.join(f'{name} {types[name]}' for name in shape)}{more})"


def _expecting(write: str) -> str:
    """A write that raises unless it touches as many rows as it means to."""
    return f"WITH done AS ({write} RETURNING 1) SELECT holdfast_expect((SELECT count(*) FROM done), $2::bigint)"


@cache
def insert_row(row: type[Row], shape: Shape) -> str:
    """INSERT_ROW with these columns; the others have their defaults."""
    columns = ", ".join(shape)
    return _expecting(
        f"INSERT INTO {row.table} ({columns}) SELECT {columns} FROM {_recordset(row, shape)} ON CONFLICT DO NOTHING"
    )


@cache
def update_row(row: type[Row], shape: Shape) -> str:
    """UPDATE_ROW of these columns; `was` is the version that was loaded."""
    settings = ", ".join(f"{name} = new.{name}" for name in shape[2:])
    return _expecting(
        f"UPDATE {row.table} AS old SET {settings} FROM {_recordset(row, shape, ', was bigint')}"
        " WHERE old.account = new.account AND old.id = new.id AND old.version = new.was"
    )


DELETE_ROW = {
    row.table: _expecting(
        f"DELETE FROM {row.table} AS old USING {_recordset(row, ('account', 'id'), ', was bigint')}"
        " WHERE old.account = new.account AND old.id = new.id AND old.version = new.was"
    )
    for row in ROW_TYPES
}
INSERT_ANSWER = (
    f"WITH done AS (INSERT INTO answers ({_columns(Answer)})"
    f" SELECT {_columns(Answer)} FROM json_populate_recordset(NULL::answers, $1::json)"
    " ON CONFLICT DO NOTHING RETURNING 1) SELECT holdfast_expect((SELECT count(*) FROM done), $2::bigint)"
)
# Whoever counts tasks of the same kind waits here in turn; only the event counters are locked after these.
COUNT_TASKS = (
    "INSERT INTO task_counts AS counted (account, type, state, total) SELECT value ->> 0, value ->> 1, value ->> 2,"
    " (value ->> 3)::bigint FROM json_array_elements($1::json) ORDER BY 1, 2, 3"
    " ON CONFLICT (account, type, state) DO UPDATE SET total = counted.total + excluded.total"
)
COUNT_CREATED = (
    "INSERT INTO usage AS counted (account, cycle, created) SELECT value ->> 0, (value ->> 1)::bigint,"
    " (value ->> 2)::bigint FROM json_array_elements($1::json) ORDER BY 1 ON CONFLICT (account) DO UPDATE"
    " SET created = excluded.created + CASE WHEN excluded.cycle > counted.cycle THEN 0 ELSE counted.created END,"
    " cycle = greatest(counted.cycle, excluded.cycle)"
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
TOTAL_LIVE = "SELECT count(*) FROM leases WHERE expires_at > %s"
COUNT_PRINCIPALS = "SELECT count(*) FROM principals WHERE account = %s AND revoked_at IS NULL"
PRINCIPALS_BY_KEY = (
    f"SELECT {_columns(Principal)} FROM principals WHERE key_hash = %s AND revoked_at IS NULL UNION ALL"
    f" SELECT {_columns(Principal)} FROM principals WHERE old_key_hash = %s AND revoked_at IS NULL"
)
USAGE = "SELECT cycle, created FROM usage WHERE account = %s"
WORKERS = _WORKERS.format("%s", "%s", "%s")
BADGE = f"SELECT {_columns(BrowserSession)} FROM badges WHERE id = %s"
KEY_USES = "SELECT id, used_at FROM key_uses WHERE account = %s"
LIST_PRINCIPALS = f"SELECT {_columns(Principal)} FROM principals WHERE account = %s ORDER BY id"
DUE = (
    "SELECT kind, account, id, at FROM ("
    "SELECT 'leases' AS kind, account, id, expires_at AS at FROM leases"
    " WHERE expires_at IS NOT NULL AND expires_at <= %s"
    " UNION ALL SELECT 'sessions', account, id, expires_at FROM sessions WHERE ended_at IS NULL AND expires_at <= %s"
    " UNION ALL SELECT 'tasks', account, id, expires_at FROM tasks WHERE expires_at IS NOT NULL AND expires_at <= %s"
    " UNION ALL SELECT 'tasks', account, id, scheduled_at FROM tasks"
    " WHERE state = 'pending' AND NOT ready AND scheduled_at <= %s"
    ") AS due WHERE %s IN ('', account) ORDER BY at, kind, account, id LIMIT %s"
)
NEXT_DEADLINE = (
    "SELECT min(at) FROM (SELECT min(expires_at) AS at FROM leases WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(expires_at) FROM sessions WHERE ended_at IS NULL"
    " UNION ALL SELECT min(expires_at) FROM tasks WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(scheduled_at) FROM tasks WHERE state = 'pending' AND NOT ready) AS deadlines"
)
HELD_AT = (
    "SELECT 'leases', account, id FROM leases WHERE kind = 'job' AND expires_at > %s"
    " UNION ALL SELECT 'sessions', account, id FROM sessions"
    " WHERE ended_at IS NULL AND expires_at > %s AND name IS NOT NULL"
    " UNION ALL SELECT 'tasks', account, id FROM tasks WHERE expires_at > %s ORDER BY 1, 2, 3"
)
EVENTS = f"SELECT {_columns(Event)} FROM events WHERE account = %s AND seq > %s ORDER BY seq LIMIT %s"
# Adds up what events tell before any of it is fetched (`core.event_page.take_bytes` is the same rule).
EVENTS_WITHIN = (
    f"SELECT {_columns(Event)} FROM"
    f" (SELECT {_columns(Event)}, sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before FROM"
    f" (SELECT {_columns(Event)} FROM events WHERE account = %s AND seq > %s ORDER BY seq LIMIT %s) AS page) AS added"
    " WHERE before < %s ORDER BY seq"
)
EVENTS_OF_REQUEST = (
    f"SELECT {_columns(Event)} FROM events WHERE account = %s AND seq > %s AND request_id = %s ORDER BY seq"
)
HISTORY = f"SELECT {_columns(Event)} FROM events WHERE account = %s AND subject = %s ORDER BY version"
GRANTED = (
    f"SELECT {_columns(Event)} FROM events WHERE account = %s AND subject = %s AND version < %s"
    " AND kind IN ('lease.claimed', 'lease.snapshot') ORDER BY version DESC LIMIT 1"
)
PACE = "SELECT at / 60000000, kind, count(*) FROM events WHERE account = %s AND seq > %s GROUP BY 1, 2 ORDER BY 1, 2"
NEWS = (
    f"SELECT {_columns(Event)} FROM events WHERE account = %s AND subject = %s AND kind NOT IN {RENEWALS}"
    " ORDER BY version DESC LIMIT %s"
)
LOG_BOUNDS = "SELECT floor, seq FROM event_counters WHERE account = %s"
LOGS = "SELECT account FROM event_counters ORDER BY account"
OLDER_EVENTS = (
    "SELECT max(seq) FROM (SELECT seq, at FROM events WHERE account = %s ORDER BY seq LIMIT %s) AS first WHERE at < %s"
)
SUBJECTS = "SELECT DISTINCT subject FROM events WHERE account = %s AND seq <= %s"
NEXT_SUBJECTS = "SELECT DISTINCT subject FROM events WHERE account = %s AND subject > %s ORDER BY subject LIMIT %s"
ROW_BY_ID = {row.table: f"SELECT {_columns(row)} FROM {row.table} WHERE account = %s AND id = %s" for row in ROW_TYPES}
NEXT_ROWS = {
    row.table: f"SELECT {_columns(row)} FROM {row.table} WHERE (account, id) > (%s, %s) ORDER BY account, id LIMIT %s"
    for row in ROW_TYPES
}
TASKS_LISTED = (
    f"SELECT {_columns(Task)} FROM tasks WHERE account = %s AND type = %s AND state = %s AND id < %s"
    " ORDER BY id DESC LIMIT %s"
)
TASKS_TAGGED = (
    f"SELECT {_columns(Task)} FROM tasks WHERE account = %s AND tag = %s AND id < %s ORDER BY id DESC LIMIT %s"
)
TASKS_KEYED = (
    f"SELECT {_columns(Task)} FROM tasks WHERE account = %s AND unique_key = %s AND id < %s ORDER BY id DESC LIMIT %s"
)
TASKS_NEWEST = f"SELECT {_columns(Task)} FROM tasks WHERE account = %s AND id < %s ORDER BY id DESC LIMIT %s"
TASKS_HELD = f"SELECT {_columns(Task)} FROM tasks WHERE account = %s AND session = %s ORDER BY id"
TASKS_FINISHED = (
    "SELECT account, id FROM tasks WHERE account = %s AND state IN ('completed', 'dead_letter', 'cancelled')"
    " AND changed_at < %s AND (%s OR state <> 'dead_letter') ORDER BY changed_at LIMIT %s"
)
TASK_ACCOUNTS = "SELECT DISTINCT account FROM task_counts ORDER BY account"
TASK_COUNTS = "SELECT type, state, total FROM task_counts WHERE account = %s AND total <> 0 ORDER BY type, state"
# The head of each queue is one step along the index tasks_listed; `counted` knows which queues there are.
QUEUES = (
    "SELECT type, total, (SELECT created_at FROM tasks WHERE tasks.account = counted.account"
    " AND tasks.type = counted.type AND tasks.state = 'pending' ORDER BY id LIMIT 1) AS oldest"
    " FROM task_counts AS counted WHERE account = %s AND state = 'pending' AND total > 0 ORDER BY oldest, type LIMIT %s"
)
RUNNING_OUT = (
    f"SELECT {_columns(Task)} FROM tasks WHERE account = %s AND id IN (SELECT held.id FROM task_counts AS counted"
    " CROSS JOIN tasks AS held WHERE counted.account = %s AND counted.state = 'claimed' AND counted.total > 0"
    " AND held.account = counted.account AND held.type = counted.type AND held.state = counted.state"
    " ORDER BY held.expires_at, held.id LIMIT %s) ORDER BY expires_at, id"
)
TASK_TOTALS = "SELECT state, sum(total)::bigint FROM task_counts GROUP BY state HAVING sum(total) <> 0"
# From the head of each priority of each account to the next, along the index: the cost is that of the heads, however
# many tasks wait behind them.
OLDEST_READY = (
    "WITH RECURSIVE heads(account, rank) AS (SELECT account, (SELECT -priority FROM tasks"
    " WHERE tasks.account = counted.account AND ready ORDER BY -priority LIMIT 1)"
    " FROM (SELECT DISTINCT account FROM task_counts WHERE state = 'pending' AND total > 0) AS counted"
    " UNION ALL SELECT account, (SELECT -priority FROM tasks WHERE tasks.account = heads.account AND ready"
    " AND -priority > heads.rank ORDER BY -priority LIMIT 1) FROM heads WHERE rank IS NOT NULL)"
    " SELECT min((SELECT place FROM tasks WHERE tasks.account = heads.account AND -priority = heads.rank AND ready"
    " ORDER BY place LIMIT 1)) FROM heads WHERE rank IS NOT NULL"
)
LEASES_HELD = f"SELECT {_columns(Lease)} FROM leases WHERE account = %s AND session = %s AND ephemeral ORDER BY id"
LIVE_SESSIONS = (
    f"SELECT {_columns(Session)} FROM sessions WHERE account = %s AND id > %s AND ended_at IS NULL"
    " AND expires_at > %s ORDER BY id LIMIT %s"
)
LIST_SESSIONS = f"SELECT {_columns(Session)} FROM sessions WHERE account = %s AND id > %s ORDER BY id LIMIT %s"
NOW = "SELECT coalesce(%s::bigint, holdfast_now())"
NEXT_TOKEN = "SELECT last_value + is_called::int FROM fencing_tokens"

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"

# -- keeping house -----------------------------------------------------------------------------------------------

BEAT = "UPDATE state SET alive_at = coalesce(%s::bigint, holdfast_now()), clean = %s"
LAST_BEAT = "SELECT alive_at, coalesce(%s::bigint, holdfast_now()) FROM state WHERE NOT clean"
FORGET_ANSWERS = (
    "DELETE FROM answers WHERE ctid = ANY (ARRAY"
    " (SELECT ctid FROM answers WHERE answered_at < %s ORDER BY answered_at LIMIT %s)) RETURNING 1"
)
OPEN_BUDGET = "INSERT INTO budgets (subject, class, started_at, used) VALUES (%s, %s, %s, 0) ON CONFLICT DO NOTHING"
BUDGET = "SELECT started_at, used FROM budgets WHERE subject = %s AND class = %s FOR UPDATE"
SAVE_BUDGET = "UPDATE budgets SET started_at = %s, used = %s WHERE subject = %s AND class = %s"
NOTE_USES = (
    "INSERT INTO key_uses (account, id, used_at) SELECT value ->> 0, value ->> 1, (value ->> 2)::bigint"
    " FROM json_array_elements(%s::json) ORDER BY 1, 2"
    " ON CONFLICT (account, id) DO UPDATE SET used_at = greatest(key_uses.used_at, excluded.used_at)"
)
KEEP_BADGE = (
    f"INSERT INTO badges ({_columns(BrowserSession)}) VALUES (%s, %s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
)
DROP_SURPLUS = (
    "DELETE FROM badges WHERE key_hash = %s AND kind = %s AND id NOT IN (SELECT id FROM badges"
    f" WHERE key_hash = %s AND kind = %s ORDER BY made_at DESC, id DESC LIMIT {MAX_PER_KEY}) RETURNING 1"
)
TAKE_BADGE = f"DELETE FROM badges WHERE id = %s RETURNING {_columns(BrowserSession)}"
FORGET_BADGES = (
    f"DELETE FROM badges WHERE kind = 'invitation' AND made_at + {LINK_LIFETIME} <= %s"
    f" OR kind = 'visit' AND (seen_at + {IDLE_TIMEOUT} <= %s OR made_at + {MAX_LIFETIME} <= %s) RETURNING 1"
)
RAISE_FLOOR = "UPDATE event_counters SET floor = %s WHERE account = %s AND floor < %s"
FORGET_EVENTS = "DELETE FROM events WHERE account = %s AND seq <= %s"
_COUNTED = (
    "task_counts",
    "usage",
    "key_uses",
    "badges",
    "answers",
    "deliveries",
    "webhook_cursors",
    "events",
    "event_counters",
)
ERASE = (
    "DELETE FROM budgets WHERE subject = %s",
    "UPDATE event_counters SET floor = seq WHERE account = %s",
    *(f"DELETE FROM {table} WHERE account = %s" for table in (*(row.table for row in ROW_TYPES), *_COUNTED)),
)
"""Everything of an account, each of these said with its id."""
SIZE = "SELECT pg_database_size(current_database())"
LISTEN = "LISTEN holdfast"
NOTIFY = "NOTIFY holdfast"
