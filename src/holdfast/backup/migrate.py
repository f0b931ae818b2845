"""`holdfast migrate`: everything that a store holds, into another database, exactly as it is.

Into PostgreSQL it goes page by page, each together with how far the copy has come, so that whoever was interrupted
goes on from there. Into a file it goes at once: half a file has no name.
"""

from __future__ import annotations

import hashlib
from contextlib import closing

import msgspec

from holdfast.backup.backup import check_sound, refuse_differences
from holdfast.backup.copy import compare, shared_tables
from holdfast.backup.database import wait_for_clock
from holdfast.backup.endpoint import CopyRefused, Endpoint, Table, Tell, pages
from holdfast.backup.files import placed
from holdfast.backup.postgres import PostgresEndpoint
from holdfast.backup.resume_marker import ResumeMarker
from holdfast.backup.source import source_of
from holdfast.backup.sqlite import SqliteEndpoint, seal
from holdfast.engine.verify import verify
from holdfast.settings import Settings, sqlite_path
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres.connection import connect, translated
from holdfast.store.sqlite.store import connect as connect_file


def migrate(settings: Settings, to: Settings, tell: Tell, *, check: bool = True) -> dict[str, int]:
    """Copy a store that nobody serves; how many records each table has now on both sides."""
    if "memory:" in {settings.store, to.store}:
        raise CopyRefused("a store in memory is gone with its process: it cannot be migrated")
    with source_of(settings, alone=True) as source:
        if not to.store.startswith("sqlite:///"):
            if not settings.store.startswith("sqlite:///"):
                raise CopyRefused("both are PostgreSQL: pg_dump and pg_restore do that, with every server stopped")
            return _into_database(source.side, to, tell, check=check)
        with placed(sqlite_path(to.store), replace=False) as partial:
            source.write(partial, tell)
            with closing(connect_file(partial)) as connection:
                side = SqliteEndpoint(connection)
                counts = compare(source.side, side, shared_tables(side, source.side), tell)
            if check:
                check_sound(partial, tell)
            with closing(connect_file(partial)) as connection:
                seal(connection)
        return counts


def _into_database(source: Endpoint, to: Settings, tell: Tell, *, check: bool) -> dict[str, int]:
    with translated(), connect(to.store, pooled=to.postgres_pooled) as connection:
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
