"""Timer: one thread that runs actions at given moments."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger("holdfast.timer")


class Alarm:
    """A scheduled action. A cancelled one stays in the heap but holds no reference to its action."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        """Never run the action."""
        self.action = None


class Timer:
    """Runs each action once, when its moment has come."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Alarm]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="holdfast-timer", daemon=True)
        self._thread.start()

    def at(self, moment: float, action: Callable[[], None]) -> Alarm:
        """Run the action at a moment of the monotonic clock."""
        alarm = Alarm(action)
        with self._changed:
            heapq.heappush(self._heap, (moment, next(self._order), alarm))
            self._changed.notify()
        return alarm

    def close(self) -> None:
        """Stop; actions that are not due yet never run."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (not self._heap or self._heap[0][0] > time.monotonic()):
                    self._changed.wait(self._heap[0][0] - time.monotonic() if self._heap else None)
                if self._closed:
                    return
                _, _, alarm = heapq.heappop(self._heap)
            action = alarm.action
            try:
                if action is not None:
                    action()
            except Exception:
                log.exception("a timed action failed")
