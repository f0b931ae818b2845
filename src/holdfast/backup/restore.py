"""`holdfast restore`: a backup becomes a store again, with its counters ahead of everything that was lost."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from holdfast.backup import header as headers
from holdfast.backup.advance_counters import Used, move_ahead
from holdfast.backup.backup import check_sound
from holdfast.backup.endpoint import CopyRefused, Tell
from holdfast.backup.files import placed, refuse_existing, scratch, told
from holdfast.backup.header import Header
from holdfast.backup.revoked import carry_over, forget_browser_sessions, keys_of
from holdfast.backup.sqlite import SqliteEndpoint, alone_with, copy_pages, looking, open_file, remove_left_over, seal
from holdfast.settings import Settings, sqlite_path
from holdfast.store.sql import migrations
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.store import connect

SQLITE = "holdfast.store.sqlite"


class Restored(msgspec.Struct, frozen=True):
    """What came of it."""

    backup: Header
    token: int
    """No token up to this one will ever be granted again."""
    keys_ended: int
    """Keys that the store which went had revoked, or given another secret, since the backup was taken."""
    keys_unknown: bool
    """No such store was there: whatever was revoked since then works again."""


def restore(settings: Settings, path: Path, tell: Tell, *, replace: bool = False, check: bool = True) -> Restored:
    """Put a backup back where the settings say."""
    if settings.store == "memory:":
        raise CopyRefused("a store in memory would be gone at once: name a file or a database")
    if settings.store.startswith("sqlite:///"):
        return _into_file(sqlite_path(settings.store), path, tell, replace=replace, check=check)
    return _into_database(settings, path, tell, replace=replace, check=check)


def _into_file(target: Path, path: Path, tell: Tell, *, replace: bool, check: bool) -> Restored:
    """Made ready beside it; it takes the name at once, and whole."""
    with told(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        if replace:
            remove_left_over(target)
        # Never with `replace`: a server that makes the file meanwhile promises things in it.
        with placed(target, replace=False) as partial:
            return _prepare(partial, path, Used(), tell, check=check)
    if path.exists() and target.samefile(path):
        raise CopyRefused("a backup cannot take its own place: name another file")
    if not replace:
        refuse_existing(target)
    with alone_with(target) as old, placed(target, replace=True) as partial:
        return _prepare(partial, path, _used_by(SqliteEndpoint(old), target), tell, check=check)


def _used_by(side: SqliteEndpoint, path: Path) -> Used:
    """What the store that goes has used."""
    if not side.tables:
        return Used()
    if "event_counters" not in side.tables:
        raise CopyRefused(f"{path} is the file of some other program: move it away first")
    return Used(side.state()["token"], side.logs(), keys_of(side))


def _into_database(settings: Settings, path: Path, tell: Tell, *, replace: bool, check: bool) -> Restored:
    """Made ready as a file, then copied in one transaction: the database has all of it, or what it had before."""
    from holdfast.backup.database import filling

    with filling(settings, replace=replace) as database, scratch() as folder:
        ready = folder / "restored.db"
        with placed(ready, replace=False) as partial:
            outcome = _prepare(partial, path, Used(database.token, database.logs, database.keys), tell, check=check)
        with looking(ready) as file:
            database.fill(SqliteEndpoint(file), tell)
    return outcome


def _prepare(partial: Path, path: Path, used: Used, tell: Tell, *, check: bool) -> Restored:
    """A store made of a backup, with the newest schema and its counters ahead."""
    with closing(open_file(path, read_only=True)) as backup:
        with told(path):
            header = headers.read(backup, path)
        migrations.pending(SQLITE, header.schema)  # refuses what a newer Holdfast wrote
        copy_pages(backup, partial, tell)
    with closing(connect(partial)) as connection:
        if headers.count(SqliteEndpoint(connection)) != header.counts:
            raise CopyRefused(f"{path} does not hold what its header says: it is damaged")
        headers.remove(connection)
    store = SqliteStore(partial)
    store.open()
    store.close()
    with closing(connect(partial)) as connection:
        forget_browser_sessions(connection)
        token = move_ahead(connection, header.taken_at, used)
    store = SqliteStore(partial)
    ended = carry_over(store, used.keys)
    store.close()
    if check:
        check_sound(partial, tell)
    with closing(connect(partial)) as connection:
        seal(connection)
    return Restored(header, token, ended, keys_unknown=not used.keys)
