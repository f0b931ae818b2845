"""Connections to PostgreSQL, and what their errors mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.core.errors import StoreFull, StoreUnavailable, Trouble, ValueRefused
from holdfast.store.contract import Rerun, Severed

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 3
PREPARE_AFTER = 2
_DEFAULTS: dict[str, str | int] = {
    "connect_timeout": CONNECT_SECONDS,
    "tcp_user_timeout": 3000,
    "target_session_attrs": "read-write",
    "application_name": "holdfast",
}
MANNERS = {
    # A server that stands still in the middle of a batch must not hold up all the others for ever.
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
    "statement_timeout": "30s",
    # Every statement of ours finds its rows by key. A plan made while the tables were small would scan them whole, and
    # be kept while they grow: a claim took 8 ms instead of 2 after 14,000 others.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""How our sessions behave. A pooler hands sessions around, so behind one they are set in each transaction."""
_RERUN = {"40001", "40P01"}
_FULL = {"53100"}
_VALUE_CLASSES = {"22", "23", "54", "P0"}
"""Data, constraints, program limits, and what our own triggers refuse."""


def connect(url: str, *, pooled: bool = False) -> Connection:
    """A connection on which every statement commits by itself unless we say BEGIN."""
    given = conninfo_to_dict(url)
    options = " ".join(f"-c {name}={value}" for name, value in MANNERS.items())
    defaults = _DEFAULTS if pooled else _DEFAULTS | {"options": options}
    conninfo = make_conninfo(url, **{name: value for name, value in defaults.items() if name not in given})
    return psycopg.connect(conninfo, autocommit=True, prepare_threshold=None if pooled else PREPARE_AFTER)


def is_broken(connection: Connection) -> bool:
    """Whether nothing more can be said on it."""
    return connection.closed or connection.broken


@contextmanager
def translated() -> Iterator[None]:
    """Say in our words what went wrong. Raised before COMMIT, all of these mean: not applied."""
    try:
        yield
    except (Trouble, Rerun, Severed):
        raise
    except psycopg.Error as error:
        raise meaning(error) from error


def meaning(error: psycopg.Error) -> Exception:
    """What an SQLSTATE asks us to do."""
    state = error.sqlstate or ""
    if state in _RERUN or error.diag.constraint_name == "tasks_one_live":
        return Rerun(str(error))
    if state in _FULL:
        return StoreFull("the database's disk is full")
    if state[:2] in _VALUE_CLASSES or isinstance(error, psycopg.DataError):
        return ValueRefused(f"the database refused a value: {_line(error)}")
    return StoreUnavailable(f"the database cannot be used: {_line(error)}")


def _line(error: psycopg.Error) -> str:
    """The first line of what the database says, without the password of an address it repeats."""
    return re.sub(r"//[^/@\s]*@", "//…@", next(iter(str(error).splitlines()), type(error).__name__))
