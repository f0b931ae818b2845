"""The translation of PostgreSQL's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from holdfast.core.errors import ServerOutdated, StoreFull, StoreUnavailable, Trouble, ValueRefused
from holdfast.store.contract import Rerun, RowsLocked, StaleConnection
from holdfast.store.rows import ROW_TYPES

_RERUN = {"40001", "40P01"}
_EXISTS, _MISSING = "23505", "23502"
"""A row that a batch inserts was made meanwhile; a row that it updates or deletes has changed (`update_row`)."""
_KEYS = {"tasks_one_live", "answers_pkey", *(f"{row_type.table}_pkey" for row_type in ROW_TYPES)}
_FULL = {"53100"}
_OUTDATED = "HF001"
"""Raised by the triggers of `raise_minimum.sql`."""
_VALUE_CLASSES = {"22", "23", "54", "P0"}
"""SQLSTATE classes: data, constraints, program limits, and what our own triggers refuse."""


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
    if state in _RERUN or _lost_race(error):
        return Rerun(str(error))
    if state in _FULL:
        return StoreFull("the database's disk is full")
    if state == _OUTDATED:
        return ServerOutdated(_first_line(error))
    if state[:2] in _VALUE_CLASSES or isinstance(error, psycopg.DataError):
        return ValueRefused(f"the database refused a value: {_first_line(error)}")
    return StoreUnavailable(f"the database cannot be used: {_first_line(error)}")


def _lost_race(error: psycopg.Error) -> bool:
    """Whether another transaction made or changed a row that the batch had loaded."""
    if error.sqlstate == _EXISTS:
        return error.diag.constraint_name in _KEYS
    return error.sqlstate == _MISSING and error.diag.column_name == "account"


def _first_line(error: psycopg.Error) -> str:
    """The first line of the database's message, without the password of an address in it."""
    return re.sub(r"//[^/@\s]*@", "//…@", next(iter(str(error).splitlines()), type(error).__name__))
