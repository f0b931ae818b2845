"""The request limiter: which requests an overloaded server admits.

Every request takes a place until it is answered or waits on purpose. Callers with a known key, callers with an unknown
key and callers without one have separate places, so guesses and anonymous requests never keep a known caller out.

When all places of a kind are taken, further requests of it are refused. Renewals, releases and other requests of
holders then use places of their own, because a refused renewal could cost a lease. Accounts share the places of a
kind (`concurrency_limit.py`).

Refusals are paced: a caller that repeats at once gets its next refusal later, so that refusing cannot become the load.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from holdfast.operations.table import HOLDER_OPERATIONS, PROBES
from holdfast.transport.http.access.network import has_credential
from holdfast.transport.http.overload.concurrency_limit import ConcurrencyLimit
from holdfast.transport.http.request import HttpRefusal, Request
from holdfast.transport.http.routing import Router

MIN_KNOWN, FIRST_KNOWN, MAX_KNOWN = 100, 250, 1_000
"""Places of known callers: at the beginning, and the least and the most. They follow how late the event loop is."""
MAX_UNKNOWN = 64
"""Requests with an unknown key: each needs a look-up in the store."""
MAX_ANONYMOUS = 250
MAX_HOLDERS = 10_000
"""Requests of holders beyond the places of known callers."""
MAX_LEADERS = 1_000
"""Renewals of leaderships, whose proof is in the body: they cannot be told from guesses before it is read."""
MAX_PROBES = 100
BATCH = "batch_tasks"

LONGEST_PACE = 10.0
"""Seconds by which a refusal is delayed at most."""
REPORT_SECONDS = 10.0
CHECK_SECONDS = 0.1
LATE_SECONDS = 0.1
"""How much later than planned the event loop may run before it counts as late."""
MORE_PLACES = 10
"""Places that a punctual event loop gains at each check, if they are used."""

log = logging.getLogger("holdfast.http")


class RequestLimiter:
    """Admits requests while there is a place for their kind."""

    def __init__(self, router: Router, account_of: Callable[[Request], str | None], mcp_path: str) -> None:
        self._router = router
        self._account_of = account_of
        """The account of a key that was valid at its last use; None for any other caller."""
        self._mcp_path = mcp_path
        self.known = ConcurrencyLimit(FIRST_KNOWN)
        self.unknown = ConcurrencyLimit(MAX_UNKNOWN)
        self.anonymous = ConcurrencyLimit(MAX_ANONYMOUS)
        self.holders = ConcurrencyLimit(MAX_HOLDERS)
        self.leaders = ConcurrencyLimit(MAX_LEADERS)
        self.probes = ConcurrencyLimit(MAX_PROBES)
        self._refused = 0
        self._reported = 0.0
        self._next_refusal = 0.0
        self._entered = asyncio.Event()
        """Set by each request, so that the event loop of an idle server is not watched."""

    def enter(self, request: Request) -> bool:
        """Give a request a place; False if it must be refused."""
        self._entered.set()
        account = self._account_of(request)
        is_known, owner = account is not None, account or ""
        limit = self.known if is_known else self.unknown if has_credential(request) else self.anonymous
        if not limit.has_room(owner):
            reserved = self._reserved(request, is_known=is_known)
            if reserved is None or not reserved.has_room(owner):
                return False
            limit = reserved
        request.take_place(limit, owner)
        return True

    def _reserved(self, request: Request, *, is_known: bool) -> ConcurrencyLimit | None:
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

    async def pace_refusal(self) -> None:
        """Wait until one more request may be refused: each second as many as known callers have places.

        Refusals are logged together: a line for each would be another load.
        """
        self._refused += 1
        moment = time.monotonic()
        if moment - self._reported >= REPORT_SECONDS:
            log.warning("too many requests at once: %d refused since the last such line", self._refused)
            self._refused, self._reported = 0, moment
        self._next_refusal = max(self._next_refusal, moment) + 1 / self.known.limit
        delay = self._next_refusal - moment
        if delay > CHECK_SECONDS:  # below that, all are answered at once
            self._next_refusal = min(self._next_refusal, moment + LONGEST_PACE)
            await asyncio.sleep(min(delay, LONGEST_PACE))

    async def watch_event_loop(self, seconds_in_batches: Callable[[], float]) -> None:
        """Take places from known callers while the event loop is late, and give them back when it is not.

        `seconds_in_batches` is how long it has run batches so far: a slow disk is no reason to refuse requests.
        Without requests it does not look: each look wakes an idle process.
        """
        loop = asyncio.get_running_loop()
        while True:
            await self._entered.wait()
            self._entered.clear()
            planned, used, before = loop.time() + CHECK_SECONDS, self.known.taken, seconds_in_batches()
            await asyncio.sleep(CHECK_SECONDS)
            late = loop.time() - planned - (seconds_in_batches() - before)
            self.adapt(late, max(used, self.known.taken))

    def adapt(self, late: float, used: int) -> None:
        """Set the number of places, of which some are used, after the event loop ran this many seconds late.

        A renewal needs several passes of the event loop, and each pass serves all who have a place.
        """
        limit = self.known.limit
        if late > LATE_SECONDS:
            self.known.limit = max(int(limit * LATE_SECONDS / late), MIN_KNOWN)
        elif used > limit // 2:
            self.known.limit = min(limit + MORE_PLACES, MAX_KNOWN)
