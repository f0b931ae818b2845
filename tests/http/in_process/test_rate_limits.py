"""Rate limiter: a server borrows slices of a budget that all servers share."""

import asyncio
import time
from collections import Counter

import pytest

from holdfast.core.budget import SLICES, Terms
from holdfast.core.errors import RateLimited, StoreUnavailable
from holdfast.core.row import SECOND
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.http.access.rate_limits import RateLimiter

LIMIT = 40
HOUR = Terms(LIMIT, 3600 * SECOND)


class CountingStore:
    """A store that counts calls of `borrow`, yields to other tasks, and fails as often as configured."""

    def __init__(self):
        self.store = MemoryStore()
        self.asked = 0
        self.failures = 0

    async def borrow(self, subject, limit_class, terms):
        self.asked += 1
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("gone for a moment")
        return self.store.borrow(subject, limit_class, terms)


async def spend(limiter, terms=HOUR, cost=1, subject="k1"):
    """Whether the request was allowed."""
    try:
        await limiter.spend(limiter.budget_of(subject, "read", terms), cost)
    except RateLimited:
        return False
    return True


def test_many_callers_of_one_server_get_exactly_the_limit_in_few_borrowings():
    async def scenario():
        counting_store = CountingStore()
        limiter = RateLimiter(counting_store.borrow)
        allowed = await asyncio.gather(*(spend(limiter) for _ in range(3 * LIMIT)))
        return sum(allowed), counting_store.asked

    allowed, asked = asyncio.run(scenario())
    assert allowed == LIMIT
    assert asked == SLICES, "one borrowing for each slice"


def test_two_servers_together_get_exactly_the_limit():
    async def scenario():
        counting_store = CountingStore()
        meters = [RateLimiter(counting_store.borrow), RateLimiter(counting_store.borrow)]
        return await asyncio.gather(*(spend(meters[place % 2]) for place in range(3 * LIMIT)))

    assert sum(asyncio.run(scenario())) == LIMIT


def test_a_refused_caller_asks_the_store_no_more():
    async def scenario():
        counting_store = CountingStore()
        limiter = RateLimiter(counting_store.borrow)
        while await spend(limiter):
            pass
        before = counting_store.asked
        assert not any([await spend(limiter) for _ in range(50)])
        return counting_store.asked - before

    assert asyncio.run(scenario()) == 0


@pytest.mark.parametrize("cost", [1, 3, LIMIT])
def test_what_costs_more_is_counted_as_so_many(cost):
    async def scenario():
        limiter = RateLimiter(CountingStore().borrow)
        return [await spend(limiter, cost=cost) for _ in range(LIMIT // cost + 2)]

    assert sum(asyncio.run(scenario())) == LIMIT // cost


def test_what_costs_more_than_there_is_takes_nothing():
    async def scenario():
        limiter = RateLimiter(CountingStore().borrow)
        first = await spend(limiter, cost=LIMIT + 1)
        return first, sum([await spend(limiter) for _ in range(2 * LIMIT)])

    assert asyncio.run(scenario()) == (False, LIMIT)


def test_subjects_do_not_share():
    async def scenario():
        limiter = RateLimiter(CountingStore().borrow)
        return [sum([await spend(limiter, subject=name) for _ in range(2 * LIMIT)]) for name in ("k1", "k2")]

    assert asyncio.run(scenario()) == [LIMIT, LIMIT]


def test_a_store_that_fails_fails_one_and_the_others_go_on():
    async def scenario():
        counting_store = CountingStore()
        counting_store.failures = 1
        limiter = RateLimiter(counting_store.borrow)
        came = await asyncio.gather(*(spend(limiter) for _ in range(10)), return_exceptions=True)
        return Counter(type(each).__name__ for each in came)

    assert asyncio.run(scenario()) == {"StoreUnavailable": 1, "bool": 9}


def test_a_new_window_starts_anew_and_never_lends_more_than_its_limit():
    short = Terms(LIMIT, SECOND // 5)

    async def scenario():
        counting_store = CountingStore()
        meters = [RateLimiter(counting_store.borrow), RateLimiter(counting_store.borrow)]
        began, served = time.monotonic(), 0
        while time.monotonic() - began < 1:
            for limiter in meters:
                served += await spend(limiter, short)
            await asyncio.sleep(0.0005)
        return served, time.monotonic() - began

    served, seconds = asyncio.run(scenario())
    windows = int(seconds / 0.2) + 1
    # A slice of the window before may be spent a moment after its end.
    assert LIMIT < served <= LIMIT * windows + 2 * (LIMIT // SLICES)


def test_headers_count_down_and_never_below_nothing():
    async def scenario():
        limiter, told = RateLimiter(CountingStore().borrow), []
        for _ in range(LIMIT + 2):
            await spend(limiter)
            budget = limiter.budget_of("k1", "read", HOUR)
            told.append(dict(budget.headers())[b"ratelimit"].split(b";")[1])
        return told

    assert asyncio.run(scenario()) == [*(f"r={left}".encode() for left in range(LIMIT - 1, -1, -1)), b"r=0", b"r=0"]
