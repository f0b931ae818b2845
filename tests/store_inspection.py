"""Reads a server's store beside the server: its logs, and whether rows and counts agree with them."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.core.event import Event
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.settings import sqlite_path
from holdfast.store.contract import Store
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.support import check_log, every


def assert_store_is_consistent(url: str) -> None:
    """Every log is dense and folds into its rows, and there are as many tasks as were counted."""
    with opened(url) as store:
        check_log(store)


def events_of(url: str, account: str = DEFAULT_ACCOUNT) -> list[Event]:
    """An account's whole log, oldest first."""
    with opened(url) as store:
        return [event for event in every(store, Event) if event.account == account]


def events_by_task(log: list[Event]) -> dict[str, list[Event]]:
    """The events of each task, by its id."""
    found: dict[str, list[Event]] = {}
    for event in log:
        noun, _, name = event.subject.partition(":")
        if noun == "task":
            found.setdefault(name, []).append(event)
    return found


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """Another store object on the server's database."""
    store: Store = SqliteStore(sqlite_path(url)) if url.startswith("sqlite:") else PostgresStore(url)
    store.open()
    try:
        yield store
    finally:
        store.close()
