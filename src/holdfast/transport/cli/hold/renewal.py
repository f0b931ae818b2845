"""Renews a lease in the background while a command runs."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from holdfast.client.errors import HoldfastError, Limited, OutcomeUnknown, ServerError, Unreachable
from holdfast.client.leases.clock import LeaseClock, Margins, now
from holdfast.client.leases.state import SHORTEST_REQUEST

MARGINS = Margins(trusted=0.8, jitter=0.1)
"""A fifth of the lease is not trusted: it is left for clock drift and for ending the command."""
PACE = 1 / 3
"""Part of the TTL between two renewals."""
_TRANSIENT = (Limited, OutcomeUnknown, ServerError, Unreachable, LookupError, TypeError, ValueError)
"""Errors that may pass before the lease ends; the last three are those of an answer that is not the server's."""


class Renewal:
    """Thread that sends heartbeats until it is stopped or the server says that the lease is lost."""

    def __init__(self, renew: Callable[[float], float], ttl: float, sent_at: float) -> None:
        self._renew = renew
        self._clock = LeaseClock(ttl, sent_at, ttl * PACE, MARGINS)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)
        self.lost: HoldfastError | None = None
        """The server's error that says that the lease is lost."""

    @property
    def deadline(self) -> float:
        """Until when the lease is surely ours, on the clock of `now`."""
        return self._clock.deadline if self.lost is None else float("-inf")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send no more heartbeats; one that is being sent does no harm."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(max(0.0, self._clock.due - now())):
            sent_at = now()
            try:
                ttl = self._renew(max(self._clock.every, SHORTEST_REQUEST))
            except _TRANSIENT:
                self._clock.retry_after(min(1.0, self._clock.ttl / 10) * random.uniform(0.9, 1.0))
            except HoldfastError as error:
                self.lost = error
                return
            else:
                self._clock.renewed(sent_at, ttl * PACE, ttl)
