"""PostgreSQL stores for consecutive tests that reuse each other's connections.

A new connection plans every query anew, which costs the database more than most tests ask of it. A store is made for
each test all the same: what a test does to it is gone with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.store.contract import Clock
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres.connection import is_idle
from tests.support import empty


class PostgresStores:
    """Opens stores on one database, one at a time, each with the connections of the one before."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._last: PostgresStore | None = None

    @contextmanager
    def store(self, clock: Clock | None) -> Iterator[PostgresStore]:
        """A store as if just made."""
        store = PostgresStore(self._url, clock)
        if self._last is None:
            store.open()
        else:
            # A failed test may leave a connection broken or inside a transaction.
            store._writers = {lane: kept for lane, kept in self._last._writers.items() if is_idle(kept[0])}
            store._readers = [kept for kept in self._last._readers if is_idle(kept)]
        self._last = store
        empty(store)
        yield store

    def close(self) -> None:
        if self._last is not None:
            self._last.close()
