"""Until when a lease is surely ours, by our own clock. Bookkeeping only: nothing here sends or waits.

A lease runs on the server's clock from the moment the server handled a request, which was not before we sent it.
A holder that counts from the *sending* of the last successful renewal therefore stops in time, however long the
answer took, and even if the network hung or this machine was suspended.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.clock import boot_seconds


def now() -> float:
    """Seconds on a clock that is never set and also runs while the machine sleeps."""
    return boot_seconds()


class Margins(NamedTuple):
    """Parts of the TTL and of the renewal interval that a holder keeps as a reserve."""

    trusted: float
    """Part of the TTL during which the holder relies on the lease."""
    jitter: float
    """Part of the renewal interval by which a renewal may be early, so that holders do not renew in step."""


class LeaseClock:
    """When to renew a lease, and when to stop relying on it. Not locked: one thread writes, any may read."""

    def __init__(self, ttl: float, sent: float, every: float, margins: Margins) -> None:
        self._margins = margins
        self.every = every
        """Seconds between renewals."""
        self.ttl = ttl
        """Seconds that the last successful renewal was granted for."""
        self.sent = sent
        """When the last successful renewal was sent."""
        self.due = self._next_renewal()
        """When to renew next."""

    @property
    def deadline(self) -> float:
        """Until when the lease is surely ours."""
        return self.sent + self.ttl * self._margins.trusted

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

    def renewed(self, sent: float, every: float | None = None, ttl: float | None = None) -> None:
        """A renewal that was sent at this time succeeded.

        `every` and `ttl` are the interval and the duration that the server granted, if its answer has them.
        """
        self.every = self.every if every is None else every
        self.ttl = self.ttl if ttl is None else ttl
        self.sent = max(self.sent, sent)
        self.due = self._next_renewal()

    def shorten(self, sent: float, ttl: float) -> None:
        """A renewal for `ttl` seconds is sent: from now on, the lease may end that early, answered or not."""
        self.ttl = min(self.ttl, sent + ttl - self.sent)
        self.due = min(self.due, sent + ttl / 3)

    def retry_after(self, seconds: float) -> None:
        """A renewal failed: the next one is due after `seconds`."""
        self.due = now() + seconds

    def _next_renewal(self) -> float:
        # The part of a millisecond at which it was sent is as good as random, and the same for all leases that one
        # request renewed: these stay due together.
        early = self._margins.jitter * (self.sent * 1000 % 1.0)
        return self.sent + self.every * (1.0 - early)
