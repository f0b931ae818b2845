"""Watcher for commits of other processes on the same file. SQLite sends no notices, so it is polled."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from holdfast.store.sql.watcher import WatcherBase

POLL_SECONDS = 0.05


class PollingWatcher(WatcherBase):
    """Polls `PRAGMA data_version`, which changes when another process has committed, while a caller waits."""

    def __init__(self, version: Callable[[], int | None], on_change: Callable[[], None]) -> None:
        super().__init__()
        self._version = version
        self._on_change = on_change
        self._threads = [threading.Thread(target=self._run, name="holdfast-watcher", daemon=True)]
        self._threads[0].start()

    def notify(self) -> None:
        """Nothing to send: other processes poll the file."""

    def _run(self) -> None:
        last_version = None
        while not self._closed.is_set():
            self._waiting.wait()
            try:
                version = self._version()
            except apsw.Error:
                version = None
            if version != last_version:
                last_version = version
                self._on_change()
            self._closed.wait(POLL_SECONDS)
