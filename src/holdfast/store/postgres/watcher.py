"""Notices between servers: a hint that something was freed, at most 20 a second, never in a writing transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psycopg

from holdfast.store.postgres import queries
from holdfast.store.postgres.connection import Connection, connect
from holdfast.store.watcher import WatcherBase

TELL_SECONDS = 0.05
"""NOTIFY takes a lock that all committers share, so bursts are told as one."""
POLL_SECONDS = 0.05
LISTEN_SECONDS = 0.25
LOST_SECONDS = 1.0
"""Who waits looks at least this often, whatever became of the notices."""


class ListeningWatcher(WatcherBase):
    """One thread listens (or polls, behind a pooler), another tells."""

    def __init__(
        self, listen_url: str | None, connect_for_telling: Callable[[], Connection], on_change: Callable[[], None]
    ) -> None:
        super().__init__()
        self._listen_url = listen_url
        self._connect_for_telling = connect_for_telling
        self._on_change = on_change
        self._to_tell = threading.Event()
        self._own_pid = 0
        listen = self._poll if listen_url is None else self._listen
        self._threads = [
            threading.Thread(target=listen, name="holdfast-listener", daemon=True),
            threading.Thread(target=self._tell, name="holdfast-teller", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def tell(self) -> None:
        """Something was freed here."""
        self._to_tell.set()

    def close(self) -> None:
        """Stop listening and telling."""
        self._closed.set()
        self._to_tell.set()
        super().close()

    def _listen(self) -> None:
        assert self._listen_url is not None
        while not self._closed.is_set():
            try:
                with connect(self._listen_url) as connection:
                    connection.execute(queries.LISTEN)
                    self._on_change()  # whatever happened while nobody listened
                    looked = time.monotonic()
                    while not self._closed.is_set():
                        for notice in connection.notifies(timeout=LISTEN_SECONDS, stop_after=1):
                            if notice.pid != self._own_pid:
                                looked = time.monotonic()
                                self._on_change()
                        if self._waiting.is_set() and time.monotonic() - looked >= LOST_SECONDS:
                            looked = time.monotonic()
                            self._on_change()  # notices may be lost
            except psycopg.Error:
                self._closed.wait(LISTEN_SECONDS)

    def _poll(self) -> None:
        while not self._closed.is_set():
            self._waiting.wait()
            self._on_change()
            self._closed.wait(POLL_SECONDS)

    def _tell(self) -> None:
        connection: Connection | None = None
        while not self._closed.is_set():
            self._to_tell.wait()
            self._to_tell.clear()
            if self._closed.is_set():
                break
            try:
                connection = connection or self._connect_for_telling()
                self._own_pid = connection.info.backend_pid
                connection.execute(queries.NOTIFY)
            except psycopg.Error:
                connection = None
                self._to_tell.set()
            self._closed.wait(TELL_SECONDS)
        if connection is not None:
            connection.close()
