"""Whether anybody waits here: a watcher that polls may rest while nobody does."""

from __future__ import annotations

import threading


class WatcherBase:
    """The part that all watchers share."""

    def __init__(self) -> None:
        self._waiting = threading.Event()
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []

    def attend(self, waiting: bool) -> None:  # noqa: FBT001 - see the contract
        """Look for the commits of others only while somebody waits."""
        if waiting:
            self._waiting.set()
        else:
            self._waiting.clear()

    def close(self) -> None:
        """Stop looking."""
        self._closed.set()
        self._waiting.set()
        for thread in self._threads:
            thread.join()
