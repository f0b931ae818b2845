"""Two-second cache for expensive dashboard queries.

Every browser that shows a page fetches it again each time the log grows, so they share one result. Cheap queries are
not cached.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")

TTL_SECONDS = 2.0
MAX_ENTRIES = 1_000


class Cache:
    """Results of the last two seconds, and queries in progress."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[asyncio.Future[Any], float]] = {}
        """Result of a query, or the query in progress, and when it expires."""

    async def get(
        self, key: Hashable, query: Callable[[], Awaitable[T]], is_expensive: Callable[[T], bool] = lambda _: True
    ) -> T:
        """The cached result, or that of a new query. It is kept if `is_expensive(result)`."""
        entry, until = self._entries.get(key, (None, 0.0))
        if entry is None or (entry.done() and time.monotonic() >= until):
            entry = asyncio.ensure_future(self._run(key, query, is_expensive))
            if len(self._entries) >= MAX_ENTRIES:
                self._entries.clear()
            self._entries[key] = (entry, 0.0)
        return cast("T", await asyncio.shield(entry))  # one cancelled request does not cancel it for the others

    async def _run(self, key: Hashable, query: Callable[[], Awaitable[T]], is_expensive: Callable[[T], bool]) -> T:
        keep = False
        try:
            result = await query()
            keep = is_expensive(result)
        finally:
            task = asyncio.current_task()
            if keep and task is not None:
                self._entries[key] = (task, time.monotonic() + TTL_SECONDS)
            else:
                self._entries.pop(key, None)
        return result
