"""The store on a SQLite file: opening, transactions, reads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from holdfast.core.errors import ServerOutdated, StoreUnavailable
from holdfast.core.row import Instant
from holdfast.store.contract import Clock, NewerSchema
from holdfast.store.sql import migrations
from holdfast.store.sql import queries as sql
from holdfast.store.sql.store import Execute, SqlStore
from holdfast.store.sqlite import clock as clocks
from holdfast.store.sqlite import flush_failure, queries
from holdfast.store.sqlite.claim_start import ClaimStarts
from holdfast.store.sqlite.errors import TRANSLATE_ERRORS
from holdfast.store.sqlite.fair_lock import WAIT_SECONDS, FairLock
from holdfast.store.sqlite.file_modes import make_private
from holdfast.store.sqlite.reader import SqliteReader
from holdfast.store.sqlite.transaction import SqliteTransaction, current_time
from holdfast.store.sqlite.watcher import PollingWatcher

BUSY_MILLISECONDS = 5_000
THREAD_SECONDS = 15.0
"""How long a writer waits for other threads of its process; each of them waits a bounded time for other processes."""
CHECKPOINT_PAGES = 4_000
"""The WAL is copied into the file when it has 16 MB: the batch that has to do it pauses, so it is done rarely."""
WRITER_CACHE_KIB = 8_000
"""Pages that the writer keeps. With SQLite's own 2 MB it would read three times as many from the file again."""


class SqliteStore(SqlStore):
    """One file: one writer at a time, and readers that do not wait for it."""

    lanes = 1
    name = "sqlite"
    is_local = True
    dialect = queries
    package = __package__
    checkpoint_pages = CHECKPOINT_PAGES
    wait_seconds = WAIT_SECONDS
    """How long a writer waits for other processes."""

    def __init__(self, path: str | Path, clock: Clock | None = None) -> None:
        super().__init__()
        self.path = Path(path).resolve()
        self._clock = clock
        self._writing = threading.RLock()
        self._writer: apsw.Connection | None = None
        self._claim_starts = ClaimStarts()
        self._fair_lock: FairLock | None = None
        self._readers: list[apsw.Connection] = []
        self.clock_jump: Instant = 0

    def open(self) -> None:
        """Create the file if need be, readable by its owner only, and bring the schema up to date."""
        with TRANSLATE_ERRORS:
            flush_failure.check(self.path)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._fair_lock = self._fair_lock or FairLock(self.path)
            with self._fair_lock.take(self.wait_seconds):
                connection = self._connect()
                try:
                    self._migrate(connection)
                    make_private(self.path)  # not before: a file that is no store is left as it is
                    self.clock_jump = self._find_clock_jump(connection)
                except BaseException as error:
                    flush_failure.record(self.path, error)
                    self._close(connection)
                    raise
                connection.pragma("cache_size", -WRITER_CACHE_KIB)
                self._writer = connection
                self._claim_starts.forget()

    def _connect(self) -> apsw.Connection:
        connection = connect(self.path)
        connection.set_wal_hook(self._checkpoint_if_long)
        return connection

    def _migrate(self, connection: apsw.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            migrations.check_is_store({name for (name,) in connection.execute(queries.TABLES)})
            applied = connection.pragma("user_version")
            for number, script in migrations.pending(self.package, applied, _minimum_schema(connection)):
                connection.execute(script)
                connection.pragma("user_version", number)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _find_clock_jump(self, connection: apsw.Connection) -> Instant:
        """How much time has passed since the last commit, if that was in another boot."""
        state: Any = connection.execute(queries.STATE).fetchone()
        mark, reading = clocks.Mark(*state[1:]), clocks.read()
        is_used = mark.now > 0 and mark.boot_id not in {"", reading.boot_id}
        return current_time(self._clock, mark, reading) - mark.now if is_used else 0

    def _checkpoint_if_long(self, connection: apsw.Connection, database: str, pages: int) -> int:
        """Copy a long WAL into the file after a commit. SQLite's own automatic checkpoint hides a failed flush."""
        if pages >= self.checkpoint_pages:
            try:
                connection.wal_checkpoint(database)
            except apsw.Error as error:  # the commit itself is in the WAL and flushed
                flush_failure.record(self.path, error)
        return apsw.SQLITE_OK

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[SqliteTransaction]:
        """Begin a batch: take the fair lock, then the file's write lock."""
        with TRANSLATE_ERRORS:
            writer = self._take_writer()
            try:
                assert self._fair_lock is not None
                with self._fair_lock.take(self.wait_seconds):
                    try:
                        writer.execute("BEGIN IMMEDIATE")
                        transaction = SqliteTransaction(writer, self._clock, self.damaged_rows, self._claim_starts)
                        yield transaction
                        transaction.commit()
                    except BaseException as error:
                        flush_failure.record(self.path, error)
                        self._abandon(writer)
                        raise
            finally:
                self._writing.release()

    def await_open_batches(self) -> None:
        """Do nothing: a batch begins when the one before it, of any process, has ended."""

    @contextmanager
    def reserve(self) -> Iterator[bool]:
        """Keep other writers out while this thread runs batches, if none writes now or waits to."""
        if self._fair_lock is None or not self._writing.acquire(blocking=False):
            yield False
            return
        try:
            is_free = self._fair_lock.try_reserve()
            try:
                yield is_free
            finally:
                if is_free:
                    self._fair_lock.free()
        finally:
            self._writing.release()

    def _take_writer(self) -> apsw.Connection:
        """The connection that writes, until `_writing` is released: for one thread at a time; opened if need be."""
        if not self._writing.acquire(timeout=THREAD_SECONDS):
            raise StoreUnavailable(f"other writes to {self.path} have taken longer than {THREAD_SECONDS:g} s")
        try:
            # Checked by the thread whose turn it is: the flush may have failed while it waited.
            flush_failure.check(self.path)
            if self._writer is None:
                self._reopen()
            assert self._writer is not None
        except BaseException:
            self._writing.release()
            raise
        return self._writer

    def _reopen(self) -> None:
        """Open the file again; a newer Holdfast may have upgraded it meanwhile."""
        try:
            self.open()
        except NewerSchema as error:
            raise ServerOutdated(str(error)) from error

    def _abandon(self, writer: apsw.Connection) -> None:
        """Roll back; close the connection if it cannot."""
        try:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
        except apsw.Error:
            self._close(writer)
            self._writer = None

    def _close(self, connection: apsw.Connection) -> None:
        """Close a connection. SQLite copies the WAL into the file at the last one, but not after a failed flush."""
        if flush_failure.has_failed(self.path):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close(force=True)

    @contextmanager
    def write(self) -> Iterator[tuple[Execute, Instant]]:
        """Begin a transaction outside of batches; its statements have no limit of time."""
        with self.transaction() as transaction:
            yield transaction.execute, transaction.now

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """Begin reading one snapshot, on a connection that no other reader uses."""
        with TRANSLATE_ERRORS:
            connection = self._idle_reader()
            try:
                connection.execute("BEGIN")
                yield SqliteReader(connection, self._clock, self.damaged_rows)
            except apsw.Error:
                self._close(connection)
                raise
            except BaseException:
                self._end_read(connection)
                raise
            self._end_read(connection)

    def _end_read(self, connection: apsw.Connection) -> None:
        """End the snapshot and keep the connection for the next reader."""
        try:
            connection.execute("ROLLBACK")
        except BaseException:
            self._close(connection)
            raise
        self._readers.append(connection)

    def _idle_reader(self) -> apsw.Connection:
        try:
            return self._readers.pop()
        except IndexError:  # several threads take from the list, so a check before would race
            return self._connect()

    def watch(self, on_change: Callable[[], None]) -> PollingWatcher:
        """Poll the file's change counter while a caller waits."""
        return PollingWatcher(self._data_version, on_change)

    def _data_version(self) -> int | None:
        """A number that changes when another process has committed; read on the writer, it ignores our own commits."""
        with self._writing:
            return None if self._writer is None else int(self._writer.pragma("data_version"))

    def check_durable(self) -> None:
        """Do nothing: this store sets how commits are flushed itself."""

    def size(self) -> int:
        """Bytes of the main file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Close every connection; SQLite then copies the WAL into the file."""
        for connection in [*self._readers, *([self._writer] if self._writer else [])]:
            self._close(connection)
        self._readers, self._writer = [], None
        if self._fair_lock is not None:
            self._fair_lock.close()
            self._fair_lock = None


def connect(path: Path) -> apsw.Connection:
    """A connection that may write to the file."""
    connection = apsw.Connection(str(path), statementcachesize=200)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    connection.pragma("journal_mode", "wal")
    for pragma, value in durability_pragmas(sys.platform):
        connection.pragma(pragma, value)
    connection.pragma("mmap_size", 0)
    # Plans do not depend on arguments. Otherwise SQLite prepares a statement that may use a partial index again each
    # time it is executed, which takes ten times as long as executing it.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.create_scalar_function("holdfast_writer", _check_writer)
    return connection


def _minimum_schema(connection: apsw.Connection) -> int | None:
    """The store's minimum schema; None if the file has none: it is new, older than that record, or no store."""
    if not connection.execute(queries.HAS_MINIMUM_SCHEMA).fetchone():
        return None
    row: Any = connection.execute(sql.MINIMUM_SCHEMA).fetchone()
    return int(row[0])


def durability_pragmas(platform: str) -> list[tuple[str, str | int]]:
    """The settings that make every commit and checkpoint durable on this platform."""
    flushed: list[tuple[str, str | int]] = [("synchronous", "full")]
    if platform == "darwin":  # there fsync leaves the data in the drive's cache; F_FULLFSYNC empties that too
        flushed += [("fullfsync", 1), ("checkpoint_fullfsync", 1)]
    return flushed


def _check_writer(*minimum_schema: Any) -> None:
    """The function that the trigger on `state` calls: programs that do not define it cannot write."""
    migrations.check_minimum(SqliteStore.package, max(minimum_schema, default=0))
