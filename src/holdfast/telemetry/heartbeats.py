"""Whether what runs by itself still does: each loop says when it last did its work, and how late is too late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from holdfast.telemetry.metric_names import LOOP_SUCCESS
from holdfast.telemetry.registry import Registry


class LoopHeartbeat(msgspec.Struct, frozen=True):
    """One loop, as it stands now."""

    seconds_ago: float | None
    """When it last did its work; None if it never did."""
    stuck: bool


class LoopHeartbeats:
    """Every loop of this process. Loops of other rooms join with `expect` and say `beat`."""

    def __init__(self, board: Registry, clock: Callable[[], float] = time.monotonic) -> None:
        self._board = board
        self._clock = clock
        self._lock = threading.Lock()
        self._limits: dict[str, float] = {}
        self._since: dict[str, float] = {}
        self._seen: dict[str, float] = {}

    def expect(self, loop: str, within: float) -> None:
        """From now on this loop does its work at least so often, in seconds; one that falls behind is stuck."""
        with self._lock:
            self._limits[loop] = within
            self._since[loop] = self._clock()

    def beat(self, loop: str) -> None:
        """It has just done its work."""
        with self._lock:
            self._seen[loop] = self._clock()
        self._board.set(LOOP_SUCCESS, loop, to=time.time())

    def report(self) -> dict[str, LoopHeartbeat]:
        """Each loop that is expected to run."""
        moment = self._clock()
        with self._lock:
            return {
                loop: LoopHeartbeat(
                    None if loop not in self._seen else moment - self._seen[loop],
                    moment - max(self._since[loop], self._seen.get(loop, 0.0)) > limit,
                )
                for loop, limit in self._limits.items()
            }
