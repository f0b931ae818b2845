"""Data that a restored store takes over from the store that it replaces, so that nothing is granted or valid twice.

Tokens and event numbers must not be given out twice, so both counters jump beyond everything that was lost
(`core.log_gap` has the rule). Keys that were revoked or rotated after the backup was taken must not work again.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec
from msgspec.structs import astuple, replace

from holdfast.backup.endpoint import Endpoint, pages
from holdfast.backup.sqlite import SqliteEndpoint
from holdfast.core.event import Cause
from holdfast.core.log_gap import ACTOR, counter_jump, restore_event
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import Principal
from holdfast.core.row import Instant
from holdfast.engine.view import View
from holdfast.store.contract import Store
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import queries

KEYS_PER_BATCH = 500
CREDENTIAL_COLUMNS = frozenset(
    {"source", "key_hash", "shown", "revoked_at", "expires_at", "old_key_hash", "old_until", "listed_hash"}
)
"""Which secrets are valid for a key, and until when."""

Keys = dict[tuple[str, str], dict[str, Any]]
"""By account and id, the columns of each key. An older Holdfast may not have had all of them."""

_SET_LAST_EVENT = "INSERT INTO event_counters (account, seq) VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq"


class ReplacedStore(msgspec.Struct, frozen=True):
    """The counters and keys of the replaced store; empty if there was none."""

    token: int = 0
    logs: dict[str, int] = {}
    """By account: the last event."""
    keys: Keys = {}


def read_keys(endpoint: Endpoint) -> Keys:
    """The keys of the store that will be replaced."""
    table = endpoint.tables[Principal.table]
    found = (dict(zip(table.columns, record, strict=True)) for page in pages(endpoint, table) for record in page)
    return {(key["account"], key["id"]): key for key in found}


def delete_browser_sessions(connection: apsw.Connection) -> None:
    """Delete browser sessions and sign-in links: those used or ended since the backup would be valid again."""
    connection.execute("DELETE FROM badges")


def advance_counters(connection: apsw.Connection, taken_at: Instant, replaced: ReplacedStore) -> int:
    """Let both counters jump, and write an event that marks the gap to every log; returns the newest token.

    The default account's log is marked even if it was empty: a client may have read events that are lost now.
    """
    connection.execute("BEGIN IMMEDIATE")
    endpoint = SqliteEndpoint(connection)
    _, now, boot_id, boot_at = next(iter(connection.execute(queries.STATE)))
    reading = clocks.read()
    at = clocks.advance(clocks.Mark(now, boot_id, boot_at), reading)
    token: int = max(endpoint.state()["token"], replaced.token) + counter_jump(taken_at, reading.wall)
    for account, last in ({DEFAULT_ACCOUNT: 0} | endpoint.logs()).items():
        mark = restore_event(account, last, taken_at, reading.wall, used=replaced.logs.get(account, 0))
        connection.execute(queries.insert_event(1), astuple(replace(mark, at=at)))
        connection.execute(_SET_LAST_EVENT, (account, mark.seq))
    connection.execute("UPDATE state SET token = ?", (token,))
    connection.execute("COMMIT")
    return token


def end_revoked_keys(store: Store, keys: Keys) -> int:
    """Revoke or rotate the keys that the replaced store had revoked or rotated; returns how many."""
    changed = 0
    ids = sorted(keys)
    for first in range(0, len(ids), KEYS_PER_BATCH):
        batch = ids[first : first + KEYS_PER_BATCH]
        with store.transaction() as transaction:
            needs = Needs(rows=tuple((Principal.table, *key_id) for key_id in batch))
            view = View(transaction.load(AllNeeds.of([needs])))
            view.cause = Cause(ACTOR, "")
            restored = [key for key_id in batch if (key := view.find(Principal, *key_id)) is not None]
            newer = [after for key in restored if (after := _newer_credentials(key, keys[key.key[1:]])) != key]
            for key in newer:
                view.put(key, "changed" if key.revoked_at is None else "revoked")
            if newer:
                transaction.save(view.changes([]))
        changed += len(newer)
    return changed


def _newer_credentials(key: Principal, replaced: dict[str, Any]) -> Principal:
    """The key with the credentials of the replaced store, if it is the same key and they are newer.

    A key that is revoked in either store stays revoked: the replaced store may itself be a restored, older one.
    """
    if key.created_at != replaced["created_at"] or key.revoked_at is not None:
        return key
    if replaced["revoked_at"] is None and replaced["changed_at"] <= key.changed_at:
        return key
    return replace(key, **{name: value for name, value in replaced.items() if name in CREDENTIAL_COLUMNS})
