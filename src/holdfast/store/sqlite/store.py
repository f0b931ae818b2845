"""Open the file, begin batches, begin looks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from holdfast.core.browser_session import BrowserSession
from holdfast.core.budget import Budget, Terms
from holdfast.core.errors import StoreFull, StoreUnavailable, Trouble, ValueRefused
from holdfast.core.row import Instant
from holdfast.store import migrations
from holdfast.store.contract import Clock
from holdfast.store.sqlite import queries
from holdfast.store.sqlite.deliveries import SqliteDeliveries
from holdfast.store.sqlite.fair_lock import FairLock
from holdfast.store.sqlite.reader import SqliteReader
from holdfast.store.sqlite.transaction import SqliteTransaction, sync_failed
from holdfast.store.sqlite.watcher import PollingWatcher

BUSY_MILLISECONDS = 5_000
CHECKPOINT_PAGES = 4_000
"""A WAL of 16 MB before it is folded into the file: fewer pauses for the batch that has to do it."""


class SqliteStore:
    """One file, one writer at a time, readers beside it."""

    lanes = 1
    name = "sqlite"

    def __init__(self, path: str | Path, clock: Clock | None = None) -> None:
        self.path = Path(path)
        self._clock = clock
        self._writing = threading.Lock()
        self._writer: apsw.Connection | None = None
        self._turn: FairLock | None = None
        self._readers: list[apsw.Connection] = []
        self._sync_failed = False
        self.deliveries = SqliteDeliveries(self)

    def open(self) -> None:
        """Create the file if need be, readable by its owner only, and bring the schema up to date."""
        with _translated():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self._turn = self._turn or FairLock(self.path)
            with self._turn.take():
                connection = self._connect()
                self._migrate(connection)
                self._writer = connection

    def _connect(self) -> apsw.Connection:
        return connect(self.path)

    def _migrate(self, connection: apsw.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            migrations.refuse({name for (name,) in connection.execute(queries.TABLES)})
            for number, script in migrations.pending(__package__, connection.pragma("user_version")):
                connection.execute(script)
                connection.pragma("user_version", number)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[SqliteTransaction]:  # noqa: ARG002 - one lane only
        """Begin a batch: take our turn, then the file's write lock."""
        if self._sync_failed:
            raise StoreUnavailable("the disk failed to sync: what it holds is uncertain until a restart has checked it")
        with self._writing, _translated():
            if self._writer is None:
                self.open()
            assert self._turn is not None
            assert self._writer is not None
            with self._turn.take():
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
        """Undo, and let go of a connection that could not even do that."""
        assert self._writer is not None
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except apsw.Error:
            self._writer.close(True)  # noqa: FBT003 - apsw's word for "even if in use"
            self._writer = None

    @contextmanager
    def read(self) -> Iterator[SqliteReader]:
        """Begin a look on a connection of its own, which sees one moment."""
        with _translated():
            connection = self._idle_reader()
            try:
                connection.execute("BEGIN")
                yield SqliteReader(connection, self._clock)
                connection.execute("ROLLBACK")
            except BaseException:
                connection.close(True)  # noqa: FBT003 - apsw's word for "even if in use"
                raise
            self._readers.append(connection)

    def _idle_reader(self) -> apsw.Connection:
        try:
            return self._readers.pop()
        except IndexError:  # looked at by several threads, so asking first would not do
            return self._connect()

    def watch(self, on_change: Callable[[], None]) -> PollingWatcher:
        """Look at the file's change counter while somebody waits."""
        return PollingWatcher(self._foreign_version, on_change)

    def _foreign_version(self) -> int | None:
        """A number that moves when somebody else has committed; asked on the writer, it ignores our own commits."""
        with self._writing:
            return None if self._writer is None else int(self._writer.pragma("data_version"))

    def beat(self, *, clean: bool = False) -> None:
        """Write down that the file is served just now."""
        with self.transaction() as transaction:
            transaction.beat(clean=clean)

    def last_beat(self) -> tuple[Instant, Instant] | None:
        """When somebody last served this file, and now."""
        with self.read() as reader:
            (alive_at,) = next(iter(reader.look(queries.LAST_BEAT)), (None,))
            return None if alive_at is None else (alive_at, reader.now)

    def forget_answers(self, before: Instant, limit: int = 1_000) -> int:
        """Drop remembered answers older than that."""
        with self.transaction() as transaction:
            return transaction.forget_answers(before, limit)

    def forget_events(self, account: str, floor: int) -> None:
        """Remove the oldest events of an account."""
        with self.transaction() as transaction:
            transaction.forget_events(account, floor)

    def erase(self, account: str) -> None:
        """Remove everything of an account."""
        with self.transaction() as transaction:
            transaction.erase(account)

    def borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        """Take a slice of a budget."""
        with self.transaction() as transaction:
            return transaction.borrow(subject, limit_class, terms)

    def note_uses(self, uses: dict[tuple[str, str], Instant]) -> None:
        """When keys were last seen."""
        with self.transaction() as transaction:
            transaction.note_uses(uses)

    def save_browser_session(self, browser_session: BrowserSession) -> None:
        """Let a browser in, or note that it was seen."""
        with self.transaction() as transaction:
            transaction.save_browser_session(browser_session)

    def take_browser_session(self, badge_id: str) -> BrowserSession | None:
        """Remove a badge; the write lock lets one caller have it."""
        with self.transaction() as transaction:
            return transaction.take_browser_session(badge_id)

    def forget_browser_sessions(self) -> int:
        """Drop those that let nobody in any more."""
        with self.transaction() as transaction:
            return transaction.forget_browser_sessions()

    def size(self) -> int:
        """Bytes of the main file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def close(self) -> None:
        """Close every connection; the last one out folds the WAL into the file."""
        for connection in [*self._readers, *([self._writer] if self._writer else [])]:
            connection.close()
        self._readers, self._writer = [], None
        if self._turn is not None:
            self._turn.close()
            self._turn = None


def connect(path: Path) -> apsw.Connection:
    """A connection to a file, which may write to it."""
    connection = apsw.Connection(str(path), statementcachesize=200)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("mmap_size", 0)
    connection.wal_autocheckpoint(CHECKPOINT_PAGES)
    connection.create_scalar_function("holdfast_writer", _writes, 0)
    return connection


def _writes(*_: object) -> None:
    """What the trigger on `state` asks for; programs that cannot answer cannot write."""


@contextmanager
def _translated() -> Iterator[None]:
    """Say in our words what went wrong. Raised before COMMIT, all of these mean: not applied."""
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
