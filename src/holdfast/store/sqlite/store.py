"""The store on a SQLite file: opening, transactions, reads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from holdfast.core.errors import StoreFull, StoreUnavailable, Trouble, ValueRefused
from holdfast.core.row import Instant
from holdfast.store.contract import Clock
from holdfast.store.sql import migrations
from holdfast.store.sql.store import Execute, SqlStore
from holdfast.store.sqlite import queries
from holdfast.store.sqlite.fair_lock import FairLock
from holdfast.store.sqlite.reader import SqliteReader
from holdfast.store.sqlite.transaction import SqliteTransaction, sync_failed
from holdfast.store.sqlite.watcher import PollingWatcher

BUSY_MILLISECONDS = 5_000
CHECKPOINT_PAGES = 4_000
"""The WAL is copied into the file when it has 16 MB: the batch that has to do it pauses, so it is done rarely."""


class SqliteStore(SqlStore):
    """One file: one writer at a time, and readers that do not wait for it."""

    lanes = 1
    name = "sqlite"
    dialect = queries

    def __init__(self, path: str | Path, clock: Clock | None = None) -> None:
        super().__init__()
        self.path = Path(path)
        self._clock = clock
        self._writing = threading.Lock()
        self._writer: apsw.Connection | None = None
        self._fair_lock: FairLock | None = None
        self._readers: list[apsw.Connection] = []
        self._sync_failed = False

    def open(self) -> None:
        """Create the file if need be, readable by its owner only, and bring the schema up to date."""
        with _translate_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._fair_lock = self._fair_lock or FairLock(self.path)
            with self._fair_lock.take():
                connection = self._connect()
                self._migrate(connection)
                self._writer = connection

    def _connect(self) -> apsw.Connection:
        return connect(self.path)

    def _migrate(self, connection: apsw.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            migrations.check_is_store({name for (name,) in connection.execute(queries.TABLES)})
            for number, script in migrations.pending(__package__, connection.pragma("user_version")):
                connection.execute(script)
                connection.pragma("user_version", number)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[SqliteTransaction]:
        """Begin a batch: take the fair lock, then the file's write lock."""
        if self._sync_failed:
            raise StoreUnavailable(
                "the disk failed to sync, so the state of the file is uncertain: restart the server to check it"
            )
        with self._writing, _translate_errors():
            if self._writer is None:
                self.open()
            assert self._fair_lock is not None
            assert self._writer is not None
            with self._fair_lock.take():
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    transaction = SqliteTransaction(self._writer, self._clock)
                    yield transaction
                    transaction.commit()
                except BaseException as error:
                    # After a failed sync the kernel may drop what it could not write and report success next time,
                    # so nothing more is written until a restart has read the file back.
                    self._sync_failed = isinstance(error.__cause__, apsw.IOError) and sync_failed(error.__cause__)
                    self._abandon()
                    raise

    def _abandon(self) -> None:
        """Roll back; close the connection if it cannot."""
        assert self._writer is not None
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except apsw.Error:
            self._writer.close(force=True)
            self._writer = None

    @contextmanager
    def write(self) -> Iterator[tuple[Execute, Instant]]:
        """Begin a transaction outside of batches."""
        with self.transaction() as transaction:
            yield transaction.execute, transaction.now

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """Begin reading one snapshot, on a connection that no other reader uses."""
        with _translate_errors():
            connection = self._idle_reader()
            try:
                connection.execute("BEGIN")
                yield SqliteReader(connection, self._clock)
                connection.execute("ROLLBACK")
            except BaseException:
                connection.close(force=True)
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

    def size(self) -> int:
        """Bytes of the main file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Close every connection; SQLite then copies the WAL into the file."""
        for connection in [*self._readers, *([self._writer] if self._writer else [])]:
            connection.close()
        self._readers, self._writer = [], None
        if self._fair_lock is not None:
            self._fair_lock.close()
            self._fair_lock = None


def connect(path: Path) -> apsw.Connection:
    """A connection that may write to the file."""
    connection = apsw.Connection(str(path), statementcachesize=200)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("mmap_size", 0)
    connection.wal_autocheckpoint(CHECKPOINT_PAGES)
    connection.create_scalar_function("holdfast_writer", _allow_write, 0)
    return connection


def _allow_write(*_: object) -> None:
    """The function that the trigger on `state` calls: programs that do not define it cannot write."""


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise Holdfast's errors instead of SQLite's. One that is raised before COMMIT means that nothing was changed."""
    try:
        yield
    except Trouble:
        raise
    except apsw.FullError as error:
        raise StoreFull("the disk is full") from error
    except (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError, OverflowError, UnicodeError) as error:
        raise ValueRefused(f"the database refused a value: {error}") from error
    except (apsw.Error, OSError) as error:
        raise StoreUnavailable(f"the database file cannot be used: {error}") from error
