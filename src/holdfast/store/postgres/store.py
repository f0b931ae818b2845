"""Connect, begin batches, begin looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec
import psycopg
from msgspec.structs import astuple

from holdfast.core.browser_session import BrowserSession
from holdfast.core.budget import Budget, Terms, lend
from holdfast.core.errors import ValueRefused
from holdfast.core.row import Instant
from holdfast.store import migrations
from holdfast.store.contract import Clock, Rerun, Severed
from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection, connect, is_broken, translated
from holdfast.store.postgres.deliveries import PostgresDeliveries
from holdfast.store.postgres.reader import PostgresReader
from holdfast.store.postgres.transaction import PostgresTransaction
from holdfast.store.postgres.watcher import ListeningWatcher
from holdfast.store.postgres.wire import Wire

MIGRATION_LOCK = 0x686F6C6466617374  # "holdfast"


class PostgresStore:
    """One connection a lane, a few more for looks, two for notices."""

    name = "postgres"

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        lanes: int = 2,
        pooled: bool = False,
        listen_url: str | None = None,
    ) -> None:
        self._url = url
        self._listen_url = listen_url or (None if pooled else url)
        self._pooled = pooled
        self._clock = clock
        self.lanes = lanes
        self._writers: dict[int, tuple[Connection, Wire]] = {}
        self._readers: list[Connection] = []
        self.deliveries = PostgresDeliveries(self)

    def open(self) -> None:
        """Bring the schema up to date; servers that start together wait for each other."""
        with translated(), self._connect() as connection, connection.transaction():
            bring_up_to_date(connection)

    def _connect(self) -> Connection:
        return connect(self._url, pooled=self._pooled)

    @contextmanager
    def transaction(self, lane: int = 0) -> Iterator[PostgresTransaction]:
        """Begin a batch on its lane's connection, which is made anew when it broke."""
        with translated():
            known = lane in self._writers
            connection, wire = self._writer(lane)
            transaction = PostgresTransaction(connection, wire, self._clock, pooled=self._pooled)
            try:
                yield transaction
                transaction.commit()
            except (Rerun, ValueRefused):
                transaction.abandon()
                raise
            except BaseException as error:
                broke = isinstance(error, psycopg.Error) and is_broken(connection)
                self._writers.pop(lane)[0].close()
                if broke and known and not transaction.loaded:
                    raise Severed from error
                raise

    def _writer(self, lane: int) -> tuple[Connection, Wire]:
        """The lane's connection, made anew when it broke."""
        if lane not in self._writers or is_broken(self._writers[lane][0]):
            connection = self._connect()
            self._writers[lane] = connection, Wire(connection, prepare=not self._pooled)
        return self._writers[lane]

    @contextmanager
    def read(self) -> Iterator[PostgresReader]:
        """Begin a look on the primary: it sees every acknowledged write."""
        with translated():
            connection, reader = self._reader()
            try:
                yield reader
            except BaseException:
                connection.close()
                raise
            self._readers.append(connection)

    def _reader(self) -> tuple[Connection, PostgresReader]:
        """A connection that answers: one that died while nobody used it is let go of."""
        while True:
            try:
                connection = self._readers.pop()
            except IndexError:  # looked at by several threads, so asking first would not do
                connection = self._connect()
                return connection, PostgresReader(connection, self._clock)
            try:
                return connection, PostgresReader(connection, self._clock)
            except psycopg.Error:
                if not is_broken(connection):
                    raise

    def watch(self, on_change: Callable[[], None]) -> ListeningWatcher:
        """Listen for the notices of other servers; poll where listening is impossible."""
        return ListeningWatcher(self._listen_url, self._connect, on_change)

    def beat(self, *, clean: bool = False) -> None:
        """Write down that the database is served just now."""
        with self.read() as reader:
            reader.look(queries.BEAT, self._given_now(), clean)

    def last_beat(self) -> tuple[Instant, Instant] | None:
        """When somebody last served this database, and now."""
        with self.read() as reader:
            row = reader.look(queries.LAST_BEAT, self._given_now()).fetchone()
            return None if row is None or row[0] is None else (row[0], row[1])

    def _given_now(self) -> Instant | None:
        return None if self._clock is None else self._clock()

    def forget_answers(self, before: Instant, limit: int = 1_000) -> int:
        """Drop remembered answers older than that."""
        with self.read() as reader:
            return len(list(reader.look(queries.FORGET_ANSWERS, before, limit)))

    def forget_events(self, account: str, floor: int) -> None:
        """Remove the oldest events of an account. Its counter, at which writers meet, is locked for a moment only."""
        with self.read() as reader:
            reader.look(queries.RAISE_FLOOR, floor, account, floor)
            reader.look(queries.FORGET_EVENTS, account, floor)

    def erase(self, account: str) -> None:
        """Remove everything of an account."""
        with self.read() as reader, reader.together():
            for statement in queries.ERASE:
                reader.look(statement, account)

    def borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        """Take a slice of a budget; servers that ask for the same one wait for each other."""
        with self.read() as reader, reader.together():
            reader.look(queries.OPEN_BUDGET, subject, limit_class, reader.now)
            started_at, used = next(iter(reader.look(queries.BUDGET, subject, limit_class)))
            budget = lend(started_at, used, terms, reader.now)
            reader.look(queries.SAVE_BUDGET, budget.started_at, budget.used, subject, limit_class)
            return budget

    def note_uses(self, uses: dict[tuple[str, str], Instant]) -> None:
        """When keys were last seen."""
        with self.read() as reader:
            reader.look(queries.NOTE_USES, msgspec.json.encode([(*key, at) for key, at in uses.items()]).decode())

    def save_browser_session(self, browser_session: BrowserSession) -> None:
        """Let a browser in, or note that it was seen."""
        with self.read() as reader:
            reader.look(queries.KEEP_BADGE, *astuple(browser_session))
            reader.look(queries.DROP_SURPLUS, *(browser_session.key_hash, browser_session.kind) * 2)

    def take_browser_session(self, badge_id: str) -> BrowserSession | None:
        """Remove a badge; whoever deletes the row has it."""
        with self.read() as reader:
            return next((BrowserSession(*columns) for columns in reader.look(queries.TAKE_BADGE, badge_id)), None)

    def forget_browser_sessions(self) -> int:
        """Drop those that let nobody in any more."""
        with self.read() as reader:
            return len(list(reader.look(queries.FORGET_BADGES, reader.now, reader.now, reader.now)))

    def size(self) -> int:
        """Bytes of the database."""
        with self.read() as reader:
            return int(reader.value(queries.SIZE))

    def close(self) -> None:
        """Close every connection."""
        for connection in [*(connection for connection, _ in self._writers.values()), *self._readers]:
            with suppress(psycopg.Error):
                connection.close()
        self._writers, self._readers = {}, []


def bring_up_to_date(connection: Connection) -> None:
    """Give a database the newest schema, in the transaction that is open."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (number integer PRIMARY KEY)")
    migrations.refuse({name for (name,) in connection.execute(queries.TABLES)})
    row = connection.execute("SELECT coalesce(max(number), 0) FROM schema_version").fetchone()
    for number, script in migrations.pending(__package__, row[0] if row else 0):
        connection.execute(script)
        connection.execute("INSERT INTO schema_version VALUES (%s)", (number,))
