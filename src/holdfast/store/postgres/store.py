"""The store on PostgreSQL: connections, transactions, reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psycopg

from holdfast.core.errors import HoldfastError, StoreUnavailable, ValueRefused
from holdfast.core.row import Instant
from holdfast.store.contract import Clock, ClockStepped, Rerun, RowsLocked, StaleConnection
from holdfast.store.postgres import queries
from holdfast.store.postgres.clock_watch import ClockWatch
from holdfast.store.postgres.connection import (
    COMMIT_SECONDS,
    LANE_SETTINGS,
    LONG_ANSWER_SECONDS,
    Connection,
    Connector,
    NoAnswer,
    check_version,
    connect,
    is_broken,
    is_idle,
)
from holdfast.store.postgres.durability import check_durable, durable_transaction
from holdfast.store.postgres.errors import translate_errors
from holdfast.store.postgres.pipeline import Pipeline
from holdfast.store.postgres.reader import PostgresReader
from holdfast.store.postgres.transaction import PostgresTransaction
from holdfast.store.postgres.watcher import ListeningWatcher
from holdfast.store.sql import migrations
from holdfast.store.sql import queries as sql
from holdfast.store.sql.store import Execute, SqlStore

MIGRATION_LOCK = 0x686F6C6466617374  # "holdfast"
MAX_OPEN_ATTEMPTS = 10
OPEN_BATCH_SECONDS = COMMIT_SECONDS
"""How long we wait for open batches: a commit that takes longer is not acknowledged."""
OPEN_BATCH_POLL_SECONDS = 0.005
ANALYZE_BEATS = 120
"""For so many heartbeats we have new tables analyzed (`queries.ANALYZE_NEW`); later PostgreSQL has done it."""


class PostgresStore(SqlStore):
    """One connection for each lane, a few more for reads, two for notices between servers."""

    name = "postgres"
    is_local = False
    clock_jump: Instant = 0
    dialect = queries
    package = __package__

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        lanes: int = 2,
        pooled: bool = False,
        listen_url: str | None = None,
        require_standby: bool = False,
        durable_storage: bool = False,
    ) -> None:
        super().__init__()
        self._url = url
        self._durable_storage = durable_storage
        self._connector = Connector(url, pooled=pooled)
        self._listen_url = listen_url or (None if pooled else url)
        self._pooled = pooled
        self._require_standby = require_standby
        self._clock = clock
        self.lanes = lanes
        self._writers: dict[int, tuple[Connection, Pipeline]] = {}
        self._readers: list[Connection] = []
        self._beats = 0
        self._clock_watch = ClockWatch(lanes)
        """Outlives connections, because a new one may lead to another machine."""

    def open(self) -> None:
        """Migrate the schema; servers that start together wait for each other."""
        for attempt in range(MAX_OPEN_ATTEMPTS):
            try:
                self._migrate()
            except (
                Rerun
            ) as error:  # a deadlock with a batch of a running server, which takes its locks in another order
                if attempt == MAX_OPEN_ATTEMPTS - 1:
                    raise StoreUnavailable(f"the schema could not be migrated: {error}") from error
            else:
                return

    def _migrate(self) -> None:
        with translate_errors(), connect(self._url, pooled=self._pooled) as connection:
            # A pooler does not know our `statement_timeout`: behind one a migration may take any time.
            connection.answer_seconds = None if self._pooled else LONG_ANSWER_SECONDS
            check_version(connection)
            check_durable(connection, require_standby=self._require_standby, durable_storage=self._durable_storage)
            with durable_transaction(connection):
                migrate_schema(connection)

    @contextmanager
    def reserve(self) -> Iterator[bool]:
        """Never: a commit waits for the network and for other servers."""
        yield False

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[PostgresTransaction]:
        """Begin a batch on its lane's connection."""
        with translate_errors():
            was_open = lane in self._writers
            connection, pipeline = self._writer(lane)
            transaction = PostgresTransaction(
                connection,
                pipeline,
                self._clock,
                partial(self._clock_watch.check, lane),
                self.damaged_rows,
                pooled=self._pooled,
                require_standby=self._require_standby,
            )
            try:
                yield transaction
                transaction.commit()
            except ClockStepped:
                with suppress(psycopg.Error):  # the lane must learn of the step, which is found once
                    transaction.roll_back()
                raise
            except (Rerun, ValueRefused):
                transaction.roll_back()
                raise
            except psycopg.errors.LockNotAvailable as error:
                transaction.roll_back()
                raise RowsLocked from error
            except BaseException as error:
                broke = isinstance(error, psycopg.Error) and is_broken(connection) and not isinstance(error, NoAnswer)
                self._writers.pop(lane)[0].close()
                if broke and was_open and not transaction.loaded:
                    raise StaleConnection from error
                raise

    def _writer(self, lane: int) -> tuple[Connection, Pipeline]:
        """The lane's connection, or a new one if it broke."""
        if lane not in self._writers or is_broken(self._writers[lane][0]):
            connection = self._connector.connect(LANE_SETTINGS)
            self._writers[lane] = connection, Pipeline(connection, prepare=not self._pooled)
        return self._writers[lane]

    @contextmanager
    def read(self) -> Iterator[PostgresReader]:
        """Begin reading on the primary, which has every acknowledged write."""
        with translate_errors():
            connection, reader = self._reader()
            try:
                yield reader
            except NoAnswer:
                self._close_readers()  # they would not get an answer either
                raise
            finally:  # an error that is not the connection's own leaves it as good as it was
                if is_idle(connection):
                    self._readers.append(connection)
                else:
                    connection.close()

    @contextmanager
    def write(self) -> Iterator[tuple[Execute, Instant]]:
        """Begin a transaction on a connection for reads, so that no lane waits for it."""
        with self.read() as reader, reader.transaction():
            yield reader.fetch, reader.now

    def beat(self) -> tuple[Instant | None, Instant]:
        """Record that a server uses the database now. While it is new, have its tables analyzed."""
        beats = super().beat()
        if self._beats < ANALYZE_BEATS:
            self._beats += 1
            with suppress(HoldfastError, Rerun), self.write() as (execute, _):
                execute(queries.ANALYZE_NEW)
        return beats

    def _reader(self) -> tuple[Connection, PostgresReader]:
        """A connection that answers. If one broke while it was idle, so did the others: all are dropped."""
        try:
            connection = self._readers.pop()
        except IndexError:  # several threads take from the list, so a check before would race
            return self._new_reader()
        try:
            return connection, self._begin_read(connection)
        except psycopg.Error as error:
            connection.close()
            self._close_readers()
            if isinstance(error, NoAnswer):
                raise
            return self._new_reader()

    def _new_reader(self) -> tuple[Connection, PostgresReader]:
        connection = self._connector.connect()
        try:
            return connection, self._begin_read(connection)
        except psycopg.Error:
            connection.close()
            raise

    def _begin_read(self, connection: Connection) -> PostgresReader:
        reader = PostgresReader(connection, self._clock, self.damaged_rows)
        if self._clock is None:
            self._clock_watch.read(reader.clock_reading)
        return reader

    def _close_readers(self) -> None:
        """Close the idle connections."""
        with suppress(IndexError):
            while True:
                self._readers.pop().close()

    def watch(self, on_change: Callable[[], None]) -> ListeningWatcher:
        """Listen for the notices of other servers; poll where listening is impossible."""
        return ListeningWatcher(self._listen_url, self._connector.connect, on_change)

    def check_durable(self) -> None:
        """Check the settings of PostgreSQL, which an administrator can change while it runs."""
        with self.read() as reader:
            reader.check_durable(require_standby=self._require_standby, durable_storage=self._durable_storage)

    def await_open_batches(self) -> None:
        """Wait for the transactions that have locked rows."""
        give_up_at = time.monotonic() + OPEN_BATCH_SECONDS
        with self.read() as reader:
            begun = open_now = {batch for (batch,) in reader.fetch(queries.OPEN_BATCHES)}
            while begun & open_now and time.monotonic() < give_up_at:
                time.sleep(OPEN_BATCH_POLL_SECONDS)
                open_now = {batch for (batch,) in reader.fetch(queries.OPEN_BATCHES)}

    def size(self) -> int:
        """Bytes of the database."""
        with self.read() as reader:
            return int(reader.value(queries.SIZE))

    def close(self) -> None:
        """Close every connection."""
        for connection, _ in self._writers.values():
            connection.close()
        self._writers = {}
        self._close_readers()


def migrate_schema(connection: Connection) -> None:
    """Migrate a database to the newest schema, in the transaction that is open."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (number integer PRIMARY KEY)")
    migrations.check_is_store({name for (name,) in connection.execute(queries.TABLES)})
    row = connection.execute("SELECT coalesce(max(number), 0) FROM schema_version").fetchone()
    for number, script in migrations.pending(__package__, row[0] if row else 0, _minimum_schema(connection)):
        connection.execute(script)
        connection.execute("INSERT INTO schema_version VALUES (%s)", (number,))


def _minimum_schema(connection: Connection) -> int | None:
    """The store's minimum schema; None if the database has none: it is new, older than that record, or no store."""
    if connection.execute(queries.HAS_MINIMUM_SCHEMA).fetchone() is None:
        return None
    row = connection.execute(sql.MINIMUM_SCHEMA).fetchone()
    return row[0] if row else None
