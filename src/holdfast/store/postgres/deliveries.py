"""Deliveries in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.core.row import Instant
from holdfast.store.postgres import delivery_queries
from holdfast.store.sql_deliveries import Say, SqlDeliveries

if TYPE_CHECKING:
    from holdfast.store.postgres.reader import PostgresReader
    from holdfast.store.postgres.store import PostgresStore


class PostgresDeliveries(SqlDeliveries):
    """On the connections for looks: no lane waits for a webhook."""

    queries = delivery_queries

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    @contextmanager
    def _looking(self) -> Iterator[tuple[Say, Instant]]:
        with self._store.read() as reader:
            yield _saying(reader), reader.now

    @contextmanager
    def _writing(self) -> Iterator[tuple[Say, Instant]]:
        with self._store.read() as reader, reader.together():
            yield _saying(reader), reader.now


def _saying(reader: PostgresReader) -> Say:
    def say(query: str, *arguments: Any) -> list[tuple[Any, ...]]:
        return reader.look(query, *arguments).fetchall()

    return say
