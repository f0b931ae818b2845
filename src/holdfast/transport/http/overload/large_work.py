"""Work whose duration grows with a request's size runs in a thread, so that the event loop stays free for others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE_BYTES = 64 * 1024
"""Work on more bytes than this runs in the thread. Decoding and checking this much takes a few milliseconds."""
MANY_WAITING = 4
REST_FACTOR, LONGEST_REST = 3, 1.0
"""While many large requests wait, the thread rests three times as long as it worked, but at most a second.

A decoder keeps Python's global lock for as long as it runs, and the store's threads ask for that lock many times in one
transaction: without the rests they would wait for one decoder after the other.
"""


class LargeWork:
    """The thread, and how many requests wait for it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-bodies")
        self._waiting = 0

    async def run(self, function: Callable[[], T]) -> T:
        """Call a function in the thread, after those that were there before."""
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, function)
        finally:
            self._waiting -= 1

    def _work(self, function: Callable[[], T]) -> T:
        began = time.monotonic()
        try:
            return function()
        finally:
            if self._waiting >= MANY_WAITING:
                time.sleep(min(REST_FACTOR * (time.monotonic() - began), LONGEST_REST))


_large_work = LargeWork()


async def run_sized(size: int, function: Callable[[], T]) -> T:
    """Call a function that works on `size` bytes: here if they are few, else in the thread."""
    return function() if size <= LARGE_BYTES else await _large_work.run(function)
