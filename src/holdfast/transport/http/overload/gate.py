"""The gate: which requests an overloaded server admits.

Every request takes a place until it is answered or waits on purpose. Callers with a known key and strangers (no key, or
one that was not seen before) have separate places, so guesses and anonymous requests never keep a known caller out.
When its places are taken, a request is refused at once, which costs little: except those by which a holder keeps what
it holds. These have places of their own, because a refused renewal could cost a lease.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from holdfast.operations.table import HOLDER_OPERATIONS, PROBES
from holdfast.transport.http.request import HttpRefusal, Request
from holdfast.transport.http.routing import Router

MAX_KNOWN = 1_000
MAX_STRANGERS = 250
MAX_HOLDERS = 10_000
"""Requests of holders beyond the places of known callers."""
MAX_LEADERS = 1_000
"""Renewals of leaderships, whose proof is in the body: they cannot be told from guesses before it is read."""
MAX_PROBES = 100
REPORT_SECONDS = 10.0
BATCH = "batch_tasks"

log = logging.getLogger("holdfast.http")


class Places:
    """A number of places, some of them taken."""

    __slots__ = ("limit", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0


class Gate:
    """Admits requests while there is a place for their kind."""

    def __init__(self, router: Router, knows: Callable[[Request], bool], mcp_path: str) -> None:
        self._router = router
        self._knows = knows
        self._mcp_path = mcp_path
        self.known, self.strangers = Places(MAX_KNOWN), Places(MAX_STRANGERS)
        self.holders, self.leaders, self.probes = Places(MAX_HOLDERS), Places(MAX_LEADERS), Places(MAX_PROBES)
        self._refused = 0
        self._reported = 0.0

    def enter(self, request: Request) -> bool:
        """Give a request a place; False if it must be refused."""
        is_known = self._knows(request)
        places: Places | None = self.known if is_known else self.strangers
        assert places is not None
        if places.taken >= places.limit:
            places = self._reserved(request, is_known=is_known)
            if places is None or places.taken >= places.limit:
                self._count_refusal()
                return False
        places.taken += 1
        request.places = places
        return True

    def _reserved(self, request: Request, *, is_known: bool) -> Places | None:
        """The places for this operation on an overloaded server, if it has any."""
        if request.scope["path"] == self._mcp_path:  # each of its tools is a request that is admitted by itself
            return self.holders if is_known else None
        try:
            operation, _ = self._router.find(request.scope["method"], request.scope["raw_path"])
        except HttpRefusal:
            return None
        if operation.name in PROBES:
            return self.probes
        if operation.name == BATCH and is_known:
            request.may_begin_work = False  # known only when its items are read
            return self.holders
        if operation.name not in HOLDER_OPERATIONS:
            return None
        return self.holders if is_known else self.leaders if operation.scope is None else None

    def _count_refusal(self) -> None:
        """Log refusals together: a line for each would be another load."""
        self._refused += 1
        moment = time.monotonic()
        if moment - self._reported >= REPORT_SECONDS:
            log.warning("too many requests at once: %d refused since the last such line", self._refused)
            self._refused, self._reported = 0, moment
