"""`holdfast restore`: makes a store from a backup, with counters beyond every number that can have been used."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
from msgspec.structs import replace as replace_fields

from holdfast.backup import header as headers
from holdfast.backup.backup import check_copy
from holdfast.backup.endpoint import CopyRefused, OnProgress
from holdfast.backup.files import explain_errors, refuse_existing, temporary_folder, write_atomically
from holdfast.backup.header import Header
from holdfast.backup.replaced_store import (
    ReplacedStore,
    advance_counters,
    delete_browser_sessions,
    end_revoked_keys,
    read_keys,
)
from holdfast.backup.restored_leases import end_leases
from holdfast.backup.sqlite import (
    SqliteEndpoint,
    copy_pages,
    leave_wal_mode,
    open_exclusively,
    open_file,
    open_snapshot,
    remove_stale_journals,
)
from holdfast.settings import Settings, sqlite_path
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite.store import connect


class Restored(msgspec.Struct, frozen=True):
    """The result of a restore."""

    backup: Header
    token: int
    """No token up to this one will ever be granted again."""
    keys_ended: int
    """Keys that the replaced store had revoked or rotated since the backup was taken."""
    leases_ended: int
    """Leases that were held when the backup was taken: their ids are void."""
    keys_unknown: bool
    """No store was replaced, so keys revoked or rotated since then work again."""
    damaged: list[str]
    """Rows that cannot be used, rows that were left out, and how the store differs from its log because of them."""


def restore(
    settings: Settings, path: Path, report: OnProgress, *, replace: bool = False, check: bool = True
) -> Restored:
    """Restore a backup to the store that the settings name."""
    if settings.store == "memory:":
        raise CopyRefused("an in-memory store ends with this process: name a file or a database")
    if settings.store.startswith("sqlite:///"):
        return _restore_file(sqlite_path(settings.store), path, report, replace=replace, check=check)
    return _restore_database(settings, path, report, replace=replace, check=check)


def _restore_file(target: Path, path: Path, report: OnProgress, *, replace: bool, check: bool) -> Restored:
    """Build the store under a temporary name, then rename it; a symbolic link keeps leading to the store."""
    target = target.resolve()
    with explain_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        if replace:
            remove_stale_journals(target)
        # Never with `replace`: a server that creates the file meanwhile may have granted leases in it.
        with write_atomically(target, replace=False) as partial:
            return _build_store(partial, path, ReplacedStore(), report, check=check)
    if path.exists() and target.samefile(path):
        raise CopyRefused("a backup cannot be restored onto itself: name another file")
    if not replace:
        refuse_existing(target)
    with open_exclusively(target) as old, write_atomically(target, replace=True) as partial:
        return _build_store(partial, path, _read_replaced(SqliteEndpoint(old), target), report, check=check)


def _read_replaced(endpoint: SqliteEndpoint, path: Path) -> ReplacedStore:
    """The counters and keys of the store that will be replaced."""
    if not endpoint.tables:
        return ReplacedStore()
    if "event_counters" not in endpoint.tables:
        raise CopyRefused(f"{path} is the file of another program: move it away first")
    return ReplacedStore(endpoint.state()["token"], endpoint.logs(), read_keys(endpoint))


def _restore_database(settings: Settings, path: Path, report: OnProgress, *, replace: bool, check: bool) -> Restored:
    """Build the store as a file, then copy it in one transaction: the database has all of it, or is unchanged."""
    from holdfast.backup.postgres_target import open_target

    with open_target(settings, replace=replace) as database, temporary_folder() as folder:
        ready = folder / "restored.db"
        with write_atomically(ready, replace=False) as partial:
            outcome = _build_store(
                partial, path, ReplacedStore(database.token, database.logs, database.keys), report, check=check
            )
        with open_snapshot(ready) as file:
            left_out = database.fill(SqliteEndpoint(file), report)
    return replace_fields(outcome, damaged=outcome.damaged + left_out)


def _build_store(partial: Path, path: Path, replaced: ReplacedStore, report: OnProgress, *, check: bool) -> Restored:
    """Make a store from a backup: newest schema, counters advanced, revoked keys and all leases ended."""
    with closing(open_file(path, read_only=True)) as backup:
        with explain_errors(path):
            header = headers.read(backup, path)
        copy_pages(backup, partial, report)
    with closing(connect(partial)) as connection:
        if headers.count(SqliteEndpoint(connection)) != header.counts:
            raise CopyRefused(f"{path} does not match its header: it is damaged")
        headers.remove(connection)
    store = SqliteStore(partial)
    store.open()
    store.close()
    with closing(connect(partial)) as connection:
        delete_browser_sessions(connection)
        token = advance_counters(connection, header.taken_at, replaced)
    store = SqliteStore(partial)
    keys_ended = end_revoked_keys(store, replaced.keys)
    leases_ended = end_leases(store)
    store.close()
    found = check_copy(partial, report, header.damaged) if check else []
    damaged = list(dict.fromkeys(header.damaged + found))
    with closing(connect(partial)) as connection:
        leave_wal_mode(connection)
    return Restored(header, token, keys_ended, leases_ended, keys_unknown=not replaced.keys, damaged=damaged)
