"""Fair write lock between processes that share one SQLite file.

With SQLite's own lock a process that writes in a tight loop can starve all others. Here a writer first takes the
turnstile, then waits for the lock, then frees the turnstile: a process that has just written queues behind the one
that already waits. Both locks belong to open files, so a killed process leaves none behind.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FairLock:
    """Lock that is granted to processes in the order in which they ask."""

    def __init__(self, path: Path) -> None:
        self._turnstile = _open(path.with_name(path.name + "-turn"))
        self._lock = _open(path.with_name(path.name + "-lock"))

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for the lock and hold it until leaving."""
        fcntl.flock(self._turnstile, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close both files."""
        os.close(self._turnstile)
        os.close(self._lock)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
