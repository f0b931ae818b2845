"""How many requests a key or an address may send: counted here, out of slices borrowed from all servers' one budget."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from holdfast.core.budget import Budget, Terms
from holdfast.core.errors import RateLimited
from holdfast.core.row import SECOND
from holdfast.transport.http.request import Header

MOST_PURSES = 100_000

Borrow = Callable[[str, str, Terms], Awaitable[Budget]]


class Purse:
    """What one caller may still spend on one kind of request before this server must borrow again."""

    __slots__ = ("borrowing", "ends", "left", "lent", "name", "subject", "terms")

    def __init__(self, subject: str, name: str, terms: Terms) -> None:
        self.subject = subject
        self.name = name
        self.terms = terms
        self.left = 0
        self.lent = 0
        """How much of the budget all servers together have borrowed, as far as is known here."""
        self.ends = 0.0
        self.borrowing: asyncio.Task[Budget] | None = None

    def wait(self) -> int:
        """Whole seconds until the window ends, at least one."""
        return max(math.ceil(self.ends - time.monotonic()), 1)

    def headers(self) -> tuple[Header, ...]:
        """What callers can pace themselves by."""
        limit, window = self.terms.limit, self.terms.window // SECOND
        remaining = max(limit - self.lent + self.left, 0)
        return (
            (b"ratelimit-policy", f'"{self.name}";q={limit};w={window}'.encode()),
            (b"ratelimit", f'"{self.name}";r={remaining};t={self.wait()}'.encode()),
        )


class RateLimiter:
    """All purses of this server."""

    def __init__(self, borrow: Borrow) -> None:
        self._borrow = borrow
        self._purses: dict[tuple[str, str], Purse] = {}

    async def spend(self, purse: Purse, cost: int = 1) -> None:
        """Count requests, or refuse them until the window is over."""
        while purse.left < cost:
            if purse.lent >= purse.terms.limit and purse.ends > time.monotonic():
                limit, window = purse.terms.limit, purse.terms.window // SECOND
                message = f"{limit} {purse.name} requests in {window} seconds are spent"
                raise RateLimited(message, retry_after=purse.wait(), **{"violated-policies": [purse.name]})
            await self._fill(purse)
        purse.left -= cost

    def purse(self, subject: str, limit_class: str, terms: Terms) -> Purse:
        """What a caller has for one kind of request."""
        purse = self._purses.get((subject, limit_class))
        if purse is not None and purse.terms == terms and purse.ends > time.monotonic():
            return purse
        if len(self._purses) >= MOST_PURSES:
            moment = time.monotonic()
            self._purses = {key: kept for key, kept in self._purses.items() if kept.ends > moment}
        if purse is None or purse.terms != terms or purse.borrowing is None:
            purse = self._purses[subject, limit_class] = Purse(subject, limit_class, terms)
        return purse

    def spent(self, subject: str, limit_class: str) -> int:
        """How much of a caller's budget is spent in this window, as far as is known here."""
        purse = self._purses.get((subject, limit_class))
        return purse.lent - purse.left if purse is not None and purse.ends > time.monotonic() else 0

    async def _fill(self, purse: Purse) -> None:
        """Borrow a slice; whoever comes meanwhile waits for the same one."""
        if purse.borrowing is None:
            purse.borrowing = asyncio.ensure_future(self._borrow(purse.subject, purse.name, purse.terms))
            try:
                budget = await purse.borrowing
            finally:
                purse.borrowing = None
            ends = time.monotonic() + budget.ends_in / SECOND
            if budget.used == budget.granted:  # the first slice of a new window
                purse.left = 0
            purse.left += budget.granted
            purse.lent = max(budget.used, purse.terms.limit if not budget.granted else 0)
            purse.ends = ends
        else:
            await asyncio.wait({purse.borrowing})
