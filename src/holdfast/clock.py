"""Boot clock: monotonic time that also counts while the machine is suspended."""

from __future__ import annotations

import time

# macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC_RAW counts during sleep, unlike its CLOCK_MONOTONIC.
_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", None) or time.CLOCK_MONOTONIC_RAW


def boot_seconds() -> float:
    """Seconds since the machine started, sleep included."""
    return time.clock_gettime(_BOOT_CLOCK)


def boot_nanoseconds() -> int:
    """Nanoseconds since the machine started, sleep included."""
    return time.clock_gettime_ns(_BOOT_CLOCK)
