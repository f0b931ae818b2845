"""Watches the database's clock for steps, by comparing it with a clock of this machine that is never set.

Every connection of a server reports each clock value that it reads. Frequent readings separate steps that follow each
other: a step back and then a smaller one forward would look like one step back. Each lane is given every step before
it makes a decision by the changed clock.
"""

from __future__ import annotations

import threading

import msgspec

from holdfast.clock import boot_nanoseconds
from holdfast.core.row import SECOND, Instant
from holdfast.store.contract import ClockStepped

MIN_STEP = SECOND // 10
"""A smaller step is ignored: it is no more than the network may delay an answer."""
DRIFT_PER_MILLION = 500
"""How far two clocks may drift apart without a step."""


class ClockReading(msgspec.Struct, frozen=True):
    """The database's clock, and our own clock before it was asked and after it answered."""

    clock: Instant
    asked_at: Instant
    answered_at: Instant


class ClockWatch:
    """The last reading of the database's clock, and the steps that each lane has not been told of."""

    def __init__(self, lanes: int) -> None:
        self._last: ClockReading | None = None
        self._steps: dict[int, list[Instant]] = {lane: [] for lane in range(lanes)}
        self._lock = threading.Lock()

    def check(self, lane: int, reading: ClockReading) -> None:
        """Raise ClockStepped if the clock was set since the lane asked last."""
        self.read(reading)
        with self._lock:
            steps, self._steps[lane] = self._steps.get(lane), []
        if steps:
            raise ClockStepped(tuple(steps))

    def read(self, reading: ClockReading) -> None:
        """Compare the reading of any connection with the last one.

        Which of two overlapping readings is the later one is not known. If the new one is ahead, the clock may have
        been set forward; otherwise the next reading tells.
        """
        with self._lock:
            last = self._last
            step = 0 if last is None else find_step(last, reading)
            if last is not None and reading.asked_at < last.answered_at and step <= 0:
                return
            self._last = reading
            if last is not None and step:
                for steps in self._steps.values():
                    steps.append(longest_step(last, reading) if step > 0 else step)


def find_step(earlier: ClockReading, later: ClockReading) -> Instant:
    """By how much the clock was set between two readings, as far as that is certain; negative if it was set back."""
    most, least = later.answered_at - earlier.asked_at, later.asked_at - earlier.answered_at
    drift = most * DRIFT_PER_MILLION // 1_000_000
    passed = later.clock - earlier.clock
    step = max(passed - most - drift, 0) + min(passed - least + drift, 0)
    return step if abs(step) >= MIN_STEP else 0


def longest_step(earlier: ClockReading, later: ClockReading) -> Instant:
    """By how much the clock may have been set forward at most between two readings.

    A batch may wait for locks for seconds between asking and reading the clock. Counted as time that has passed, they
    would make holders that were live before the step look expired: they keep that time instead, up to their TTL.
    """
    least = max(later.asked_at - earlier.answered_at, 0)
    return later.clock - earlier.clock - least + least * DRIFT_PER_MILLION // 1_000_000


def own_time() -> Instant:
    """This machine's clock that is never set."""
    return boot_nanoseconds() // 1000
