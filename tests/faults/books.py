"""The whole store beside the server: every account's log, and whether rows and counts agree with it."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.core.event import Event
from holdfast.settings import sqlite_path
from holdfast.store.contract import Store
from holdfast.store.postgres import PostgresStore
from holdfast.store.sqlite import SqliteStore
from tests.support import check_log, every


def assert_books_balance(url: str) -> None:
    """Every log is dense, folds into its rows, and tasks are as many as were counted."""
    with opened(url) as store:
        check_log(store)


def log_of(url: str, account: str) -> list[Event]:
    """An account's whole log, oldest first."""
    with opened(url) as store:
        return [event for event in every(store, Event) if event.account == account]


def histories(log: list[Event]) -> dict[str, list[Event]]:
    """The events of each task, by its id."""
    told: dict[str, list[Event]] = {}
    for event in log:
        noun, _, name = event.subject.partition(":")
        if noun == "task":
            told.setdefault(name, []).append(event)
    return told


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store: Store = SqliteStore(sqlite_path(url)) if url.startswith("sqlite:") else PostgresStore(url)
    store.open()
    try:
        yield store
    finally:
        store.close()
