"""What must not come back with a backup: visits and links, and keys that were taken away after it was made."""

from __future__ import annotations

from typing import Any

import apsw
from msgspec.structs import replace

from holdfast.backup.endpoint import Endpoint, pages
from holdfast.core.event import Cause
from holdfast.core.log_gap import ACTOR
from holdfast.core.principal import Principal
from holdfast.engine.view import View
from holdfast.store.contract import Store
from holdfast.store.needs import AllNeeds, Needs

AT_ONCE = 500
CREDENTIAL = frozenset(
    {"source", "key_hash", "shown", "revoked_at", "expires_at", "old_key_hash", "old_until", "listed_hash"}
)
"""Which secrets open a key, and until when."""

Keys = dict[tuple[str, str], dict[str, Any]]
"""By account and id, the columns of each. An older Holdfast may not have had all of them."""


def keys_of(side: Endpoint) -> Keys:
    """The keys of a store that goes."""
    table = side.tables[Principal.table]
    found = (dict(zip(table.columns, record, strict=True)) for page in pages(side, table) for record in page)
    return {(key["account"], key["id"]): key for key in found}


def forget_browser_sessions(connection: apsw.Connection) -> None:
    """A link that was used, or a visit that was ended, would let somebody in again."""
    connection.execute("DELETE FROM badges")


def carry_over(store: Store, keys: Keys) -> int:
    """Let no key work again that the store which goes had revoked or rotated away; how many that were."""
    changed = 0
    places = sorted(keys)
    for first in range(0, len(places), AT_ONCE):
        some = places[first : first + AT_ONCE]
        with store.transaction() as transaction:
            view = View(transaction.load(AllNeeds.of([Needs(rows=tuple((Principal.table, *place) for place in some))])))
            view.cause = Cause(ACTOR, "")
            restored = (view.find(Principal, *place) for place in some)
            newer = [after for key in restored if key is not None and (after := _newer(key, keys[key.key[1:]])) != key]
            for key in newer:
                view.put(key, "changed" if key.revoked_at is None else "revoked")
            if newer:
                transaction.save(view.changes([]))
        changed += len(newer)
    return changed


def _newer(key: Principal, known: dict[str, Any]) -> Principal:
    """A key as the other store knows it, if it is the same key and more has been done to it there.

    What is revoked on either side stays so: the store that goes may itself be one that was put back, and older.
    """
    if key.created_at != known["created_at"] or key.revoked_at is not None:
        return key
    if known["revoked_at"] is None and known["changed_at"] <= key.changed_at:
        return key
    return replace(key, **{name: value for name, value in known.items() if name in CREDENTIAL})
