"""Moves the counters of a restored store beyond everything that was lost; `core.gap` has the rule."""

from __future__ import annotations

import apsw
import msgspec
from msgspec.structs import astuple, replace

from holdfast.backup.revoked import Keys
from holdfast.backup.sqlite import SqliteEndpoint
from holdfast.core.log_gap import counter_jump, restore_event
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.row import Instant
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import queries

_MOVE_LOG = "INSERT INTO event_counters (account, seq) VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq"


class Used(msgspec.Struct, frozen=True):
    """What is known to have been used: what the store had that the backup takes the place of."""

    token: int = 0
    logs: dict[str, int] = {}
    keys: Keys = {}


def move_ahead(connection: apsw.Connection, taken_at: Instant, used: Used) -> int:
    """Let both counters jump, and mark the gap in every log; the newest token from now on.

    The server's own account is marked even if its log was still empty: somebody may have read what came later.
    """
    connection.execute("BEGIN IMMEDIATE")
    side = SqliteEndpoint(connection)
    _, now, boot_id, boot_at = next(iter(connection.execute(queries.STATE)))
    reading = clocks.read()
    at = clocks.advance(clocks.Mark(now, boot_id, boot_at), reading)
    token: int = max(side.state()["token"], used.token) + counter_jump(taken_at, reading.wall)
    for account, last in ({DEFAULT_ACCOUNT: 0} | side.logs()).items():
        mark = restore_event(account, last, taken_at, reading.wall, used=used.logs.get(account, 0))
        connection.execute(queries.insert_event(1), astuple(replace(mark, at=at)))
        connection.execute(_MOVE_LOG, (account, mark.seq))
    connection.execute("UPDATE state SET token = ?", (token,))
    connection.execute("COMMIT")
    return token
