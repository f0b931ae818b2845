"""Until when a lease is surely ours, by our own clock. Bookkeeping only: nothing here sends or waits.

A lease runs on the server's clock from the moment the server handled a request, which was not before we sent it.
A holder that counts from the *sending* of the last successful renewal therefore stops in time, however long the
answer took, and even if the network hung or this machine was suspended.
"""

from __future__ import annotations

import random
import time
from typing import NamedTuple

_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds on a clock that is never set and, where the system has one, also runs while the machine sleeps."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class Margins(NamedTuple):
    """Parts of the TTL and of the renewal interval that a holder keeps as a reserve."""

    trusted: float
    """Part of the TTL during which the holder relies on the lease."""
    jitter: float
    """Part of the renewal interval by which a renewal may be early, so that holders do not renew in step."""


class LeaseClock:
    """When to renew a lease, and when to stop relying on it. Not locked: one thread writes, any may read."""

    def __init__(self, ttl: float, sent: float, every: float, margins: Margins) -> None:
        self._ttl, self._every, self._margins = ttl, every, margins
        self.sent = sent
        """When the last successful renewal was sent."""
        self.due = self._next_renewal()
        """When to renew next."""

    @property
    def deadline(self) -> float:
        """Until when the lease is surely ours."""
        return self.sent + self._ttl * self._margins.trusted

    @property
    def remaining(self) -> float:
        """Seconds for which the lease is surely ours."""
        return max(0.0, self.deadline - now())

    @property
    def age(self) -> float:
        """Seconds since the last successful renewal was sent."""
        return now() - self.sent

    @property
    def pause(self) -> float:
        """Seconds until the next renewal is due, or until it is too late for one."""
        return max(0.0, min(self.due, self.deadline) - now())

    def renewed(self, sent: float, every: float | None = None) -> None:
        """A renewal that was sent at this time succeeded; `every` is the new interval if the server advised one."""
        self._every = self._every if every is None else every
        self.sent = max(self.sent, sent)
        self.due = self._next_renewal()

    def retry_after(self, seconds: float) -> None:
        """A renewal failed: the next one is due after `seconds`."""
        self.due = now() + seconds

    def _next_renewal(self) -> float:
        return self.sent + self._every * random.uniform(1.0 - self._margins.jitter, 1.0)
