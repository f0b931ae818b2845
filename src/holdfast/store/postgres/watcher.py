"""Watcher with NOTIFY and LISTEN between servers: at most 20 notices a second, never in a transaction that writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg

from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection, Connector
from holdfast.store.sql.watcher import WatcherBase

NOTIFY_SECONDS = 0.05
"""NOTIFY takes a lock that all committers share, so bursts are sent as one notice."""
POLL_SECONDS = 0.05
LISTEN_SECONDS = 0.25
CHECK_SECONDS = 5.0
"""How often the listener checks that its connection still works, and how long it waits for the answer."""
REACT_SECONDS = 0.05
"""Notices that come in this time after one was reported are reported as one. Each makes waiters try again and the sweep
read the store, and every server gets those of all others."""
LOST_SECONDS = 1.0
"""While a caller waits, a change is assumed at least this often, because notices may be lost."""


class ListeningWatcher(WatcherBase):
    """One thread listens (or polls, behind a pooler), another sends notices."""

    def __init__(
        self, listen_url: str | None, connect_for_notices: Callable[[], Connection], on_change: Callable[[], None]
    ) -> None:
        super().__init__()
        self._listen_url = listen_url
        self._connect_for_notices = connect_for_notices
        self._on_change = on_change
        self._to_notify = threading.Event()
        self._own_pid = 0
        listen = self._poll if listen_url is None else self._listen
        self._threads = [
            threading.Thread(target=listen, name="holdfast-listener", daemon=True),
            threading.Thread(target=self._send_notices, name="holdfast-notifier", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def notify(self) -> None:
        """Send a notice that a name or a task was freed here."""
        self._to_notify.set()

    def close(self) -> None:
        """Stop both threads."""
        self._closed.set()
        self._to_notify.set()
        super().close()

    def _listen(self) -> None:
        assert self._listen_url is not None
        while not self._closed.is_set():
            try:
                with Connector(self._listen_url, pooled=False).connect() as connection:
                    connection.answer_seconds = CHECK_SECONDS
                    connection.execute(queries.LISTEN)
                    self._on_change()  # for changes made while nothing listened
                    reported = checked = time.monotonic()
                    while not self._closed.is_set():
                        if time.monotonic() - checked >= CHECK_SECONDS:
                            connection.execute(queries.LISTEN)  # a second LISTEN changes nothing
                            checked = time.monotonic()
                        notices = connection.notifies(timeout=LISTEN_SECONDS, stop_after=1)
                        changed = bool([notice for notice in notices if notice.pid != self._own_pid])
                        if self._waiting.is_set() and time.monotonic() - reported >= LOST_SECONDS:
                            changed = True  # notices may be lost
                        if changed:
                            reported = time.monotonic()
                            self._on_change()
                            self._closed.wait(REACT_SECONDS)
            except psycopg.Error:
                self._closed.wait(LISTEN_SECONDS)

    def _poll(self) -> None:
        while not self._closed.is_set():
            self._waiting.wait()
            self._on_change()
            self._closed.wait(POLL_SECONDS)

    def _send_notices(self) -> None:
        connection: Connection | None = None
        while not self._closed.is_set():
            self._to_notify.wait()
            self._to_notify.clear()
            if self._closed.is_set():
                break
            try:
                connection = connection or self._connect_for_notices()
                self._own_pid = connection.info.backend_pid
                connection.execute(queries.NOTIFY)
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection = None
                self._to_notify.set()
            self._closed.wait(NOTIFY_SECONDS)
        if connection is not None:
            connection.close()
