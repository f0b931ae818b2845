"""Connections to PostgreSQL, each of which waits a bounded time for an answer."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from holdfast.core.errors import StoreUnavailable

T = TypeVar("T")

CONNECT_SECONDS = 3
ANSWER_SECONDS = 10.0
"""How long we wait for an answer of the database. Then the connection is dropped."""
COMMIT_SECONDS = 15.0
"""How long we wait for the answer to COMMIT. It is never cancelled: a cancelled COMMIT counts as done before the
standbys have it."""
LONG_ANSWER_SECONDS = 35.0
"""The same for statements that delete many rows: longer than their `statement_timeout`."""
PREPARE_AFTER = 2
_DEFAULTS: dict[str, str | int] = {
    "connect_timeout": CONNECT_SECONDS,
    # A host that vanishes sends no word. What it does not acknowledge for 3 s, or an idle connection that does not
    # answer probes for about 7 s, is lost.
    "tcp_user_timeout": 3000,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "target_session_attrs": "read-write",
    "application_name": "holdfast",
}
MIN_VERSION = 15
"""The oldest PostgreSQL that has all statements: MERGE is new in 15."""
LOCK_SECONDS = 5.0
"""How long a statement waits for a lock, so that a server that stops in a transaction cannot block others for ever."""
ROW_LOCK_SECONDS = 0.3
"""How long a batch waits for a row: its other commands wait as well (`engine/batches/locked_rows.py`)."""
SESSION_SETTINGS = {
    "lock_timeout": f"{LOCK_SECONDS}s",
    "idle_in_transaction_session_timeout": "10s",
    "statement_timeout": "30s",
    # All our statements find their rows by key. A plan made while a table is small would scan the whole table, and
    # stay in use while it grows: after 14,000 claims, a claim took 8 ms instead of 2.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""Settings of our database sessions. A pooler shares sessions, so behind one they are set in each transaction."""
LANE_SETTINGS = SESSION_SETTINGS | {
    "lock_timeout": f"{ROW_LOCK_SECONDS}s",
    "enable_bitmapscan": "off",
    # A plan for the ids at hand looks cheaper than one for any ids, so each statement would be planned every time: half
    # a millisecond for a batch of one.
    "plan_cache_mode": "force_generic_plan",
    # The steps along an index look expensive enough to be compiled, which takes longer than to run them: a claim with
    # capabilities took 8 ms instead of 4.
    "jit": "off",
}
"""Settings of the sessions that run batches."""


class NoAnswer(psycopg.OperationalError):
    """The database has not answered in time, and the connection was dropped."""

    def __init__(self) -> None:
        super().__init__("it does not answer")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is dropped when the database does not answer in time."""

    answer_seconds: float | None = None
    """How long it waits for an answer; None is for ever."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for an answer."""
        if timeout is not None or self.answer_seconds is None:
            return super().wait(gen, interval, timeout)
        deadline = time.monotonic() + self.answer_seconds
        try:
            return super().wait(gen, interval, self.answer_seconds)
        except psycopg.OperationalError as error:
            if time.monotonic() < deadline or is_broken(self):
                raise
            self.close()
            raise NoAnswer from error


class Connector:
    """Opens the connections of a store.

    While a host does not respond, an attempt lasts seconds. After one failed, all others fail at once for as long as it
    took, so that a long queue of callers is answered soon.
    """

    def __init__(self, url: str, *, pooled: bool) -> None:
        self._url = url
        self._pooled = pooled
        self._retry_at = 0.0

    def connect(self, settings: dict[str, str] = SESSION_SETTINGS) -> Connection:
        """A connection that waits a bounded time for each answer."""
        began = time.monotonic()
        if began < self._retry_at:
            raise psycopg.OperationalError("it did not accept a connection a moment ago")
        try:
            connection = connect(self._url, pooled=self._pooled, settings=settings)
        except psycopg.Error:
            failed = time.monotonic()
            self._retry_at = failed + (failed - began)
            raise
        connection.answer_seconds = ANSWER_SECONDS
        return connection


def connect(url: str, *, pooled: bool = False, settings: dict[str, str] = SESSION_SETTINGS) -> Connection:
    """A connection in autocommit mode: every statement commits by itself unless a transaction was begun.

    It waits for answers without a bound, for migrations and copies.
    """
    configured = conninfo_to_dict(url)
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    defaults = _DEFAULTS if pooled else _DEFAULTS | {"options": options}
    conninfo = make_conninfo(url, **{name: value for name, value in defaults.items() if name not in configured})
    return Connection.connect(conninfo, autocommit=True, prepare_threshold=None if pooled else PREPARE_AFTER)


def check_version(connection: Connection) -> None:
    """Refuse a PostgreSQL that is too old."""
    version = connection.info.server_version
    if version < MIN_VERSION * 10_000:
        raise StoreUnavailable(f"this is PostgreSQL {version // 10_000}, and Holdfast needs {MIN_VERSION} or newer")


def is_broken(connection: Connection) -> bool:
    """Whether the connection cannot be used any more."""
    return connection.closed or connection.broken


def is_idle(connection: Connection) -> bool:
    """Whether the connection works and is outside of a transaction."""
    return not is_broken(connection) and connection.info.transaction_status == TransactionStatus.IDLE
