"""Rate limits of accounts and addresses, shared by all servers.

The store holds one budget for each caller and kind of request. A server borrows a slice of it at a time and counts
requests against that slice in memory.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from holdfast.core.budget import Budget, Terms
from holdfast.core.errors import RateLimited
from holdfast.core.row import SECOND
from holdfast.transport.http.request import Header

MAX_BUDGETS = 100_000
"""Budgets in memory; beyond that, those whose window is over are dropped."""

Borrow = Callable[[str, str, Terms], Awaitable[Budget]]


class RateBudget:
    """The requests of one kind that one caller may still send before this server must borrow again."""

    __slots__ = ("borrowed", "borrowing", "ends", "name", "remaining", "subject", "terms")

    def __init__(self, subject: str, name: str, terms: Terms) -> None:
        self.subject = subject
        self.name = name
        self.terms = terms
        self.remaining = 0
        self.borrowed = 0
        """How much of the budget all servers together have borrowed, as of our last borrowing."""
        self.ends = 0.0
        self.borrowing: asyncio.Task[Budget] | None = None

    def seconds_left(self) -> int:
        """Whole seconds until the window ends, at least one."""
        return max(math.ceil(self.ends - time.monotonic()), 1)

    def headers(self) -> tuple[Header, ...]:
        """RateLimit headers, by which callers can pace themselves."""
        limit, window = self.terms.limit, self.terms.window // SECOND
        remaining = max(limit - self.borrowed + self.remaining, 0)
        return (
            (b"ratelimit-policy", f'"{self.name}";q={limit};w={window}'.encode()),
            (b"ratelimit", f'"{self.name}";r={remaining};t={self.seconds_left()}'.encode()),
        )


class RateLimiter:
    """All rate budgets of this server."""

    def __init__(self, borrow: Borrow) -> None:
        self._borrow = borrow
        self._budgets: dict[tuple[str, str], RateBudget] = {}

    async def spend(self, budget: RateBudget, cost: int = 1) -> None:
        """Count requests, or refuse them until the window is over."""
        while budget.remaining < cost:
            if budget.borrowed >= budget.terms.limit and budget.ends > time.monotonic():
                limit, window = budget.terms.limit, budget.terms.window // SECOND
                message = f"the limit of {limit} {budget.name} requests in {window} seconds is reached"
                raise RateLimited(message, retry_after=budget.seconds_left(), **{"violated-policies": [budget.name]})
            await self._borrow_slice(budget)
        budget.remaining -= cost

    def budget_of(self, subject: str, limit_class: str, terms: Terms) -> RateBudget:
        """The budget of one caller for one kind of request."""
        budget = self._budgets.get((subject, limit_class))
        if budget is not None and budget.terms == terms and budget.ends > time.monotonic():
            return budget
        if len(self._budgets) >= MAX_BUDGETS:
            moment = time.monotonic()
            self._budgets = {key: each for key, each in self._budgets.items() if each.ends > moment}
        if budget is None or budget.terms != terms or budget.borrowing is None:
            budget = self._budgets[subject, limit_class] = RateBudget(subject, limit_class, terms)
        return budget

    def spent(self, subject: str, limit_class: str) -> int:
        """How much of a caller's budget is spent in this window, as far as this server knows."""
        budget = self._budgets.get((subject, limit_class))
        return budget.borrowed - budget.remaining if budget is not None and budget.ends > time.monotonic() else 0

    async def _borrow_slice(self, budget: RateBudget) -> None:
        """Borrow a slice from the store; requests that arrive in the meantime wait for the same slice."""
        if budget.borrowing is not None:
            await asyncio.wait({budget.borrowing})
            return
        budget.borrowing = asyncio.ensure_future(self._borrow(budget.subject, budget.name, budget.terms))
        try:
            loan = await budget.borrowing
        finally:
            budget.borrowing = None
        ends = time.monotonic() + loan.ends_in / SECOND
        if loan.used == loan.granted:  # the first slice of a new window
            budget.remaining = 0
        budget.remaining += loan.granted
        budget.borrowed = max(loan.used, budget.terms.limit if not loan.granted else 0)
        budget.ends = ends
