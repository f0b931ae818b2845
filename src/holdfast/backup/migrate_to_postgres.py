"""`holdfast migrate` into PostgreSQL: page by page, resumable.

Each page is committed together with how far the copy has come, so an interrupted copy continues from there.
"""

from __future__ import annotations

import hashlib

import msgspec

from holdfast.backup.backup import MAX_SHOWN, refuse_differences
from holdfast.backup.copy import compare, shared_tables
from holdfast.backup.endpoint import CopyRefused, Endpoint, OnProgress, Table, pages
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.postgres_target import wait_for_clock
from holdfast.backup.resume_marker import ResumeMarker
from holdfast.engine.verify import verify
from holdfast.settings import Settings
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres.connection import connect
from holdfast.store.postgres.durability import check_durable
from holdfast.store.postgres.errors import translate_errors


def copy_into_database(source: Endpoint, to: Settings, report: OnProgress, *, check: bool) -> dict[str, int]:
    """Copy a store into an empty database, or continue a copy that was interrupted; the records of each table."""
    with translate_errors(), connect(to.store, pooled=to.postgres_pooled) as connection:
        if not to.postgres_pooled:
            PostgresEndpoint(connection).refuse_other_connections()
        check_durable(connection, durable_storage=to.postgres_durable_storage)
        copied = ResumeMarker(connection, stamp(source))
        copied.begin()
        target = PostgresEndpoint(connection)
        wait_for_clock(target, source.state()["now"])
        tables = shared_tables(source, target)
        _copy_rest(source, target, tables, copied, report)
        try:
            _refuse_left_out(target)
            counts = compare(source, target, tables, report)
            if check:
                _check_database(to, report)
        except CopyRefused:
            copied.discard()
            raise
        copied.finish(target, source.state())
    return counts


def _copy_rest(
    source: Endpoint, target: PostgresEndpoint, tables: list[Table], copied: ResumeMarker, report: OnProgress
) -> None:
    """Copy what an earlier run has not copied yet."""
    total = sum(source.count(table) for table in tables)
    report("copied", copied.position.done, total)
    for table in tables:
        if table.name < copied.position.table:
            continue
        after = tuple(copied.position.key) if table.name == copied.position.table else None
        for page in pages(source, table, after):
            copied.put(target, table, page)
            report("copied", copied.position.done, total)


def _refuse_left_out(target: PostgresEndpoint) -> None:
    """Raise CopyRefused with the first few rows that the database refuses."""
    if target.left_out:
        raise CopyRefused(f"the database refuses damaged rows: {'; '.join(target.left_out[:MAX_SHOWN])}")


def _check_database(to: Settings, report: OnProgress) -> None:
    store = PostgresStore(to.store, pooled=to.postgres_pooled, durable_storage=to.postgres_durable_storage)
    try:
        found = verify(store, lambda step, count: report(f"verified {step}", count, 0)).differences
    finally:
        store.close()
    refuse_differences(found)


def stamp(source: Endpoint) -> str:
    """Identifies the state of a source: every commit moves its clock."""
    counts = {name: source.count(table) for name, table in sorted(source.tables.items())}
    return hashlib.sha256(msgspec.json.encode([source.state(), source.logs(), counts], order="sorted")).hexdigest()
