"""Watches the database's clock for steps, by comparing it with a clock of this machine that is never set.

Each lane has a watch of its own, so that each finds a step before it decides anything by the changed clock.
"""

from __future__ import annotations

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
    """The last reading of the database's clock that a lane has accepted."""

    def __init__(self) -> None:
        self._last: ClockReading | None = None

    def check(self, reading: ClockReading) -> None:
        """Raise ClockStepped, once, if the clock was set since the last reading."""
        last, self._last = self._last, reading
        if last is not None and (step := find_step(last, reading)):
            raise ClockStepped(step)

    def refresh(self, reading: ClockReading) -> None:
        """Take the reading of another connection if there was no step before it: little drift can hide the next one."""
        last = self._last
        if last is not None and reading.asked_at > last.answered_at and not find_step(last, reading):
            self._last = reading


def find_step(earlier: ClockReading, later: ClockReading) -> Instant:
    """By how much the clock was set between two readings, as far as that is certain; negative if it was set back."""
    most, least = later.answered_at - earlier.asked_at, later.asked_at - earlier.answered_at
    drift = most * DRIFT_PER_MILLION // 1_000_000
    passed = later.clock - earlier.clock
    step = max(passed - most - drift, 0) + min(passed - least + drift, 0)
    return step if abs(step) >= MIN_STEP else 0


def own_time() -> Instant:
    """This machine's clock that is never set."""
    return boot_nanoseconds() // 1000
