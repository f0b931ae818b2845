"""Every statement we say to SQLite. `postgres/queries.py` has the same names in the same order.

A batch goes through few statements, however many rows it has: SQLite then works in long calls, without
Python's lock, while the doors go on. A statement a row would give the lock up and fight for it at every row.
Measured per row: loading as one JSON document 5 µs (a SELECT a row 18), inserting lease and event with many
rows in VALUES 12 µs (out of JSON 50).
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
from holdfast.store.column_groups import Shape
from holdfast.store.rows import ROW_TYPES


def _columns(record: type[Row | Event | Answer | BrowserSession]) -> str:
    return ", ".join(record.__struct_fields__)


def _object(row: type[Row]) -> str:
    """A row as a JSON object; SQLite has no booleans of its own."""
    shown = (
        f"'{name}', json(iif(row.{name}, 'true', 'false'))" if name in row.booleans else f"'{name}', row.{name}"
        for name in row.__struct_fields__
    )
    return f"json_object({', '.join(shown)})"


def _rows(shape: Shape, count: int) -> str:
    """Places for that many records."""
    one = f"({', '.join('?' * len(shape))})"
    return ", ".join([one] * count)


def _settings(shape: Shape) -> str:
    """Each column from the one at its place in VALUES; the first two are the key."""
    return ", ".join(f"{name} = new.column{place}" for place, name in enumerate(shape[2:], 3))


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
TASKS_OF_SESSION = (
    f"SELECT json_group_array({_object(Task)}) FROM json_each(?) AS wanted CROSS JOIN tasks AS row"
    " ON row.account = wanted.value ->> 0 AND row.session = wanted.value ->> 1"
)
TASKS_UNDER_KEY = (
    f"SELECT json_group_array({_object(Task)}) FROM json_each(?) AS wanted CROSS JOIN tasks AS row"
    " ON row.account = wanted.value ->> 0 AND row.unique_key = wanted.value ->> 1"
    " AND row.unique_key IS NOT NULL AND row.state IN ('pending', 'claimed')"
)
KEYS_OF_TASKS = (
    "SELECT row.account, row.unique_key FROM json_each(?) AS wanted CROSS JOIN tasks AS row"
    " ON row.account = wanted.value ->> 0 AND row.id = wanted.value ->> 1 WHERE row.unique_key IS NOT NULL"
)
READY = (
    f"SELECT json_group_array({_object(Task)}) FROM (SELECT * FROM tasks WHERE account = ? AND type = ? AND ready"
    " ORDER BY priority DESC, place, id LIMIT ?) AS row"
)
READY_ANY = (
    f"SELECT json_group_array({_object(Task)}) FROM (SELECT * FROM tasks WHERE account = ? AND ready"
    " ORDER BY -priority, place, id LIMIT ?) AS row"
)
RIPE = (
    f"SELECT json_group_array({_object(Task)}) FROM (SELECT * FROM tasks WHERE account = ? AND type = ?"
    " AND state = 'pending' AND NOT ready AND scheduled_at <= ? ORDER BY priority DESC, place, id LIMIT ?) AS row"
)
# A plus sign keeps SQLite from walking through all that an account ever had; what has just come due is little.
RIPE_ANY = (
    f"SELECT json_group_array({_object(Task)}) FROM (SELECT * FROM tasks WHERE +account = ?"
    " AND state = 'pending' AND NOT ready AND scheduled_at <= ? ORDER BY priority DESC, place, id LIMIT ?) AS row"
)
LAST_VERSIONS = (
    "SELECT wanted.value ->> 0, wanted.value ->> 1, max(version) FROM json_each(?) AS wanted CROSS JOIN events"
    " ON events.account = wanted.value ->> 0 AND events.subject = wanted.value ->> 1 GROUP BY 1, 2"
)
LIVE_LOCKS = "SELECT count(*) FROM leases WHERE account = ? AND principal = ? AND kind = 'lock' AND expires_at > ?"
LIVE_ROOMS = (
    "SELECT count(*) FROM leases WHERE account = ? AND id >= '__election/' AND id < '__election0'"
    " AND kind = 'election' AND expires_at > ?"
)
WEBHOOKS_OF = "SELECT count(*) FROM webhooks WHERE account = ? AND family = ? AND (? = '' OR principal = ?)"
ANSWER = f"SELECT {_columns(Answer)} FROM answers WHERE account = ? AND key = ?"
STATE = "SELECT token, now, boot_id, boot_at FROM state"

# -- saving ------------------------------------------------------------------------------------------------------


@cache
def insert_row(row: type[Row], shape: Shape, count: int) -> str:
    """INSERT_ROW for that many rows in one statement."""
    return f"INSERT INTO {row.table} ({', '.join(shape)}) VALUES {_rows(shape, count)}"


@cache
def update_row(row: type[Row], shape: Shape, count: int) -> str:
    """UPDATE_ROW for that many rows in one statement."""
    return (
        f"UPDATE {row.table} SET {_settings(shape)} FROM (VALUES {_rows(shape, count)}) AS new"
        f" WHERE {row.table}.account = new.column1 AND {row.table}.id = new.column2"
    )


DELETE_ROW = {
    row.table: f"DELETE FROM {row.table} WHERE (account, id) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))"
    for row in ROW_TYPES
}


@cache
def insert_answer(count: int) -> str:
    """INSERT_ANSWER for that many answers in one statement."""
    return f"INSERT INTO answers ({_columns(Answer)}) VALUES {_rows(Answer.__struct_fields__, count)}"


@cache
def insert_event(count: int) -> str:
    """INSERT_EVENT for that many events in one statement."""
    return f"INSERT INTO events ({_columns(Event)}) VALUES {_rows(Event.__struct_fields__, count)}"


COUNT_TASKS = (
    "INSERT INTO task_counts (account, type, state, total)"
    " SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true"
    " ON CONFLICT (account, type, state) DO UPDATE SET total = total + excluded.total"
)
COUNT_CREATED = (
    "INSERT INTO usage (account, cycle, created) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)"
    " WHERE true ON CONFLICT (account) DO UPDATE"
    " SET created = excluded.created + CASE WHEN excluded.cycle > cycle THEN 0 ELSE created END,"
    " cycle = max(cycle, excluded.cycle)"
)
COUNT_EVENTS = (
    "INSERT INTO event_counters (account, seq) VALUES (?1, ?2)"
    " ON CONFLICT (account) DO UPDATE SET seq = seq + ?2 RETURNING seq"
)
SAVE_STATE = "UPDATE state SET token = ?, now = ?, boot_id = ?, boot_at = ?"

# -- looking -----------------------------------------------------------------------------------------------------

LIST_LEASES = (
    f"SELECT {_columns(Lease)} FROM leases WHERE account = ? AND id > ? AND id >= ? AND (? IS NULL OR id < ?)"
    " AND expires_at > ? ORDER BY id LIMIT ?"
)
COUNT_OF_SESSION = "SELECT count(*) FROM leases WHERE account = ? AND session = ?"
COUNT_LIVE = "SELECT count(*) FROM leases WHERE account = ? AND expires_at > ?"
TOTAL_LIVE = "SELECT count(*) FROM leases WHERE expires_at > ?"
COUNT_PRINCIPALS = "SELECT count(*) FROM principals WHERE account = ? AND revoked_at IS NULL"
PRINCIPALS_BY_KEY = (
    f"SELECT {_columns(Principal)} FROM principals WHERE key_hash = ? AND revoked_at IS NULL UNION ALL"
    f" SELECT {_columns(Principal)} FROM principals WHERE old_key_hash = ? AND revoked_at IS NULL"
)
USAGE = "SELECT cycle, created FROM usage WHERE account = ?"
WORKERS = (
    "SELECT coalesce((SELECT sum(total) FROM task_counts WHERE account = ? AND state = 'claimed'), 0)"
    " - (SELECT count(*) FROM tasks WHERE account = ? AND expires_at <= ?)"
)
BADGE = f"SELECT {_columns(BrowserSession)} FROM badges WHERE id = ?"
KEY_USES = "SELECT id, used_at FROM key_uses WHERE account = ?"
LIST_PRINCIPALS = f"SELECT {_columns(Principal)} FROM principals WHERE account = ? ORDER BY id"
DUE = (
    "SELECT kind, account, id, at FROM ("
    "SELECT 'leases' AS kind, account, id, expires_at AS at FROM leases"
    " WHERE expires_at IS NOT NULL AND expires_at <= ?"
    " UNION ALL SELECT 'sessions', account, id, expires_at FROM sessions WHERE ended_at IS NULL AND expires_at <= ?"
    " UNION ALL SELECT 'tasks', account, id, expires_at FROM tasks WHERE expires_at IS NOT NULL AND expires_at <= ?"
    " UNION ALL SELECT 'tasks', account, id, scheduled_at FROM tasks"
    " WHERE state = 'pending' AND NOT ready AND scheduled_at <= ?"
    ") AS due WHERE ? IN ('', account) ORDER BY at, kind, account, id LIMIT ?"
)
NEXT_DEADLINE = (
    "SELECT min(at) FROM (SELECT min(expires_at) AS at FROM leases WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(expires_at) FROM sessions WHERE ended_at IS NULL"
    " UNION ALL SELECT min(expires_at) FROM tasks WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(scheduled_at) FROM tasks WHERE state = 'pending' AND NOT ready)"
)
HELD_AT = (
    "SELECT 'leases', account, id FROM leases WHERE kind = 'job' AND expires_at > ?"
    " UNION ALL SELECT 'sessions', account, id FROM sessions"
    " WHERE ended_at IS NULL AND expires_at > ? AND name IS NOT NULL"
    " UNION ALL SELECT 'tasks', account, id FROM tasks WHERE expires_at > ? ORDER BY 1, 2, 3"
)
EVENTS = f"SELECT {_columns(Event)} FROM events WHERE account = ? AND seq > ? ORDER BY seq LIMIT ?"
# Adds up what events tell before any of it is fetched (`core.event_page.take_bytes` is the same rule).
EVENTS_WITHIN = (
    f"SELECT {_columns(Event)} FROM"
    f" (SELECT {_columns(Event)}, sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before FROM"
    f" (SELECT {_columns(Event)} FROM events WHERE account = ? AND seq > ? ORDER BY seq LIMIT ?) AS page) AS added"
    " WHERE before < ? ORDER BY seq"
)
EVENTS_OF_REQUEST = (
    f"SELECT {_columns(Event)} FROM events WHERE account = ? AND seq > ? AND request_id = ? ORDER BY seq"
)
HISTORY = f"SELECT {_columns(Event)} FROM events WHERE account = ? AND subject = ? ORDER BY version"
GRANTED = (
    f"SELECT {_columns(Event)} FROM events WHERE account = ? AND subject = ? AND version < ?"
    " AND kind IN ('lease.claimed', 'lease.snapshot') ORDER BY version DESC LIMIT 1"
)
PACE = "SELECT at / 60000000, kind, count(*) FROM events WHERE account = ? AND seq > ? GROUP BY 1, 2 ORDER BY 1, 2"
NEWS = (
    f"SELECT {_columns(Event)} FROM events WHERE account = ? AND subject = ? AND kind NOT IN {RENEWALS}"
    " ORDER BY version DESC LIMIT ?"
)
LOG_BOUNDS = "SELECT floor, seq FROM event_counters WHERE account = ?"
LOGS = "SELECT account FROM event_counters ORDER BY account"
OLDER_EVENTS = (
    "SELECT max(seq) FROM (SELECT seq, at FROM events WHERE account = ? ORDER BY seq LIMIT ?) AS first WHERE at < ?"
)
SUBJECTS = "SELECT DISTINCT subject FROM events WHERE account = ? AND seq <= ?"
NEXT_SUBJECTS = "SELECT DISTINCT subject FROM events WHERE account = ? AND subject > ? ORDER BY subject LIMIT ?"
ROW_BY_ID = {row.table: f"SELECT {_columns(row)} FROM {row.table} WHERE account = ? AND id = ?" for row in ROW_TYPES}
NEXT_ROWS = {
    row.table: f"SELECT {_columns(row)} FROM {row.table} WHERE (account, id) > (?, ?) ORDER BY account, id LIMIT ?"
    for row in ROW_TYPES
}
TASKS_LISTED = (
    f"SELECT {_columns(Task)} FROM tasks WHERE account = ? AND type = ? AND state = ? AND id < ?"
    " ORDER BY id DESC LIMIT ?"
)
TASKS_TAGGED = f"SELECT {_columns(Task)} FROM tasks WHERE account = ? AND tag = ? AND id < ? ORDER BY id DESC LIMIT ?"
TASKS_KEYED = (
    f"SELECT {_columns(Task)} FROM tasks WHERE account = ? AND unique_key = ? AND id < ? ORDER BY id DESC LIMIT ?"
)
TASKS_NEWEST = f"SELECT {_columns(Task)} FROM tasks WHERE account = ? AND id < ? ORDER BY id DESC LIMIT ?"
TASKS_HELD = f"SELECT {_columns(Task)} FROM tasks WHERE account = ? AND session = ? ORDER BY id"
TASKS_FINISHED = (
    "SELECT account, id FROM tasks WHERE account = ? AND state IN ('completed', 'dead_letter', 'cancelled')"
    " AND changed_at < ? AND (? OR state <> 'dead_letter') ORDER BY changed_at LIMIT ?"
)
TASK_ACCOUNTS = "SELECT DISTINCT account FROM task_counts ORDER BY account"
TASK_COUNTS = "SELECT type, state, total FROM task_counts WHERE account = ? AND total <> 0 ORDER BY type, state"
# The head of each queue is one step along the index tasks_listed; `counted` knows which queues there are.
QUEUES = (
    "SELECT type, total, (SELECT created_at FROM tasks WHERE tasks.account = counted.account"
    " AND tasks.type = counted.type AND tasks.state = 'pending' ORDER BY id LIMIT 1) AS oldest"
    " FROM task_counts AS counted WHERE account = ? AND state = 'pending' AND total > 0 ORDER BY oldest, type LIMIT ?"
)
RUNNING_OUT = (
    f"SELECT {_columns(Task)} FROM tasks WHERE account = ? AND id IN (SELECT held.id FROM task_counts AS counted"
    " CROSS JOIN tasks AS held WHERE counted.account = ? AND counted.state = 'claimed' AND counted.total > 0"
    " AND held.account = counted.account AND held.type = counted.type AND held.state = counted.state"
    " ORDER BY held.expires_at, held.id LIMIT ?) ORDER BY expires_at, id"
)
TASK_TOTALS = "SELECT state, sum(total) FROM task_counts GROUP BY state HAVING sum(total) <> 0"
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
LEASES_HELD = f"SELECT {_columns(Lease)} FROM leases WHERE account = ? AND session = ? AND ephemeral ORDER BY id"
LIVE_SESSIONS = (
    f"SELECT {_columns(Session)} FROM sessions WHERE account = ? AND id > ? AND ended_at IS NULL"
    " AND expires_at > ? ORDER BY id LIMIT ?"
)
LIST_SESSIONS = f"SELECT {_columns(Session)} FROM sessions WHERE account = ? AND id > ? ORDER BY id LIMIT ?"

TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"

# -- keeping house -----------------------------------------------------------------------------------------------

BEAT = "UPDATE state SET alive_at = ?, clean = ?"
LAST_BEAT = "SELECT alive_at FROM state WHERE NOT clean"
FORGET_ANSWERS = (
    "DELETE FROM answers WHERE rowid IN"
    " (SELECT rowid FROM answers WHERE answered_at < ? ORDER BY answered_at LIMIT ?) RETURNING 1"
)
OPEN_BUDGET = "INSERT INTO budgets (subject, class, started_at, used) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING"
BUDGET = "SELECT started_at, used FROM budgets WHERE subject = ? AND class = ?"
SAVE_BUDGET = "UPDATE budgets SET started_at = ?, used = ? WHERE subject = ? AND class = ?"
NOTE_USES = (
    "INSERT INTO key_uses (account, id, used_at) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)"
    " WHERE true ON CONFLICT (account, id) DO UPDATE SET used_at = max(used_at, excluded.used_at)"
)
KEEP_BADGE = (
    f"INSERT INTO badges ({_columns(BrowserSession)}) VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
)
DROP_SURPLUS = (
    "DELETE FROM badges WHERE key_hash = ? AND kind = ? AND id NOT IN (SELECT id FROM badges"
    f" WHERE key_hash = ? AND kind = ? ORDER BY made_at DESC, id DESC LIMIT {MAX_PER_KEY}) RETURNING 1"
)
TAKE_BADGE = f"DELETE FROM badges WHERE id = ? RETURNING {_columns(BrowserSession)}"
FORGET_BADGES = (
    f"DELETE FROM badges WHERE kind = 'invitation' AND made_at + {LINK_LIFETIME} <= ?"
    f" OR kind = 'visit' AND (seen_at + {IDLE_TIMEOUT} <= ? OR made_at + {MAX_LIFETIME} <= ?) RETURNING 1"
)
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
    "DELETE FROM budgets WHERE subject = ?",
    "UPDATE event_counters SET floor = seq WHERE account = ?",
    *(f"DELETE FROM {table} WHERE account = ?" for table in (*(row.table for row in ROW_TYPES), *_COUNTED)),
)
"""Everything of an account, each of these said with its id."""
RAISE_FLOOR = "UPDATE event_counters SET floor = ? WHERE account = ? AND floor < ?"
FORGET_EVENTS = "DELETE FROM events WHERE account = ? AND seq <= ?"
