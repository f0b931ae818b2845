"""Statements that SQLite and PostgreSQL share.

They are written with SQLite's placeholder and its `json_each(?)`, which unpacks a JSON array into rows with a column
`value`; `postgres/reader.py` replaces the two. Statements that differ in more are in `sqlite/queries.py` and
`postgres/queries.py`, under the same names.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.browser_session import IDLE_TIMEOUT, LINK_LIFETIME, MAX_LIFETIME, MAX_PER_KEY, BrowserSession
from holdfast.core.event import RENEWALS, Event
from holdfast.core.lease import Lease
from holdfast.core.principal import MACHINE, Principal
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.core.webhooks.delivery import Delivery
from holdfast.store.changes import Answer
from holdfast.store.damaged_rows import TABLES
from holdfast.store.rows import ROW_TYPES
from holdfast.store.sql.dependency_queries import needs_dependencies
from holdfast.store.sql.page_queries import columns, page_of


def held_tasks(account: str, now: str) -> str:
    """How many tasks of an account are held: those counted as claimed, without the expired ones not swept yet."""
    return (
        f"SELECT coalesce((SELECT sum(total) FROM task_counts WHERE account = {account} AND state = 'claimed'), 0)"
        f" - (SELECT count(*) FROM tasks WHERE account = {account} AND expires_at <= {now})"
    )


# -- reading -----------------------------------------------------------------------------------------------------

LIVE_LEASES = page_of(
    Lease,
    "account = ? AND id > ? AND id >= ? AND (CAST(? AS text) IS NULL OR id < ?) AND proof IS NOT NULL"
    " AND expires_at > ?",
    "id",
)
DONE_LEASES = page_of(
    Lease,
    "account = ? AND id > ? AND id >= ? AND (CAST(? AS text) IS NULL OR id < ?) AND done_at IS NOT NULL"
    " AND proof IS NULL AND (done_until IS NULL OR done_until > ?)",
    "id",
)
OLDEST_DONE = (
    "SELECT account, id FROM leases WHERE account = ? AND done_at IS NOT NULL ORDER BY done_at DESC LIMIT ? OFFSET ?"
)
COUNT_SESSION_LEASES = "SELECT count(*) FROM leases WHERE account = ? AND session = ?"
COUNT_LIVE_LEASES = "SELECT count(*) FROM leases WHERE account = ? AND proof IS NOT NULL AND expires_at > ?"
TOTAL_LIVE_LEASES = "SELECT count(*) FROM leases WHERE expires_at > ?"
COUNT_USERS = (
    f"SELECT count(*) FROM principals WHERE account = ? AND revoked_at IS NULL AND source <> '{MACHINE}'"
    " AND replace(' ' || scopes || ' ', ' admin ', '') = ' ' || scopes || ' '"
)
PRINCIPALS_BY_KEY = (
    f"SELECT {columns(Principal)} FROM principals WHERE key_hash = ? AND revoked_at IS NULL UNION ALL"
    f" SELECT {columns(Principal)} FROM principals WHERE old_key_hash = ? AND revoked_at IS NULL"
)
USAGE = "SELECT coalesce(cycle, 0), coalesce(created, 0) FROM usage WHERE account = ?"
HELD_TASKS = held_tasks("?", "?")
BROWSER_SESSION = f"SELECT {columns(BrowserSession)} FROM badges WHERE id = ?"
KEY_USES = "SELECT id, used_at FROM key_uses WHERE account = ? AND used_at IS NOT NULL"
PRINCIPALS = f"SELECT {columns(Principal)} FROM principals WHERE account = ? ORDER BY id"
DUE = (
    "SELECT kind, account, id, at FROM ("
    "SELECT 'leases' AS kind, account, id, expires_at AS at FROM leases"
    " WHERE expires_at IS NOT NULL AND expires_at <= ?"
    " UNION ALL SELECT 'reservations', account, id, expires_at FROM reservations"
    " WHERE expires_at IS NOT NULL AND expires_at <= ?"
    " UNION ALL SELECT 'reservations', account, id, waits_until FROM reservations"
    " WHERE waits_until IS NOT NULL AND waits_until <= ?"
    " UNION ALL SELECT 'sessions', account, id, expires_at FROM sessions WHERE ended_at IS NULL AND expires_at <= ?"
    " UNION ALL SELECT 'tasks', account, id, expires_at FROM tasks WHERE expires_at IS NOT NULL AND expires_at <= ?"
    " UNION ALL SELECT 'tasks', account, id, scheduled_at FROM tasks"
    " WHERE state = 'pending' AND NOT ready AND scheduled_at <= ?"
    " UNION ALL SELECT 'tasks', account, id, changed_at FROM tasks WHERE releasing IS NOT NULL AND changed_at >= 0"
    " UNION ALL SELECT 'tasks', account, id, deadline_at FROM tasks"
    " WHERE state = 'pending' AND deadline_at IS NOT NULL AND deadline_at <= ?"
    " UNION ALL SELECT 'questions', account, id, deadline_at FROM questions"
    " WHERE state = 'open' AND deadline_at IS NOT NULL AND deadline_at <= ?"
    ") AS due WHERE ? IN ('', account) ORDER BY at, kind, account, id LIMIT ?"
)
NEXT_DEADLINE = (
    "SELECT min(at) FROM (SELECT min(expires_at) AS at FROM leases WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(expires_at) FROM reservations WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(waits_until) FROM reservations WHERE waits_until IS NOT NULL"
    " UNION ALL SELECT min(expires_at) FROM sessions WHERE ended_at IS NULL"
    " UNION ALL SELECT min(expires_at) FROM tasks WHERE expires_at IS NOT NULL"
    " UNION ALL SELECT min(changed_at) FROM tasks WHERE releasing IS NOT NULL"
    " UNION ALL SELECT min(scheduled_at) + ? FROM tasks WHERE state = 'pending' AND NOT ready"
    " UNION ALL SELECT min(deadline_at) + ? FROM tasks WHERE state = 'pending' AND deadline_at IS NOT NULL"
    " UNION ALL SELECT min(deadline_at) + ? FROM questions WHERE state = 'open' AND deadline_at IS NOT NULL"
    ") AS deadlines"
)
HELD_AT = (
    "SELECT 'leases', account, id FROM leases WHERE kind = 'job' AND expires_at > ?"
    " UNION ALL SELECT 'reservations', account, id FROM reservations WHERE expires_at > ?"
    " UNION ALL SELECT 'sessions', account, id FROM sessions"
    " WHERE ended_at IS NULL AND expires_at > ? AND name IS NOT NULL"
    " UNION ALL SELECT 'tasks', account, id FROM tasks WHERE expires_at > ? ORDER BY 1, 2, 3"
)
EVENTS = page_of(Event, "account = ? AND seq > ?", "seq")
CHANGES = page_of(Event, f"account = ? AND seq > ? AND seq < ? AND kind NOT IN {RENEWALS}", "seq", order="DESC")
EVENTS_OF_REQUEST = page_of(Event, "account = ? AND seq > ? AND request_id = ?", "seq")
HISTORY = page_of(Event, "account = ? AND subject = ? AND version > ?", "version")
# A renewal is left out if the next event is a renewal too (`core.event.without_repeated_renewals`).
BRIEF_HISTORY = page_of(
    Event,
    f"account = ? AND subject = ? AND version > ? AND (kind NOT IN {RENEWALS} OR NOT EXISTS"
    " (SELECT 1 FROM events AS next WHERE next.account = events.account AND next.subject = events.subject"
    f" AND next.version = events.version + 1 AND next.kind IN {RENEWALS}))",
    "version",
)
LAST_GRANT = (
    f"SELECT {columns(Event)} FROM events WHERE account = ? AND subject = ? AND version < ?"
    " AND kind IN ('lease.claimed', 'lease.snapshot') ORDER BY version DESC LIMIT 1"
)
EVENTS_PER_MINUTE = (
    "SELECT at / 60000000, kind, count(*) FROM events WHERE account = ? AND seq > ? GROUP BY 1, 2 ORDER BY 1, 2"
)
RECENT_EVENTS = (
    f"SELECT {columns(Event)} FROM events WHERE account = ? AND subject = ? AND kind NOT IN {RENEWALS}"
    " ORDER BY version DESC LIMIT ?"
)
LOG_BOUNDS = "SELECT floor, seq FROM event_counters WHERE account = ?"
LOG_ACCOUNTS = "SELECT account FROM event_counters ORDER BY account"
LAST_EVENT_BEFORE = (
    "WITH oldest AS (SELECT seq, at FROM events WHERE account = ? ORDER BY seq LIMIT ?),"
    " young AS (SELECT min(seq) AS seq FROM oldest WHERE at BETWEEN ? AND ?)"
    " SELECT max(oldest.seq) FROM oldest CROSS JOIN young"
    " WHERE oldest.at >= 0 AND oldest.at < ? AND (young.seq IS NULL OR oldest.seq < young.seq)"
)
SUBJECTS_UP_TO = "SELECT DISTINCT subject FROM events WHERE account = ? AND seq <= ?"
SUBJECTS_AFTER = "SELECT DISTINCT subject FROM events WHERE account = ? AND subject > ? ORDER BY subject LIMIT ?"
ROW_BY_ID = {row.table: f"SELECT {columns(row)} FROM {row.table} WHERE account = ? AND id = ?" for row in ROW_TYPES}
ROWS_AFTER = {row.table: page_of(row, "(account, id) > (?, ?)", "account", "id") for row in ROW_TYPES}
TASK_IDS_BY_STATE = (
    "SELECT id FROM tasks WHERE account = ? AND type = ? AND state = ? AND id < ? ORDER BY id DESC LIMIT ?"
)
TASKS_AMONG = page_of(Task, "account = ? AND id IN (SELECT value ->> 0 FROM json_each(?))", "id", order="DESC")
TASKS_BY_TAG = page_of(Task, "account = ? AND tag = ? AND id < ?", "id", order="DESC")
TASKS_BY_UNIQUE_KEY = page_of(Task, "account = ? AND unique_key = ? AND id < ?", "id", order="DESC")
TASKS_WAITING = page_of(Task, "account = ? AND waits_for = ? AND id < ?", "id", order="DESC")
TASKS_BY_ID = page_of(Task, "account = ? AND id < ?", "id", order="DESC")
FINISHED_TASKS = (
    "SELECT account, id FROM tasks WHERE account = ? AND state IN ('completed', 'dead_letter', 'cancelled')"
    " AND changed_at < ? AND (? OR state <> 'dead_letter') AND (NOT awaited OR (SELECT edge.dependent"
    " FROM task_dependencies AS edge CROSS JOIN tasks AS dependent WHERE edge.account = tasks.account"
    " AND edge.needed = tasks.id AND dependent.account = edge.account AND dependent.id = edge.dependent"
    f" AND {needs_dependencies('dependent')} LIMIT 1) IS NULL) ORDER BY changed_at LIMIT ?"
)
TASK_COUNTS = "SELECT type, state, total FROM task_counts WHERE account = ? AND total <> 0 ORDER BY type, state"
RUNNING_KEYS = (
    "SELECT concurrency_key, count(*) FROM tasks WHERE account = ? AND type = ? AND state = 'claimed'"
    " AND concurrency_key IS NOT NULL GROUP BY concurrency_key"
)
COUNT_RESOLVED = (
    "SELECT count(resolved_at) FROM (SELECT dead.resolved_at FROM task_counts AS counted CROSS JOIN tasks AS dead"
    " WHERE counted.account = ? AND counted.state = 'dead_letter' AND counted.total > 0"
    " AND dead.account = counted.account AND dead.type = counted.type AND dead.state = counted.state LIMIT ?) AS found"
)
# The head of each queue is one step along the index tasks_listed; `counted` lists the queues.
QUEUES = (
    "SELECT type, total, (SELECT created_at FROM tasks WHERE tasks.account = counted.account"
    " AND tasks.type = counted.type AND tasks.state = 'pending' ORDER BY id LIMIT 1) AS oldest"
    " FROM task_counts AS counted WHERE account = ? AND state = 'pending' AND total > 0 ORDER BY oldest, type LIMIT ?"
)
NEXT_TO_EXPIRE = page_of(
    Task,
    "account = ? AND id IN (SELECT held.id FROM task_counts AS counted"
    " CROSS JOIN tasks AS held WHERE counted.account = ? AND counted.state = 'claimed' AND counted.total > 0"
    " AND held.account = counted.account AND held.type = counted.type AND held.state = counted.state"
    " ORDER BY held.expires_at, held.id LIMIT ?)",
    "expires_at",
    "id",
)
TASK_TOTALS = "SELECT state, CAST(sum(total) AS bigint) FROM task_counts GROUP BY state HAVING sum(total) <> 0"


def _oldest_in(queues: str, of_queue: str) -> str:
    """The first place of the ready tasks in some queues: `queues` selects account and words, `of_queue` their tasks.

    Goes along an index from the first task of each priority to the next: the cost depends on the number of priorities
    in use, not on the number of waiting tasks.
    """
    ready = f"FROM tasks WHERE tasks.account = heads.account AND {of_queue} AND ready"
    first = ready.replace("heads.", "queues.")
    return (
        f"WITH RECURSIVE {queues}, heads (account, words, rank) AS (SELECT account, words, (SELECT -priority {first}"
        " ORDER BY -priority LIMIT 1) FROM queues UNION ALL SELECT account, words,"
        f" (SELECT -priority {ready} AND -priority > heads.rank ORDER BY -priority LIMIT 1) FROM heads"
        f" WHERE rank IS NOT NULL) SELECT min((SELECT place {ready} AND -priority = heads.rank ORDER BY place LIMIT 1))"
        " FROM heads WHERE rank IS NOT NULL"
    )


_COUNTED = "SELECT DISTINCT account FROM task_counts WHERE state = 'pending' AND total > 0"
_NEXT_SET = (
    "SELECT requires FROM tasks WHERE tasks.account = {0}.account AND ready AND requires IS NOT NULL{1}"
    " ORDER BY requires LIMIT 1"
)
OLDEST_READY = _oldest_in(f"queues AS (SELECT account, NULL AS words FROM ({_COUNTED}) AS counted)", "requires IS NULL")
OLDEST_REQUIRING = _oldest_in(
    f"sets (account, words) AS (SELECT account, ({_NEXT_SET.format('counted', '')}) FROM ({_COUNTED}) AS counted"
    f" UNION ALL SELECT account, ({_NEXT_SET.format('sets', ' AND requires > sets.words')}) FROM sets"
    " WHERE words IS NOT NULL), queues AS (SELECT account, words FROM sets WHERE words IS NOT NULL)",
    "requires = heads.words",
)
LIVE_SESSIONS = page_of(Session, "account = ? AND id > ? AND ended_at IS NULL AND expires_at > ?", "id")
SESSIONS = page_of(Session, "account = ? AND id > ?", "id")
ALL_AFTER: dict[type[Any], str] = {
    record: f"SELECT {columns(record)} FROM {TABLES[record][0]} WHERE ({', '.join(TABLES[record][1])}) >"
    f" ({', '.join('?' * len(TABLES[record][1]))}) ORDER BY {', '.join(TABLES[record][1])} LIMIT ?"
    for record in (Answer, BrowserSession, Delivery)
}
"""Records beside the rows and the log, in the order of their keys."""

# -- housekeeping ------------------------------------------------------------------------------------------------

BEAT = "UPDATE state SET alive_at = ?, clean = FALSE"
CLOSE_OUTAGE = "UPDATE state SET clean = TRUE WHERE alive_at = ?"
MINIMUM_SCHEMA = "SELECT minimum_schema FROM state"
LAST_BEAT = "SELECT alive_at FROM state WHERE NOT clean"
OLD_ANSWERS = "answered_at < ? ORDER BY answered_at"
# Locks the row too, so that servers that borrow from the same budget wait for each other.
OPEN_BUDGET = (
    "INSERT INTO budgets (subject, class, started_at, used) VALUES (?, ?, ?, 0)"
    " ON CONFLICT (subject, class) DO UPDATE SET used = budgets.used"
    " RETURNING coalesce(started_at, 0), coalesce(used, 0)"
)
SAVE_BUDGET = "UPDATE budgets SET started_at = ?, used = ? WHERE subject = ? AND class = ?"
SAVE_KEY_USES = (
    "INSERT INTO key_uses (account, id, used_at) SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS bigint)"
    " FROM json_each(?) WHERE true ORDER BY 1, 2 ON CONFLICT (account, id)"
    " DO UPDATE SET used_at = excluded.used_at WHERE excluded.used_at > key_uses.used_at"
)
SAVE_BROWSER_SESSION = f"INSERT INTO badges ({columns(BrowserSession)}) VALUES (?, ?, ?, ?, ?, ?, ?)"
UPDATE_BROWSER_SESSION = "UPDATE badges SET seen_at = ? WHERE id = ? AND seen_at < ?"
DELETE_SURPLUS_BROWSER_SESSIONS = (
    "DELETE FROM badges WHERE key_hash = ? AND kind = ? AND id NOT IN (SELECT id FROM badges"
    f" WHERE key_hash = ? AND kind = ? ORDER BY made_at DESC, id DESC LIMIT {MAX_PER_KEY}) RETURNING 1"
)
TAKE_BROWSER_SESSION = f"DELETE FROM badges WHERE id = ? RETURNING {columns(BrowserSession)}"
FORGET_BROWSER_SESSIONS = (
    f"DELETE FROM badges WHERE kind = 'invitation' AND made_at + {LINK_LIFETIME} <= ?"
    f" OR kind = 'visit' AND (seen_at + {IDLE_TIMEOUT} <= ? OR made_at + {MAX_LIFETIME} <= ?) RETURNING 1"
)
ERASED = (
    *((row.table, "account, id") for row in ROW_TYPES),
    ("task_dependencies", "account, needed, dependent"),
    ("reserved_paths", "account, space, prefix, id"),
    ("budgets", "subject, class"),
    ("task_counts", "account, type, state"),
    ("usage", "account"),
    ("key_uses", "account, id"),
    ("badges", "id"),
    ("answers", "account, key"),
    ("deliveries", "account, hook, seq"),
    ("webhook_cursors", "account, id"),
    ("rollups", "account, length, start"),
    ("rollup_cursors", "account"),
    ("events", "account, seq"),
    ("event_counters", "account"),
)
"""Every table with records of accounts, and its key. They are erased in this order: rows first, so that none expires
later, and the counter of the log last."""
ALLOW_ERASING_EVENTS = "UPDATE event_counters SET floor = seq WHERE account = ?"
RAISE_FLOOR = "UPDATE event_counters SET floor = ? WHERE account = ? AND floor < ?"
FORGOTTEN_EVENTS = "account = ? AND seq <= ? ORDER BY seq"
