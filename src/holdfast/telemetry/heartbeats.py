"""Heartbeats of background loops: when each loop last finished a pass, and whether it is stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from holdfast.telemetry.metric_names import LOOP_SUCCESS
from holdfast.telemetry.registry import Registry


class LoopHeartbeat(msgspec.Struct, frozen=True):
    """The state of one loop."""

    seconds_ago: float | None
    """Time since its last pass; None if it has made none."""
    stuck: bool


class LoopHeartbeats:
    """The background loops of this process. A loop registers with `expect` and calls `beat` after each pass."""

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._lock = threading.Lock()
        self._limits: dict[str, float] = {}
        self._since: dict[str, float] = {}
        self._seen: dict[str, float] = {}

    def expect(self, loop: str, within: float) -> None:
        """Register a loop: it is stuck when its last pass is longer ago than this many seconds."""
        with self._lock:
            self._limits[loop] = within
            self._since[loop] = self._clock()

    def beat(self, loop: str) -> None:
        """Record that a loop has just finished a pass."""
        with self._lock:
            self._seen[loop] = self._clock()
        self._registry.set(LOOP_SUCCESS, loop, to=time.time())

    def report(self) -> dict[str, LoopHeartbeat]:
        """The state of every registered loop."""
        moment = self._clock()
        with self._lock:
            return {
                loop: LoopHeartbeat(
                    None if loop not in self._seen else moment - self._seen[loop],
                    moment - max(self._since[loop], self._seen.get(loop, 0.0)) > limit,
                )
                for loop, limit in self._limits.items()
            }
