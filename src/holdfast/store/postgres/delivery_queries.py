"""Every statement about deliveries that we say to PostgreSQL; `sqlite/delivery_queries.py` has them in its words."""

from __future__ import annotations

from typing import get_type_hints

from holdfast.core.webhooks.delivery import Delivery
from holdfast.core.webhooks.webhook import Webhook

_COLUMNS = ", ".join(Delivery.__struct_fields__)
_TYPES = ["bigint" if "int" in str(kind) else "text" for kind in get_type_hints(Delivery).values()]
_HOOK = ", ".join(f"hook.{name}" for name in Webhook.__struct_fields__)
_NEW = "json_array_elements(%s::json) AS new(value)"
_ADDED = ", ".join(f"(new.value ->> {place})::{kind}" for place, kind in enumerate(_TYPES))


def _number(place: int) -> str:
    return f"(new.value ->> {place})::bigint"


# -- looking -----------------------------------------------------------------------------------------------------

ACTIVE = "SELECT account, id FROM webhooks WHERE state = 'active' ORDER BY account, id"
# Whoever has enough under way does not read on: the log itself is the queue.
BEHIND = (
    f"SELECT {_HOOK}, place.seq, counter.floor, counter.seq FROM webhooks AS hook"
    " JOIN event_counters AS counter ON counter.account = hook.account"
    " LEFT JOIN webhook_cursors AS place ON place.account = hook.account AND place.id = hook.id"
    " WHERE hook.state = 'active' AND (hook.account, hook.id) > (%s, %s)"
    " AND coalesce(place.seq, -1) < counter.seq AND (SELECT count(*) FROM (SELECT 1"
    " FROM deliveries AS one WHERE one.account = hook.account AND one.hook = hook.id AND one.state = 'pending'"
    " LIMIT %s) AS undecided) < %s ORDER BY hook.account, hook.id LIMIT %s"
)
# The first of each line whose time has come, of webhooks that are active, where they and their accounts have places.
_DUE = (
    " FROM deliveries AS one WHERE state = 'pending' AND next_at <= %s"
    " AND (claimed_until IS NULL OR claimed_until <= %s)"
    " AND NOT EXISTS (SELECT 1 FROM deliveries AS ahead WHERE ahead.account = one.account AND ahead.hook = one.hook"
    " AND ahead.subject = one.subject AND ahead.state = 'pending' AND ahead.seq < one.seq)"
    " AND EXISTS (SELECT 1 FROM webhooks AS hook"
    " WHERE hook.account = one.account AND hook.id = one.hook AND hook.state = 'active')"
    f" AND (account, hook) NOT IN (SELECT new.value ->> 0, new.value ->> 1 FROM {_NEW})"
    f" AND account NOT IN (SELECT new.value ->> 0 FROM {_NEW})"
    " ORDER BY next_at, account, hook, seq LIMIT %s"
)
DUE = f"SELECT 1{_DUE}"
# What another server takes in hand just now is passed over; its commit decides whose it is.
CANDIDATES = f"SELECT {_COLUMNS}{_DUE} FOR UPDATE OF one SKIP LOCKED"
PAGE = (
    f"SELECT {_COLUMNS} FROM deliveries WHERE account = %s AND hook = %s"
    " AND (%s::text IS NULL OR state = %s) AND seq < %s ORDER BY seq DESC LIMIT %s"
)
COUNTS = "SELECT state, count(*) FROM deliveries WHERE account = %s AND hook = %s GROUP BY state"

# -- writing -----------------------------------------------------------------------------------------------------

MOVE = (
    "INSERT INTO webhook_cursors (account, id, seq) VALUES (%s, %s, %s)"
    " ON CONFLICT (account, id) DO UPDATE SET seq = excluded.seq WHERE webhook_cursors.seq = %s RETURNING 1"
)
ADD = (
    f"INSERT INTO deliveries ({_COLUMNS}) SELECT {_ADDED} FROM {_NEW} WHERE EXISTS"
    " (SELECT 1 FROM webhooks WHERE account = new.value ->> 0 AND id = new.value ->> 1)"
    " ON CONFLICT (account, hook, seq) DO NOTHING RETURNING 1"
)
_SAME = f"old.account = new.value ->> 0 AND old.hook = new.value ->> 1 AND old.seq = {_number(2)}"
SETTLE = (
    f"UPDATE deliveries AS old SET claimed_until = NULL, state = new.value ->> 4, attempts = {_number(5)},"
    f" next_at = {_number(6)}, status = {_number(7)}, error = new.value ->> 8, settled_at = {_number(9)}"
    f" FROM {_NEW} WHERE {_SAME} AND old.claims = {_number(3)} AND old.state = 'pending'"
    " RETURNING account, hook, seq"
)
# Those who stand behind one that must wait need not be looked at before it.
STAND_BEHIND = (
    f"UPDATE deliveries AS old SET next_at = {_number(3)} FROM {_NEW} WHERE old.account = new.value ->> 0"
    " AND old.hook = new.value ->> 1 AND old.subject = new.value ->> 2 AND old.state = 'pending'"
    f" AND old.next_at < {_number(3)} RETURNING 1"
)
CLAIM = (
    f"UPDATE deliveries AS old SET claims = old.claims + 1, claimed_until = {_number(3)} FROM {_NEW}"
    f" WHERE {_SAME} RETURNING 1"
)
_AGAIN = (
    "UPDATE deliveries SET state = 'pending', attempts = 0, next_at = %s, claims = claims + 1, claimed_until = NULL,"
    " settled_at = NULL WHERE"
)
REPLAY_ONE = f"{_AGAIN} account = %s AND hook = %s AND seq = %s RETURNING seq, subject"


def _these(condition: str) -> str:
    """So many of the deliveries that are like this."""
    return f"ctid = ANY (ARRAY (SELECT ctid FROM deliveries WHERE {condition} LIMIT %s))"


_AFTER = _these("account = %s AND hook = %s AND settled_at IS NOT NULL AND seq > %s ORDER BY seq")
_DEAD = _these("account = %s AND hook = %s AND state = 'dead' ORDER BY seq")
REPLAY_AFTER = f"{_AGAIN} {_AFTER} RETURNING seq, subject"
REPLAY_DEAD = f"{_AGAIN} {_DEAD} RETURNING seq, subject"
# Whoever stood behind one that waited need not wait for its old time.
HASTEN_LINE = (
    f"UPDATE deliveries AS old SET next_at = {_number(4)} FROM {_NEW} WHERE old.account = new.value ->> 0"
    " AND old.hook = new.value ->> 1 AND old.subject = new.value ->> 2 AND old.state = 'pending'"
    f" AND old.seq > {_number(3)} AND old.next_at > {_number(4)} RETURNING 1"
)
HASTEN = (
    "UPDATE deliveries SET next_at = %s WHERE account = %s AND hook = %s AND state = 'pending' AND next_at > %s"
    " RETURNING 1"
)

# -- keeping house -----------------------------------------------------------------------------------------------

_OLD = _these("(state = 'delivered' AND settled_at < %s) OR (state = 'dead' AND settled_at < %s)")
FORGET = f"DELETE FROM deliveries WHERE {_OLD} RETURNING 1"
# One that was deleted before it began to read has no cursor, but it may have been tested.
LOST = (
    "SELECT account, id FROM (SELECT account, id FROM webhook_cursors"
    " UNION SELECT account, hook FROM deliveries WHERE state = 'pending') AS place WHERE NOT EXISTS"
    " (SELECT 1 FROM webhooks WHERE account = place.account AND id = place.id) LIMIT 100"
)
FORGET_LOST = f"DELETE FROM deliveries WHERE {_these('account = %s AND hook = %s')} RETURNING 1"
FORGET_CURSOR = "DELETE FROM webhook_cursors WHERE account = %s AND id = %s RETURNING 1"
