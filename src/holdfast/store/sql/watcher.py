"""Base of the watchers for commits of other processes."""

from __future__ import annotations

import threading


class WatcherBase:
    """Threads that watch until they are closed, and a flag: whether a caller waits."""

    def __init__(self) -> None:
        self._waiting = threading.Event()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def set_waiting(self, *, waiting: bool) -> None:
        """Poll only while a caller waits."""
        if waiting:
            self._waiting.set()
        else:
            self._waiting.clear()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        self._waiting.set()
        for thread in self._threads:
            thread.join()
