"""Other processes' commits: SQLite tells of them only when asked, so it is asked while somebody waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

POLL_SECONDS = 0.05


class PollingWatcher:
    """Looks at `PRAGMA data_version`, which moves when another process has committed."""

    def __init__(self, version: Callable[[], int | None], on_change: Callable[[], None]) -> None:
        self._version = version
        self._on_change = on_change
        self._waiting = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-watcher", daemon=True)
        self._thread.start()

    def tell(self) -> None:
        """The file itself tells the others."""

    def attend(self, waiting: bool) -> None:  # noqa: FBT001 - see the contract
        """Poll only while somebody waits."""
        if waiting:
            self._waiting.set()
        else:
            self._waiting.clear()

    def close(self) -> None:
        """Stop polling."""
        self._closed.set()
        self._waiting.set()
        self._thread.join()

    def _run(self) -> None:
        seen = None
        while not self._closed.is_set():
            self._waiting.wait()
            try:
                version = self._version()
            except apsw.Error:
                version = None
            if version != seen:
                seen = version
                self._on_change()
            self._closed.wait(POLL_SECONDS)
