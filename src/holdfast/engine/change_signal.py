"""Change notification: callbacks that run when a row may have changed. A notification carries no data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from holdfast.core.row import Key
from holdfast.engine.waiting.waiters import SetWaiting

Callback = Callable[[], None]


def account_log_key(account: str) -> Key:
    """The key that is notified of any change in an account."""
    return ("events", account, "")


class ChangeSignal:
    """The callbacks of this process, by the row they listen to."""

    def __init__(self, set_waiting: SetWaiting) -> None:
        self._set_waiting = set_waiting
        self._lock = threading.Lock()
        self._callbacks: dict[Key, set[Callback]] = {}
        self._internal: set[Callback] = set()
        self.draining = False

    def listen(self, key: Key, callback: Callback, *, internal: bool = False) -> None:
        """Run the callback, on any thread, whenever that row may have changed. `internal`: no client waits for it."""
        with self._lock:
            if internal:
                self._internal.add(callback)
            self._callbacks.setdefault(key, set()).add(callback)
            self._set_waiting(waiting=True)

    def forget(self, key: Key, callback: Callback) -> None:
        """Stop running the callback for that row."""
        with self._lock:
            self._callbacks[key].discard(callback)
            if not self._callbacks[key]:
                del self._callbacks[key]
            if not self._callbacks:
                self._set_waiting(waiting=False)

    def size(self) -> int:
        """How many clients listen."""
        with self._lock:
            return sum(len(callbacks - self._internal) for callbacks in self._callbacks.values())

    def notify(self, changed: Iterable[Key]) -> None:
        """Run the callbacks of these rows, which have changed."""
        if not self._callbacks:
            return
        keys = {*changed, *(account_log_key(key[1]) for key in changed)}
        with self._lock:
            callbacks = [callback for key in keys & self._callbacks.keys() for callback in self._callbacks[key]]
        for callback in callbacks:
            callback()

    def notify_all(self) -> None:
        """Run every callback: another process may have changed any row."""
        with self._lock:
            found = [callback for callbacks in self._callbacks.values() for callback in callbacks]
        for callback in found:
            callback()

    def drain(self) -> None:
        """Wake every listener, so that none keeps the server from shutting down."""
        self.draining = True
        self.notify_all()
