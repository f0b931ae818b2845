"""`holdfast migrate` into PostgreSQL: page by page, resumable.

Each page is committed together with how far the copy has come, so an interrupted copy continues from there.
"""

from __future__ import annotations

import hashlib

import msgspec

from holdfast.backup.backup import refuse_differences
from holdfast.backup.copy import compare, shared_tables
from holdfast.backup.database import wait_for_clock
from holdfast.backup.endpoint import CopyRefused, Endpoint, Table, Tell, pages
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.resume_marker import ResumeMarker
from holdfast.engine.verify import verify
from holdfast.settings import Settings
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres.connection import connect, translate_errors


def copy_into_database(source: Endpoint, to: Settings, tell: Tell, *, check: bool) -> dict[str, int]:
    """Copy a store into an empty database, or continue a copy that was interrupted; the records of each table."""
    with translate_errors(), connect(to.store, pooled=to.postgres_pooled) as connection:
        if not to.postgres_pooled:
            PostgresEndpoint(connection).refuse_company()
        copied = ResumeMarker(connection, stamp(source))
        copied.begin()
        target = PostgresEndpoint(connection)
        wait_for_clock(target, source.state()["now"])
        tables = shared_tables(source, target)
        _copy_rest(source, target, tables, copied, tell)
        try:
            counts = compare(source, target, tables, tell)
            if check:
                _check_database(to, tell)
        except CopyRefused:
            copied.spoil()
            raise
        copied.finish(target, source.state())
    return counts


def _copy_rest(
    source: Endpoint, target: PostgresEndpoint, tables: list[Table], copied: ResumeMarker, tell: Tell
) -> None:
    """What an earlier run has not copied yet."""
    total = sum(source.count(table) for table in tables)
    tell("copied", copied.place.done, total)
    for table in tables:
        if table.name < copied.place.table:
            continue
        after = tuple(copied.place.key) if table.name == copied.place.table else None
        for page in pages(source, table, after):
            copied.put(target, table, page)
            tell("copied", copied.place.done, total)


def _check_database(to: Settings, tell: Tell) -> None:
    store = PostgresStore(to.store, pooled=to.postgres_pooled)
    try:
        found = verify(store, lambda what, how_many: tell(f"verified {what}", how_many, 0)).differences
    finally:
        store.close()
    refuse_differences(found)


def stamp(source: Endpoint) -> str:
    """Names one moment of a file: every commit moves its clock."""
    counts = {name: source.count(table) for name, table in sorted(source.tables.items())}
    return hashlib.sha256(msgspec.json.encode([source.state(), source.logs(), counts], order="sorted")).hexdigest()
