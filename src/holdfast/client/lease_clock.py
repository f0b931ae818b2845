"""What we know of a lease by our own clock. Bookkeeping only: nothing here sends or waits.

A lease runs on the server's clock from the moment it handled a request, which was not before we sent it. So whoever
counts from the *sending* of the last good renewal stops in time, however long the answer took and whether the network
hung or this machine slept.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import msgspec

from holdfast.client.errors import CancelRequested, Conflict, HoldfastError, LeaseLost, NotFound

DRIFT = 0.999
"""Two clocks may disagree by 500 parts in a million each way; we stop before theirs can."""
_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def now() -> float:
    """Seconds on a clock that nobody sets, and that goes on while this machine sleeps, where there is such a one."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


class Terms(msgspec.Struct, frozen=True):
    """What was granted, and how to keep it and give it back."""

    what: str
    token: int
    ttl: float
    every: float
    """Seconds between renewals, as the server advises."""
    proof: dict[str, Any]
    """The arguments that every write of the holder carries."""
    renewal: str
    release: str
    document: dict[str, Any]


class LeaseClock:
    """Whether a lease can still be proved to be ours. Several threads may ask."""

    def __init__(self, terms: Terms, sent: float) -> None:
        self.terms = terms
        self._mutex = threading.Lock()
        self._sent = sent
        self._beat = self._after(sent)
        self._failures = 0
        self._error: HoldfastError | None = None

    @property
    def remaining(self) -> float:
        """For how many seconds more it is surely ours."""
        with self._mutex:
            return 0.0 if isinstance(self._error, LeaseLost) else max(0.0, self._end() - now())

    def check(self) -> None:
        """Raise LeaseLost unless it is surely ours at this moment, CancelRequested if we were asked to stop."""
        with self._mutex:
            if not isinstance(self._error, LeaseLost) and now() >= self._end():
                late = now() - self._sent
                self._error = LeaseLost(
                    f"{self.terms.what} was last renewed {late:.1f} s ago, for {self.terms.ttl:g} s"
                )
            if self._error is not None:
                raise self._error

    def is_over(self) -> bool:
        """Whether there is nothing left to renew."""
        return self.remaining <= 0

    def renewed(self, sent: float, document: dict[str, Any]) -> None:
        """A renewal that was sent then went well. Once somebody was told that it is lost, it stays so."""
        with self._mutex:
            self._failures = 0
            self._sent = max(self._sent, sent)
            self._beat = self._after(self._sent)
            if document.get("cancelRequested") and self._error is None:
                self._error = CancelRequested(
                    f"somebody asked for {self.terms.what} to be called off", document=document
                )

    def refused(self, error: HoldfastError) -> None:
        """A renewal went wrong: the lease is over, or nobody answered and we try again soon."""
        with self._mutex:
            # Whatever stands in the holder's way that waiting does not mend, it holds nothing any more.
            if isinstance(error, Conflict | NotFound) and not isinstance(self._error, LeaseLost):
                self._error = (
                    error if isinstance(error, LeaseLost) else LeaseLost(error.message, document=error.document)
                )
            most = min(20.0, self.terms.ttl / 10, 0.2 * 2**self._failures)
            self._failures += 1
            self._beat = now() + random.uniform(0.0, most)  # noqa: S311 - spreads load, hides nothing

    def pause(self) -> float:
        """Seconds until the next renewal is due, or until it is too late for one."""
        with self._mutex:
            return max(0.0, min(self._beat, self._end()) - now())

    def patience(self) -> float:
        """How long one renewal may take: short enough that another can follow it."""
        return self.terms.ttl * 0.3

    def _end(self) -> float:
        return self._sent + self.terms.ttl * DRIFT

    def _after(self, sent: float) -> float:
        return sent + self.terms.every * random.uniform(0.8, 1.0)  # noqa: S311 - spreads load, hides nothing
