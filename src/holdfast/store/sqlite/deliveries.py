"""Deliveries in the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.core.row import Instant
from holdfast.store.sql_deliveries import Say, SqlDeliveries
from holdfast.store.sqlite import delivery_queries

if TYPE_CHECKING:
    from holdfast.store.sqlite.store import SqliteStore


class SqliteDeliveries(SqlDeliveries):
    """Beside the batches, in transactions of their own."""

    queries = delivery_queries

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    @contextmanager
    def _looking(self) -> Iterator[tuple[Say, Instant]]:
        with self._store.read() as reader:

            def say(query: str, *arguments: Any) -> list[tuple[Any, ...]]:
                return list(reader.look(query, *arguments))

            yield say, reader.now

    @contextmanager
    def _writing(self) -> Iterator[tuple[Say, Instant]]:
        with self._store.transaction() as transaction:
            yield transaction.aside, transaction.now
