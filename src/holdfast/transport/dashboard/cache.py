"""What is dear to find is found once for all who look within two seconds.

A page that many watch is fetched by all of them each time the log grows. Whatever is cheap is looked up anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")

KEPT_SECONDS = 2.0
MOST = 1_000


class Cache:
    """What was found a moment ago, or is being looked for just now."""

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[asyncio.Future[Any], float]] = {}
        """By what was asked: what came of it, and until when that holds."""

    async def find(
        self, key: Hashable, look: Callable[[], Awaitable[T]], is_dear: Callable[[T], bool] = lambda _: True
    ) -> T:
        """Look, or share what somebody else has found. `is_dear` says whether it is kept."""
        known, until = self._found.get(key, (None, 0.0))
        if known is None or (known.done() and time.monotonic() >= until):
            known = asyncio.ensure_future(self._look(key, look, is_dear))
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[key] = (known, 0.0)
        return cast("T", await asyncio.shield(known))  # one visitor who leaves does not stop it for the others

    async def _look(self, key: Hashable, look: Callable[[], Awaitable[T]], is_dear: Callable[[T], bool]) -> T:
        kept = False
        try:
            found = await look()
            kept = is_dear(found)
        finally:
            mine = asyncio.current_task()
            if kept and mine is not None:
                self._found[key] = (mine, time.monotonic() + KEPT_SECONDS)
            else:
                self._found.pop(key, None)
        return found
