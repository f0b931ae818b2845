"""Keeps something ours in the background, and knows until when that can be relied on."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from holdfast.client.errors import HoldfastError, Limited, OutcomeUnknown, ServerError, Unreachable

SAFE_PART = 0.8
"""How much of a lease we trust: the rest is for clocks that differ and for ending what runs."""
PACE = 1 / 3
_PASSING = (Limited, OutcomeUnknown, ServerError, Unreachable)
"""Trouble that may be over before the lease is."""


def clock() -> float:
    """Seconds that also pass while the machine sleeps, where the system can tell."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Renewal:
    """Sends heartbeats until it is stopped or told that the lease is gone.

    The deadline counts from the moment a good request was *sent*: the server cannot have handled it before.
    """

    def __init__(self, beat: Callable[[float], object], ttl: float, sent_at: float) -> None:
        self._beat, self._ttl = beat, ttl
        self._deadline = sent_at + ttl * SAFE_PART
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="heartbeats", daemon=True)
        self.lost: HoldfastError | None = None
        """Why it is no longer ours, once the server has said so."""

    @property
    def deadline(self) -> float:
        """Until when it is surely ours, on our clock."""
        return self._deadline if self.lost is None else float("-inf")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No more heartbeats; one that is under way does no harm."""
        self._stopped.set()

    def _keep(self) -> None:
        pause = self._ttl * PACE
        while not self._stopped.wait(pause * random.uniform(0.9, 1.0)):  # noqa: S311 - spreads load, hides nothing
            pause = self._ttl * PACE
            sent_at = clock()
            try:
                self._beat(self._ttl * PACE)
            except _PASSING:
                pause = min(1.0, self._ttl / 10)
            except HoldfastError as error:
                self.lost = error
                return
            else:
                self._deadline = sent_at + self._ttl * SAFE_PART
