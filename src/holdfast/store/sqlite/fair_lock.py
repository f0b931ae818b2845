"""Processes on one file take turns to write.

SQLite's own lock lets a tight loop starve everybody else. Whoever wants to write first passes a
turnstile, then waits for the lock, then frees the turnstile: the process that just wrote stands behind
the one already waiting. Both locks belong to an open file, so a killed process leaves none behind.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FairLock:
    """The right to write to one file."""

    def __init__(self, path: Path) -> None:
        self._turnstile = _open(path.with_name(path.name + "-turn"))
        self._lock = _open(path.with_name(path.name + "-lock"))

    @contextmanager
    def take(self) -> Iterator[None]:
        """Wait for our turn and keep it until leaving."""
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
        """Let go of both files."""
        os.close(self._turnstile)
        os.close(self._lock)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
