"""Every statement about deliveries that we say to SQLite; `postgres/delivery_queries.py` has them in its words."""

from __future__ import annotations

from holdfast.core.webhooks.delivery import Delivery
from holdfast.core.webhooks.webhook import Webhook

_COLUMNS = ", ".join(Delivery.__struct_fields__)
_HOOK = ", ".join(f"hook.{name}" for name in Webhook.__struct_fields__)
_NEW = "json_each(?) AS new"
_ADDED = ", ".join(f"new.value ->> {place}" for place in range(len(Delivery.__struct_fields__)))

# -- looking -----------------------------------------------------------------------------------------------------

ACTIVE = "SELECT account, id FROM webhooks WHERE state = 'active' ORDER BY account, id"
# Whoever has enough under way does not read on: the log itself is the queue.
BEHIND = (
    f"SELECT {_HOOK}, place.seq, counter.floor, counter.seq FROM webhooks AS hook"
    " JOIN event_counters AS counter ON counter.account = hook.account"
    " LEFT JOIN webhook_cursors AS place ON place.account = hook.account AND place.id = hook.id"
    " WHERE hook.state = 'active' AND (hook.account, hook.id) > (?, ?)"
    " AND coalesce(place.seq, -1) < counter.seq AND (SELECT count(*) FROM (SELECT 1"
    " FROM deliveries AS one WHERE one.account = hook.account AND one.hook = hook.id AND one.state = 'pending'"
    " LIMIT ?) AS undecided) < ? ORDER BY hook.account, hook.id LIMIT ?"
)
# The first of each line whose time has come, of webhooks that are active, where they and their accounts have places.
_DUE = (
    " FROM deliveries AS one WHERE state = 'pending' AND next_at <= ?"
    " AND (claimed_until IS NULL OR claimed_until <= ?)"
    " AND NOT EXISTS (SELECT 1 FROM deliveries AS ahead WHERE ahead.account = one.account AND ahead.hook = one.hook"
    " AND ahead.subject = one.subject AND ahead.state = 'pending' AND ahead.seq < one.seq)"
    " AND EXISTS (SELECT 1 FROM webhooks AS hook"
    " WHERE hook.account = one.account AND hook.id = one.hook AND hook.state = 'active')"
    f" AND (account, hook) NOT IN (SELECT new.value ->> 0, new.value ->> 1 FROM {_NEW})"
    f" AND account NOT IN (SELECT new.value ->> 0 FROM {_NEW})"
    " ORDER BY next_at, account, hook, seq LIMIT ?"
)
DUE = f"SELECT 1{_DUE}"
CANDIDATES = f"SELECT {_COLUMNS}{_DUE}"
PAGE = (
    f"SELECT {_COLUMNS} FROM deliveries WHERE account = ? AND hook = ?"
    " AND (? IS NULL OR state = ?) AND seq < ? ORDER BY seq DESC LIMIT ?"
)
COUNTS = "SELECT state, count(*) FROM deliveries WHERE account = ? AND hook = ? GROUP BY state"

# -- writing -----------------------------------------------------------------------------------------------------

MOVE = (
    "INSERT INTO webhook_cursors (account, id, seq) VALUES (?, ?, ?)"
    " ON CONFLICT (account, id) DO UPDATE SET seq = excluded.seq WHERE webhook_cursors.seq = ? RETURNING 1"
)
ADD = (
    f"INSERT INTO deliveries ({_COLUMNS}) SELECT {_ADDED} FROM {_NEW} WHERE EXISTS"
    " (SELECT 1 FROM webhooks WHERE account = new.value ->> 0 AND id = new.value ->> 1)"
    " ON CONFLICT (account, hook, seq) DO NOTHING RETURNING 1"
)
_SAME = "old.account = new.value ->> 0 AND old.hook = new.value ->> 1 AND old.seq = new.value ->> 2"
SETTLE = (
    f"UPDATE deliveries AS old SET claimed_until = NULL, state = new.value ->> 4, attempts = new.value ->> 5,"
    f" next_at = new.value ->> 6, status = new.value ->> 7, error = new.value ->> 8, settled_at = new.value ->> 9"
    f" FROM {_NEW} WHERE {_SAME} AND old.claims = new.value ->> 3 AND old.state = 'pending'"
    " RETURNING account, hook, seq"
)
# Those who stand behind one that must wait need not be looked at before it.
STAND_BEHIND = (
    f"UPDATE deliveries AS old SET next_at = new.value ->> 3 FROM {_NEW} WHERE old.account = new.value ->> 0"
    " AND old.hook = new.value ->> 1 AND old.subject = new.value ->> 2 AND old.state = 'pending'"
    f" AND old.next_at < new.value ->> 3 RETURNING 1"
)
CLAIM = (
    f"UPDATE deliveries AS old SET claims = old.claims + 1, claimed_until = new.value ->> 3 FROM {_NEW}"
    f" WHERE {_SAME} RETURNING 1"
)
_AGAIN = (
    "UPDATE deliveries SET state = 'pending', attempts = 0, next_at = ?, claims = claims + 1, claimed_until = NULL,"
    " settled_at = NULL WHERE"
)
REPLAY_ONE = f"{_AGAIN} account = ? AND hook = ? AND seq = ? RETURNING seq, subject"


def _these(condition: str) -> str:
    """So many of the deliveries that are like this."""
    return f"rowid IN (SELECT rowid FROM deliveries WHERE {condition} LIMIT ?)"


_AFTER = _these("account = ? AND hook = ? AND settled_at IS NOT NULL AND seq > ? ORDER BY seq")
_DEAD = _these("account = ? AND hook = ? AND state = 'dead' ORDER BY seq")
REPLAY_AFTER = f"{_AGAIN} {_AFTER} RETURNING seq, subject"
REPLAY_DEAD = f"{_AGAIN} {_DEAD} RETURNING seq, subject"
# Whoever stood behind one that waited need not wait for its old time.
HASTEN_LINE = (
    f"UPDATE deliveries AS old SET next_at = new.value ->> 4 FROM {_NEW} WHERE old.account = new.value ->> 0"
    " AND old.hook = new.value ->> 1 AND old.subject = new.value ->> 2 AND old.state = 'pending'"
    f" AND old.seq > new.value ->> 3 AND old.next_at > new.value ->> 4 RETURNING 1"
)
HASTEN = (
    "UPDATE deliveries SET next_at = ? WHERE account = ? AND hook = ? AND state = 'pending' AND next_at > ? RETURNING 1"
)

# -- keeping house -----------------------------------------------------------------------------------------------

_OLD = _these("(state = 'delivered' AND settled_at < ?) OR (state = 'dead' AND settled_at < ?)")
FORGET = f"DELETE FROM deliveries WHERE {_OLD} RETURNING 1"
# One that was deleted before it began to read has no cursor, but it may have been tested.
LOST = (
    "SELECT account, id FROM (SELECT account, id FROM webhook_cursors"
    " UNION SELECT account, hook FROM deliveries WHERE state = 'pending') AS place WHERE NOT EXISTS"
    " (SELECT 1 FROM webhooks WHERE account = place.account AND id = place.id) LIMIT 100"
)
FORGET_LOST = f"DELETE FROM deliveries WHERE {_these('account = ? AND hook = ?')} RETURNING 1"
FORGET_CURSOR = "DELETE FROM webhook_cursors WHERE account = ? AND id = ? RETURNING 1"
