"""Connections to PostgreSQL, and the translation of its errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from holdfast.core.errors import StoreFull, StoreUnavailable, Trouble, ValueRefused
from holdfast.store.contract import Rerun, RowsLocked, StaleConnection

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 3
PREPARE_AFTER = 2
_DEFAULTS: dict[str, str | int] = {
    "connect_timeout": CONNECT_SECONDS,
    "tcp_user_timeout": 3000,
    "target_session_attrs": "read-write",
    "application_name": "holdfast",
}
LOCK_SECONDS = 5.0
"""How long a statement waits for a lock, so that a server that stops in a transaction cannot block others for ever."""
ROW_LOCK_SECONDS = 0.3
"""How long a batch waits for a row: the callers of its other commands wait as well (`engine/locked_rows.py`)."""
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
LANE_SETTINGS = SESSION_SETTINGS | {"lock_timeout": f"{ROW_LOCK_SECONDS}s"}
_RERUN = {"40001", "40P01"}
_FULL = {"53100"}
_VALUE_CLASSES = {"22", "23", "54", "P0"}
"""SQLSTATE classes: data, constraints, program limits, and what our own triggers refuse."""


def connect(url: str, *, pooled: bool = False, settings: dict[str, str] = SESSION_SETTINGS) -> Connection:
    """A connection in autocommit mode: every statement commits by itself unless a transaction was begun."""
    configured = conninfo_to_dict(url)
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    defaults = _DEFAULTS if pooled else _DEFAULTS | {"options": options}
    conninfo = make_conninfo(url, **{name: value for name, value in defaults.items() if name not in configured})
    return psycopg.connect(conninfo, autocommit=True, prepare_threshold=None if pooled else PREPARE_AFTER)


def is_broken(connection: Connection) -> bool:
    """Whether the connection cannot be used any more."""
    return connection.closed or connection.broken


def is_idle(connection: Connection) -> bool:
    """Whether the connection works and is outside of a transaction."""
    return not is_broken(connection) and connection.info.transaction_status == TransactionStatus.IDLE


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Holdfast's errors instead of psycopg's. One that is raised before COMMIT means that nothing was changed."""
    try:
        yield
    except (Trouble, Rerun, RowsLocked, StaleConnection):
        raise
    except psycopg.Error as error:
        raise translate(error) from error


def translate(error: psycopg.Error) -> Exception:
    """Holdfast's error for an error of PostgreSQL, by its SQLSTATE."""
    state = error.sqlstate or ""
    if state in _RERUN or error.diag.constraint_name == "tasks_one_live":
        return Rerun(str(error))
    if state in _FULL:
        return StoreFull("the database's disk is full")
    if state[:2] in _VALUE_CLASSES or isinstance(error, psycopg.DataError):
        return ValueRefused(f"the database refused a value: {_first_line(error)}")
    return StoreUnavailable(f"the database cannot be used: {_first_line(error)}")


def _first_line(error: psycopg.Error) -> str:
    """The first line of the database's message, without the password of an address in it."""
    return re.sub(r"//[^/@\s]*@", "//…@", next(iter(str(error).splitlines()), type(error).__name__))
