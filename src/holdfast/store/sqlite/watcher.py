"""Other processes' commits: SQLite tells of them only when asked, so it is asked while somebody waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from holdfast.store.watcher import WatcherBase

POLL_SECONDS = 0.05


class PollingWatcher(WatcherBase):
    """Looks at `PRAGMA data_version`, which moves when another process has committed."""

    def __init__(self, version: Callable[[], int | None], on_change: Callable[[], None]) -> None:
        super().__init__()
        self._version = version
        self._on_change = on_change
        self._threads = [threading.Thread(target=self._run, name="holdfast-watcher", daemon=True)]
        self._threads[0].start()

    def tell(self) -> None:
        """The file itself tells the others."""

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
