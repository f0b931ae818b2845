"""State of a held lease: its terms, how long it lasts, and whether it was lost."""

from __future__ import annotations

import random
import threading
from typing import Any, NamedTuple

import msgspec

from holdfast.client.errors import CancelRequested, Conflict, HoldfastError, LeaseLost, NotFound
from holdfast.client.leases.clock import LeaseClock, Margins
from holdfast.client.retry import doubled

MARGINS = Margins(trusted=0.999, jitter=0.2)
"""Two clocks may drift apart by 500 parts in a million each: we stop before the server's clock reaches the end."""
FIRST_RETRY, LONGEST_RETRY = 0.2, 20.0
SHORTEST_REQUEST = 0.1
"""Seconds that a renewal may take at least."""


class Terms(msgspec.Struct, frozen=True):
    """A granted lease, and how to renew and release it."""

    what: str
    """Name of the lease in messages, such as "job deploy/web"."""
    token: int
    ttl: float
    """Seconds that the claim was granted for."""
    every: float
    """Seconds between renewals, as the server advises."""
    proof: dict[str, Any]
    """Arguments that prove to the server that the caller is the holder."""
    renewal: str
    """Operation that renews the lease."""
    release: str
    """Operation that releases the lease."""
    document: dict[str, Any]
    """The server's answer to the claim."""
    entry: dict[str, Any] | None = None
    """The lease in a renewal of many (`heartbeat_leases`); None if it can only be renewed by itself."""


class Duration(NamedTuple):
    """What the answer to a claim or a renewal says about time, in seconds."""

    ttl: float
    """For how long the lease is granted: until its own deadline or the end of its session, whichever is earlier."""
    every: float
    """How often to renew."""


class LeaseState:
    """Whether a lease is still surely ours. Safe to use from several threads."""

    def __init__(self, terms: Terms, sent: float) -> None:
        self.terms = terms
        self._mutex = threading.Lock()
        self._clock = LeaseClock(terms.ttl, sent, terms.every, MARGINS)
        self._failures = 0
        self._error: HoldfastError | None = None

    @property
    def remaining(self) -> float:
        """Seconds for which the lease is surely ours."""
        with self._mutex:
            return 0.0 if isinstance(self._error, LeaseLost) else self._clock.remaining

    @property
    def request_timeout(self) -> float:
        """Seconds that one renewal may take: short enough for another to follow."""
        with self._mutex:
            return max(self._clock.ttl * 0.3, SHORTEST_REQUEST)

    @property
    def is_stale(self) -> bool:
        """Whether half the renewal interval has passed since the last request was sent, as after a long wait."""
        with self._mutex:
            return self._clock.age > self._clock.every / 2

    def check(self) -> None:
        """Raise LeaseLost unless the lease is surely ours now, CancelRequested if its task is to be cancelled."""
        with self._mutex:
            if not isinstance(self._error, LeaseLost) and self._clock.remaining <= 0:
                age, ttl = self._clock.age, self._clock.ttl
                self._error = LeaseLost(f"{self.terms.what} was last renewed {age:.1f} s ago, for {ttl:g} s")
            if self._error is not None:
                raise self._error

    def is_over(self) -> bool:
        """Whether there is nothing left to renew."""
        return self.remaining <= 0

    def pause(self) -> float:
        """Seconds until the next renewal is due, or until it is too late for one."""
        with self._mutex:
            return self._clock.pause

    def renewing(self, sent: float, ttl: float | None) -> None:
        """A renewal is sent, for `ttl` seconds if it asks for another duration; its answer may be lost."""
        if ttl is not None:
            with self._mutex:
                self._clock.shorten(sent, ttl)

    def renewed(self, sent: float, granted: Duration, document: dict[str, Any]) -> None:
        """A renewal that was sent at this time succeeded. A loss that was reported before stays a loss."""
        with self._mutex:
            self._failures = 0
            self._clock.renewed(sent, granted.every, granted.ttl)
            is_cancelled = document.get("cancelRequested") or document.get("cancel_requested")
            if is_cancelled and self._error is None:
                self._error = CancelRequested(f"cancellation of {self.terms.what} was requested", document=document)

    def refused(self, error: HoldfastError) -> None:
        """A renewal failed: the lease is lost, or there was no answer and the renewal is retried soon."""
        with self._mutex:
            # Any conflict that waiting does not resolve means that the caller no longer holds the lease.
            if isinstance(error, Conflict | NotFound) and not isinstance(self._error, LeaseLost):
                self._error = (
                    error if isinstance(error, LeaseLost) else LeaseLost(error.message, document=error.document)
                )
            longest = doubled(FIRST_RETRY, self._failures, min(LONGEST_RETRY, self._clock.ttl / 10))
            self._failures += 1
            self._clock.retry_after(random.uniform(0.0, longest))
