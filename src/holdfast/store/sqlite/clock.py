"""The clock of a SQLite file: monotonic, and shared by every process on the host.

Steps of the wall clock neither end nor extend a lease: within one boot, time is counted on the boot clock, which also
counts during suspend, and is adjusted towards the wall clock by at most 500 parts in a million.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec

from holdfast.clock import boot_nanoseconds
from holdfast.core.row import Instant

SLEW_PER_MILLION = 500


class Reading(msgspec.Struct, frozen=True):
    """The machine's clocks at one moment."""

    boot_id: str
    boot_at: Instant
    wall: Instant


class Mark(msgspec.Struct, frozen=True):
    """The store's time at the last commit, and the boot clock at that moment."""

    now: Instant
    boot_id: str
    boot_at: Instant


def advance(mark: Mark, reading: Reading) -> Instant:
    """The store's time at this reading."""
    if reading.boot_id != mark.boot_id:
        return max(reading.wall, mark.now)
    elapsed = max(reading.boot_at - mark.boot_at, 0)
    steady = mark.now + elapsed
    most = elapsed * SLEW_PER_MILLION // 1_000_000
    return steady + min(max(reading.wall - steady, -most), most)


def read() -> Reading:
    """Read the machine's clocks."""
    return Reading(_BOOT_ID, boot_nanoseconds() // 1000, time.time_ns() // 1000)


def _boot_id() -> str:
    if sys.platform == "darwin":
        return subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, check=True, text=True
        ).stdout.strip()
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


_BOOT_ID = _boot_id()
