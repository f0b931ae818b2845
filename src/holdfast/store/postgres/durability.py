"""Durability of commits on PostgreSQL: what a COMMIT waits for, and settings under which no COMMIT is durable.

Settings are made inside each transaction, because a pooler may stand between: it gives the next transaction another
session.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from holdfast.core.errors import OutcomeUnknown
from holdfast.store.contract import NotDurable
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import COMMIT_SECONDS, Connection, is_broken
from holdfast.store.sql import migrations

_SET_SCHEMA = f"set_config('holdfast.schema', '{migrations.newest_schema(__package__)}', true)"
"""Tells the database which schema this server knows: it refuses the writes of a server that knows too old a one."""
_SYNCHRONOUS_COMMIT = "current_setting('synchronous_commit')"
# Only ever raised: a stricter `remote_apply` stays.
_WAIT_FOR_FLUSH = (
    f"set_config('synchronous_commit', CASE WHEN {_SYNCHRONOUS_COMMIT} IN ('off', 'local') THEN 'on'"
    f" ELSE {_SYNCHRONOUS_COMMIT} END, true)"
)
_REPORT_WARNINGS = "set_config('client_min_messages', 'warning', true)"
"""A database can be configured to report errors alone: a COMMIT without its standbys would then look like any other."""
STANDBYS = "synchronous_standby_names"
SET_FOR_COMMIT = (
    f"SELECT current_setting('{STANDBYS}'), {_WAIT_FOR_FLUSH}, {_SET_SCHEMA}, {_REPORT_WARNINGS},"
    " set_config('lock_timeout', $1, true), set_config('statement_timeout', '0', true)"
)
"""After the rows of a batch: COMMIT waits until the batch is on disk, and on the standbys if any. Its first value names
those standbys.

Answers and counters follow. They are locked while other servers commit, so a batch waits longer for them than for its
rows.
A timeout must not cancel COMMIT: it would then count as done before the standbys have it.
"""
_COMMIT = f"SET LOCAL statement_timeout = 0; {queries.COMMIT}"
_BEGIN_DURABLE = f"{queries.BEGIN}; SELECT {_WAIT_FOR_FLUSH}, {_SET_SCHEMA}, {_REPORT_WARNINGS}"
SAFE_SETTINGS = {"fsync": "on", "full_page_writes": "on", "data_sync_retry": "off"}
"""With `data_sync_retry` PostgreSQL goes on after a failed flush, although the kernel may have dropped the data."""
KEPT_BY_STORAGE = frozenset({"fsync", "full_page_writes"})
"""What some hosted databases turn off, because their storage keeps the log itself and never writes half a page."""

log = logging.getLogger("holdfast.store")


@contextmanager
def durable_transaction(connection: Connection) -> Iterator[None]:
    """A transaction outside of batches; leaving it normally commits, leaving it in any other way changes nothing."""
    connection.execute(_BEGIN_DURABLE, prepare=False)
    try:
        yield
    except BaseException:
        if not is_broken(connection):
            connection.execute(queries.ROLLBACK)
        raise
    if connection.answer_seconds is not None:
        connection.answer_seconds = max(connection.answer_seconds, COMMIT_SECONDS)
    try:
        with confirmed_commit(connection):
            connection.execute(_COMMIT, prepare=False)
    except psycopg.Error as error:
        if is_broken(connection):
            raise OutcomeUnknown("the connection broke while the change was being committed") from error
        raise


@contextmanager
def confirmed_commit(connection: Connection) -> Iterator[None]:
    """Raise OutcomeUnknown if PostgreSQL committed without its standbys: somebody cancelled the wait for them.

    It reports such a COMMIT as done, with a warning. A failover loses what the standbys do not have. The text of the
    warning is in the language of the database and its code is that of every warning, so any warning counts.
    """
    warnings: list[str | None] = []

    def on_notice(notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary)

    connection.add_notice_handler(on_notice)
    try:
        yield
    finally:
        connection.remove_notice_handler(on_notice)
    if warnings:
        log.warning("PostgreSQL committed with a warning: %s", warnings[0])
        raise unconfirmed()


def unconfirmed() -> OutcomeUnknown:
    """The error of a change that no standby may have."""
    return OutcomeUnknown("the change is committed here, but no standby has confirmed it")


def check_durable(connection: Connection, *, require_standby: bool = False, durable_storage: bool = False) -> None:
    """Raise NotDurable if the database can lose or damage what was committed: in a crash, or in a failover."""
    names = (*SAFE_SETTINGS, STANDBYS)
    columns = ", ".join(f"current_setting('{name}', true)" for name in names)
    found = dict(zip(names, connection.execute(f"SELECT {columns}").fetchone() or (), strict=True))
    standbys = found.pop(STANDBYS)
    problem = durability_problem(found, durable_storage=durable_storage)
    if problem is None and require_standby and not standbys:
        problem = (
            f"PostgreSQL runs with an empty {STANDBYS}, so a failover can lose acknowledged writes: configure a"
            " synchronous standby (with Patroni: synchronous_mode and synchronous_mode_strict), or unset"
            " HOLDFAST_POSTGRES_REQUIRE_STANDBY"
        )
    if problem is not None:
        raise NotDurable(problem)


def durability_problem(values: dict[str, str | None], *, durable_storage: bool = False) -> str | None:
    """What is unsafe about these settings of PostgreSQL, and what to do; None if they are safe or do not exist.

    `durable_storage`: the operator knows that the storage does what the settings of `KEPT_BY_STORAGE` are for.
    """
    kept = KEPT_BY_STORAGE if durable_storage else frozenset()
    unsafe = [name for name, value in values.items() if name not in kept and value not in {None, SAFE_SETTINGS[name]}]
    if not unsafe:
        return None
    found = " and ".join(f"{name} = {values[name]}" for name in unsafe)
    wanted = " and ".join(f"{name} = {SAFE_SETTINGS[name]}" for name in unsafe)
    advice = f"set {wanted} in postgresql.conf and restart PostgreSQL"
    if KEPT_BY_STORAGE.issuperset(unsafe):
        advice += ", or HOLDFAST_POSTGRES_DURABLE_STORAGE=true if it is a hosted one whose storage keeps every commit"
    return f"PostgreSQL runs with {found}, so a failure of its machine can lose acknowledged writes: {advice}"
