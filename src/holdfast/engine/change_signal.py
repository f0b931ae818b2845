"""Bells: whoever reads with patience is told when what they look at has changed. A ring carries no data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from holdfast.core.row import Key

Ring = Callable[[], None]


def log_of(account: str) -> Key:
    """The bell that rings for any change in an account."""
    return ("events", account, "")


class ChangeSignal:
    """Who listens for which row, in this process."""

    def __init__(self, attend: Callable[[bool], None]) -> None:
        self._attend = attend
        self._lock = threading.Lock()
        self._listeners: dict[Key, set[Ring]] = {}
        self._own: set[Ring] = set()
        self.draining = False

    def listen(self, key: Key, ring: Ring, *, own: bool = False) -> None:
        """Call `ring` from now on, on any thread, whenever that row may have changed. `own`: no caller waits for it."""
        with self._lock:
            if own:
                self._own.add(ring)
            self._listeners.setdefault(key, set()).add(ring)
            self._attend(True)  # noqa: FBT003 - see the store's contract

    def forget(self, key: Key, ring: Ring) -> None:
        """Do not call any more."""
        with self._lock:
            self._listeners[key].discard(ring)
            if not self._listeners[key]:
                del self._listeners[key]
            if not self._listeners:
                self._attend(False)  # noqa: FBT003 - see the store's contract

    def size(self) -> int:
        """How many callers listen."""
        with self._lock:
            return sum(len(listeners - self._own) for listeners in self._listeners.values())

    def ring(self, touched: Iterable[Key]) -> None:
        """These rows have changed."""
        if not self._listeners:
            return
        keys = {*touched, *(log_of(key[1]) for key in touched)}
        with self._lock:
            rings = [ring for key in keys & self._listeners.keys() for ring in self._listeners[key]]
        for ring in rings:
            ring()

    def drain(self) -> None:
        """Nobody need wait any longer."""
        self.draining = True
        self.ring_all()

    def ring_all(self) -> None:
        """Another process may have changed anything."""
        with self._lock:
            rings = [ring for listeners in self._listeners.values() for ring in listeners]
        for ring in rings:
            ring()
