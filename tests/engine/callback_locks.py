"""Locks that run a callback, so that a test decides what comes between two steps of two threads."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class LockAfterCallback:
    """A lock that runs a callback the first time somebody wants it, before it is taken."""

    def __init__(self, lock: Lock, first: Callable[[], object]) -> None:
        self._lock = lock
        self._first = first

    def __enter__(self) -> None:
        first, self._first = self._first, lambda: None
        first()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class LockWithCallback:
    """A lock that runs a callback at the moment it is first released."""

    def __init__(self, lock: Lock, then: Callable[[], object]) -> None:
        self._lock = lock
        self._then = then

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        then, self._then = self._then, lambda: None
        then()
