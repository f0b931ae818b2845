"""Fair write lock between processes that share one SQLite file.

With SQLite's own lock a process that writes in a tight loop can starve all others. Here a writer first takes the
turnstile, then waits for the lock, then frees the turnstile: a process that has just written queues behind the one
that already waits. Both locks belong to open files, so a killed process leaves none behind.

A process that was stopped (SIGSTOP, a debugger) keeps the lock, so every wait is bounded. The kernel cannot end a
wait for a file lock after a time, therefore a thread waits. It stays in the queue when its caller gives up: the next
caller takes its place, and a grant that nobody wants any more is freed at once.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from holdfast.core.errors import StoreUnavailable

WAIT_SECONDS = 5.0
"""How long a writer waits for its turn."""
LATE_WAIT_SECONDS = 0.2
"""How long it waits if this process has been in the queue for longer than that already: it fails soon, not in turn."""


class FairLock:
    """Lock that is granted to processes in the order in which they ask; one thread of a process takes it at a time."""

    def __init__(self, path: Path) -> None:
        # SQLite follows symbolic links to the file; so must the lock, or two names of one file would have two locks.
        path = path.resolve()
        self.path = path.with_name(path.name + "-lock")
        self._turnstile = _open(path.with_name(path.name + "-turn"))
        self._lock = _open(self.path)
        self._changed = threading.Condition()
        self._is_queued = False
        """Whether a thread waits for the lock."""
        self._is_granted = False
        """Whether that thread got the lock for a caller that still waits."""
        self._is_wanted = False
        self._queued_at = 0.0
        self._is_closed = False
        self._reserved_by = 0
        """The thread that `try_reserve` granted the lock to."""
        self._taken = _Taken(self)

    def take(self, wait_seconds: float = WAIT_SECONDS) -> AbstractContextManager[None]:
        """Wait for the lock; it is freed by leaving the context. StoreUnavailable if another process keeps it too long.

        Within a reservation of this thread the lock is taken already, and stays so.
        """
        if self._reserved_by == threading.get_ident():
            return _RESERVED
        if not self._take_at_once():
            self._wait(wait_seconds)
        return self._taken

    def try_reserve(self) -> bool:
        """Take the lock for everything that this thread does until `free`, unless that needs a wait."""
        if not self._take_at_once():
            return False
        self._reserved_by = threading.get_ident()
        return True

    def free(self) -> None:
        """Free the lock."""
        self._reserved_by = 0
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _take_at_once(self) -> bool:
        """Take both locks if nobody has them or waits for them."""
        with self._changed:
            if self._is_queued or not _try(self._turnstile):
                return False
            try:
                return _try(self._lock)
            finally:
                fcntl.flock(self._turnstile, fcntl.LOCK_UN)

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._is_wanted = True
            if not self._is_queued:
                self._is_queued, self._queued_at = True, time.monotonic()
                threading.Thread(target=self._queue, name="holdfast-file-lock", daemon=True).start()
            left = max(seconds - (time.monotonic() - self._queued_at), min(seconds, LATE_WAIT_SECONDS))
            granted = self._changed.wait_for(lambda: self._is_granted, left)
            self._is_wanted = self._is_granted = False
            if not granted:
                waited = time.monotonic() - self._queued_at
                raise StoreUnavailable(
                    f"other programs have kept the write lock {self.path} for {waited:.0f} s; one may be stopped:"
                    f" `fuser {self.path}` finds it, then continue or end it"
                )

    def _queue(self) -> None:
        """Wait in the kernel's queue, then hand the lock to the caller, or free it if no caller waits any more."""
        fcntl.flock(self._turnstile, fcntl.LOCK_EX)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        with self._changed:
            self._is_queued = False
            self._is_granted = self._is_wanted
            if not self._is_wanted:
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            if self._is_closed:
                self._close_files()
            self._changed.notify_all()

    def close(self) -> None:
        """Close both files; a thread that still waits closes them when it gets the lock."""
        with self._changed:
            self._is_closed = True
            if not self._is_queued:
                self._close_files()

    def _close_files(self) -> None:
        os.close(self._turnstile)
        os.close(self._lock)


class _Taken(AbstractContextManager[None]):
    """Frees a lock that was taken. One for all, and no generator: each batch enters it."""

    def __init__(self, lock: FairLock) -> None:
        self._lock = lock

    def __exit__(self, *_: object) -> None:
        self._lock.free()


_RESERVED = nullcontext()


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
