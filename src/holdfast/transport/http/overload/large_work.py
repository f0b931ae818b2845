"""Work whose duration grows with a request's size runs in a thread, so that the event loop stays free for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE_BYTES = 64 * 1024
"""Work on more bytes than this runs in the thread. Decoding and checking this much takes a few milliseconds."""

_thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-bodies")
"""One thread: large requests queue for it, and the event loop competes with no more than one of them."""


async def run_sized(size: int, function: Callable[[], T]) -> T:
    """Call a function that works on `size` bytes: here if they are few, else in the thread."""
    if size <= LARGE_BYTES:
        return function()
    return await asyncio.get_running_loop().run_in_executor(_thread, function)
