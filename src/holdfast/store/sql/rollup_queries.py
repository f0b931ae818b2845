"""Statements that SQLite and PostgreSQL share, about roll-ups; written as in `queries.py`."""

from __future__ import annotations

from holdfast.core.event import RENEWALS, Event
from holdfast.store.sql.page_queries import columns

_RENEWALS = ", ".join(f"'{kind}'" for kind in RENEWALS)

UNCOUNTED = (
    "SELECT counter.account, place.seq, counter.floor, counter.seq FROM event_counters AS counter"
    " LEFT JOIN rollup_cursors AS place ON place.account = counter.account"
    " WHERE coalesce(place.seq, -1) < counter.seq AND (place.seq IS NULL OR place.saved_at <= ?)"
    " ORDER BY coalesce(place.saved_at, 0), counter.account LIMIT ?"
)
COUNTED_UNTIL = "SELECT seq, counted_to FROM rollup_cursors WHERE account = ?"
# The row stays locked until the transaction ends, so that two servers never merge into one roll-up at once.
MOVE_CURSOR = (
    "UPDATE rollup_cursors SET seq = ?, counted_to = ?, saved_at = ? WHERE account = ? AND seq = ? RETURNING 1"
)
ADD_CURSOR = (
    "INSERT INTO rollup_cursors (seq, counted_to, saved_at, account) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (account) DO NOTHING RETURNING 1"
)
BODY = "SELECT body FROM rollups WHERE account = ? AND length = ? AND start = ?"
SAVE = (
    "INSERT INTO rollups (account, length, start, body) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (account, length, start) DO UPDATE SET body = excluded.body"
)
DELETE_OLD = "DELETE FROM rollups WHERE account = ? AND length = ? AND start < ?"
PAGE = (
    "SELECT start, body FROM rollups WHERE account = ? AND length = ? AND start >= coalesce((SELECT max(start)"
    " FROM rollups WHERE account = ? AND length = ? AND start < ?), 0) ORDER BY start"
)
# Of each task its type, and its last event below a version that is not a renewal. The type is a subquery, because
# PostgreSQL would join all tasks of the account as long as it has no statistics of them.
TASKS_BEFORE = (
    "SELECT wanted.value ->> 0, (SELECT type FROM tasks WHERE account = ? AND id = wanted.value ->> 0),"
    f" {columns(Event, 'event.')} FROM json_each(?) AS wanted"
    " LEFT JOIN events AS event ON event.account = ? AND event.subject = 'task:' || (wanted.value ->> 0)"
    " AND event.version = (SELECT earlier.version FROM events AS earlier WHERE earlier.account = ?"
    " AND earlier.subject = 'task:' || (wanted.value ->> 0)"
    " AND earlier.version < CAST(wanted.value ->> 1 AS bigint)"
    f" AND earlier.kind NOT IN ({_RENEWALS}) ORDER BY earlier.version DESC LIMIT 1)"
)
DELAYED_TASKS = (
    "SELECT type, count(*) FROM (SELECT type FROM tasks WHERE account = ? AND state = 'pending' AND NOT ready LIMIT ?)"
    " AS delayed GROUP BY type"
)
