"""The statements about deliveries, for both dialects (written as described in `sql/queries.py`).

A `{}` in a statement is replaced by a condition. To limit it to the first rows, each dialect has `first_rows`.
"""

from __future__ import annotations

from typing import get_type_hints

from holdfast.core.webhooks.delivery import Delivery
from holdfast.core.webhooks.webhook import Webhook
from holdfast.store.sql.page_queries import page_of

_COLUMNS = ", ".join(Delivery.__struct_fields__)
_HOOK = ", ".join(f"hook.{name}" for name in Webhook.__struct_fields__)
_NEW = "json_each(?) AS new"
"""Records of a JSON document, each an array."""


def _number(position: int) -> str:
    return f"CAST(new.value ->> {position} AS bigint)"


_ADDED = ", ".join(
    _number(position) if "int" in str(kind) else f"new.value ->> {position}"
    for position, kind in enumerate(get_type_hints(Delivery).values())
)

# -- reading -----------------------------------------------------------------------------------------------------

ACTIVE = "SELECT account, id FROM webhooks WHERE state = 'active' ORDER BY account, id"
# A webhook with enough pending deliveries does not read further: the log itself is its queue.
LAGGING = (
    f"SELECT {_HOOK}, place.seq, counter.floor, counter.seq FROM webhooks AS hook"
    " JOIN event_counters AS counter ON counter.account = hook.account"
    " LEFT JOIN webhook_cursors AS place ON place.account = hook.account AND place.id = hook.id"
    " WHERE hook.state = 'active' AND (hook.account, hook.id) > (?, ?)"
    " AND coalesce(place.seq, -1) < counter.seq AND (SELECT count(*) FROM (SELECT 1"
    " FROM deliveries AS one WHERE one.account = hook.account AND one.hook = hook.id AND one.state = 'pending'"
    " LIMIT ?) AS undecided) < ? ORDER BY hook.account, hook.id LIMIT ?"
)
# The first delivery of each subject if it is due, of active webhooks; not of webhooks and accounts at their limits.
_DUE = (
    " FROM deliveries AS one WHERE state = 'pending' AND next_at <= ?"
    " AND (claimed_until IS NULL OR claimed_until <= ?)"
    " AND NOT EXISTS (SELECT 1 FROM deliveries AS earlier WHERE earlier.account = one.account"
    " AND earlier.hook = one.hook AND earlier.subject = one.subject AND earlier.state = 'pending'"
    " AND earlier.seq < one.seq)"
    " AND EXISTS (SELECT 1 FROM webhooks AS hook"
    " WHERE hook.account = one.account AND hook.id = one.hook AND hook.state = 'active')"
    f" AND (account, hook) NOT IN (SELECT new.value ->> 0, new.value ->> 1 FROM {_NEW})"
    f" AND account NOT IN (SELECT new.value ->> 0 FROM {_NEW})"
    " ORDER BY next_at, account, hook, seq LIMIT ?"
)
IS_DUE = f"SELECT 1{_DUE}"
DUE_DELIVERIES = f"SELECT {_COLUMNS}{_DUE}"
PAGE = page_of(
    Delivery,
    "account = ? AND hook = ? AND (CAST(? AS text) IS NULL OR state = ?) AND seq < ?",
    "seq",
    order="DESC",
)
COUNTS = "SELECT state, count(*) FROM deliveries WHERE account = ? AND hook = ? GROUP BY state"
# Deliveries above the last one that arrived are pending, of which there are few, or dead, which all have attempts.
_FAILED = (
    f"SELECT {_COLUMNS} FROM deliveries WHERE account = ? AND hook = ? AND attempts > 0 AND seq > (SELECT"
    " coalesce(max(seq), -1) FROM deliveries WHERE account = ? AND hook = ? AND state = 'delivered' AND seq >= 0)"
    " ORDER BY seq"
)
FIRST_FAILED = f"{_FAILED} LIMIT 1"
LAST_FAILED = f"{_FAILED} DESC LIMIT 1"

# -- writing -----------------------------------------------------------------------------------------------------

MOVE_CURSOR = (
    "INSERT INTO webhook_cursors (account, id, seq) VALUES (?, ?, ?)"
    " ON CONFLICT (account, id) DO UPDATE SET seq = excluded.seq WHERE webhook_cursors.seq = ? RETURNING 1"
)
ADD = (
    f"INSERT INTO deliveries ({_COLUMNS}) SELECT {_ADDED} FROM {_NEW} WHERE EXISTS"
    " (SELECT 1 FROM webhooks WHERE account = new.value ->> 0 AND id = new.value ->> 1)"
    " ON CONFLICT (account, hook, seq) DO NOTHING RETURNING 1"
)
_SAME = f"old.account = new.value ->> 0 AND old.hook = new.value ->> 1 AND old.seq = {_number(2)}"
RECORD_ATTEMPTS = (
    f"UPDATE deliveries AS old SET claimed_until = NULL, state = new.value ->> 4, attempts = {_number(5)},"
    f" next_at = {_number(6)}, status = {_number(7)}, error = new.value ->> 8, settled_at = {_number(9)}"
    f" FROM {_NEW} WHERE {_SAME} AND old.claims = {_number(3)} AND old.state = 'pending'"
    " RETURNING account, hook, seq"
)
# Later deliveries of a subject wait at least as long as the one before them.
DELAY_SUBJECT = (
    f"UPDATE deliveries AS old SET next_at = {_number(3)} FROM {_NEW} WHERE old.account = new.value ->> 0"
    " AND old.hook = new.value ->> 1 AND old.subject = new.value ->> 2 AND old.state = 'pending'"
    f" AND old.next_at < {_number(3)} RETURNING 1"
)
CLAIM = (
    f"UPDATE deliveries AS old SET claims = old.claims + 1, claimed_until = {_number(3)} FROM {_NEW}"
    f" WHERE {_SAME} RETURNING 1"
)
REPLAY = (
    "UPDATE deliveries SET state = 'pending', attempts = 0, next_at = ?, claims = claims + 1, claimed_until = NULL,"
    " settled_at = NULL WHERE {} RETURNING seq, subject"
)
ONE = "account = ? AND hook = ? AND seq = ?"
SETTLED_AFTER = "account = ? AND hook = ? AND settled_at IS NOT NULL AND seq > ? ORDER BY seq"
ALL_DEAD = "account = ? AND hook = ? AND state = 'dead' ORDER BY seq"
# Deliveries that waited for an earlier one of their subject need not wait until its former retry time.
RETRY_SUBJECT_NOW = (
    f"UPDATE deliveries AS old SET next_at = {_number(4)} FROM {_NEW} WHERE old.account = new.value ->> 0"
    " AND old.hook = new.value ->> 1 AND old.subject = new.value ->> 2 AND old.state = 'pending'"
    f" AND old.seq > {_number(3)} AND old.next_at > {_number(4)} RETURNING 1"
)
RETRY_NOW = (
    "UPDATE deliveries SET next_at = ? WHERE account = ? AND hook = ? AND state = 'pending' AND next_at > ? RETURNING 1"
)

# -- housekeeping ------------------------------------------------------------------------------------------------

DELETE = "DELETE FROM deliveries WHERE {} RETURNING 1"
OLD = "(state = 'delivered' AND settled_at < ?) OR (state = 'dead' AND settled_at < ?)"
OF_HOOK = "account = ? AND hook = ?"
# A webhook that was deleted before it began to read has no cursor, but it may have test deliveries.
DELETED_HOOKS = (
    "SELECT account, id FROM (SELECT account, id FROM webhook_cursors"
    " UNION SELECT account, hook FROM deliveries WHERE state = 'pending') AS place WHERE NOT EXISTS"
    " (SELECT 1 FROM webhooks WHERE account = place.account AND id = place.id) LIMIT 100"
)
DELETE_CURSOR = "DELETE FROM webhook_cursors WHERE account = ? AND id = ? RETURNING 1"
