"""A look at the store beside the server: what its log says, and whether the rows agree."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.core.event import Event, fold, row_image
from holdfast.core.lease import Lease
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.settings import sqlite_path
from holdfast.store.contract import Reader, Store
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore


@contextmanager
def looking(url: str) -> Iterator[Reader]:
    store: Store = SqliteStore(sqlite_path(url)) if url.startswith("sqlite:") else PostgresStore(url)
    try:
        with store.read() as reader:
            yield reader
    finally:
        store.close()


def events(url: str) -> list[Event]:
    """The whole log of the default account."""
    with looking(url) as reader:
        return reader.events(DEFAULT_ACCOUNT, 0, 1_000_000)


def assert_log_tells_all(url: str) -> None:
    """Sequence numbers without gaps, and every lease is exactly what its events say."""
    with looking(url) as reader:
        log = reader.events(DEFAULT_ACCOUNT, 0, 1_000_000)
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        for subject in {event.subject for event in log if event.subject.startswith("lease:")}:
            name = subject.removeprefix("lease:")
            row = reader.row(Lease, DEFAULT_ACCOUNT, name)
            assert row is not None, name
            history = reader.history(DEFAULT_ACCOUNT, subject)
            assert fold(Lease(DEFAULT_ACCOUNT, name), history) == row_image(row)
