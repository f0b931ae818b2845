"""What a client knows of the store's time, by which the model judges deadlines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from tests.linearizability.history import FOREVER, UNKNOWN_TIME


class StoreTime(Protocol):
    """What is known of the store's time at this moment."""

    tick_seconds: float
    """How long to wait for answers before looking again whether a paused worker goes on."""

    def passed(self) -> int:
        """A time that passes as the store's does, for pauses of workers."""

    def earliest(self) -> int:
        """The store's clock shows at least this."""

    def latest(self) -> int:
        """The store's clock shows at most this."""


class DrivenTime:
    """The time of a clock that the test drives."""

    tick_seconds = 0.0005

    def __init__(self, clock: Callable[[], int]) -> None:
        self.earliest = self.latest = self.passed = clock


class MeasuredTime:
    """A real clock of a store on this machine, which runs evenly: measured once, with room for drift and rounding."""

    tick_seconds = 0.005

    def __init__(self, shown: Callable[[], int], slack: int = 50_000) -> None:
        before = time.monotonic_ns() // 1000
        now = shown()
        after = time.monotonic_ns() // 1000
        self._least, self._most = now - after - slack, now - before + slack

    def passed(self) -> int:
        return time.monotonic_ns() // 1000

    def earliest(self) -> int:
        return time.monotonic_ns() // 1000 + self._least

    def latest(self) -> int:
        return time.monotonic_ns() // 1000 + self._most


class UnknownTime:
    """A clock that is set during the run: nothing is known of it beforehand."""

    tick_seconds = 0.005

    def earliest(self) -> int:
        return UNKNOWN_TIME

    def latest(self) -> int:
        return FOREVER

    def passed(self) -> int:
        return time.monotonic_ns() // 1000
