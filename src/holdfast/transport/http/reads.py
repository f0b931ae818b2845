"""Reads of the store from the event loop: in a few threads, and repeated when something changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from holdfast.core.budget import Budget, Terms
from holdfast.core.errors import Overloaded
from holdfast.core.row import Key
from holdfast.engine.engine import Engine
from holdfast.store.contract import Reader
from holdfast.transport.http.request import Request, client_disconnected, until_disconnected

T = TypeVar("T")

READ_THREADS = 4
MAX_READS = 1_000
"""Reads under way or queued at once; more are refused."""


class StoreReads:
    """The threads that read the store for this process's event loop."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._threads = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="holdfast-reader")
        self._known = ThreadPoolExecutor(1, thread_name_prefix="holdfast-known-keys")
        self._unknown = ThreadPoolExecutor(1, thread_name_prefix="holdfast-unknown-keys")
        self._budgets = ThreadPoolExecutor(1, thread_name_prefix="holdfast-budgets")
        self._reading = 0
        self._waiting_reads = asyncio.Semaphore(READ_THREADS)
        self._pages = asyncio.Semaphore(1)

    async def read(self, query: Callable[[Reader], T]) -> T:
        """Read the committed state without blocking the event loop."""
        if self._reading >= MAX_READS:
            raise Overloaded("too many reads of the store are under way")
        self._reading += 1
        try:
            return await self.query(query)
        finally:
            self._reading -= 1

    async def read_page(self, query: Callable[[Reader], T]) -> T:
        """Read and render a page of a long list: one at a time, so that short reads wait for no more than one."""
        async with self._pages:
            return await self.read(query)

    async def query(self, query: Callable[[Reader], T]) -> T:
        """Read without counting it against the limit."""
        return await self.in_thread(self.engine.read, query)

    async def query_recent(self, query: Callable[[Reader], T]) -> T:
        """Read a few rows that were written a moment ago.

        A local store has them in memory, so the event loop reads them itself: with a thread it would take turns for
        Python's global lock, and requests that arrive meanwhile would wait up to 5 ms for each turn.
        """
        return self.engine.read(query) if self.engine.store.is_local else await self.query(query)

    # Requests of known callers must not wait behind reads and guesses of others, so these have threads of their own.

    async def read_known(self, query: Callable[[Reader], T]) -> T:
        """Read the key or the account of a caller that was identified before."""
        return await asyncio.get_running_loop().run_in_executor(self._known, self.engine.read, query)

    async def read_unknown(self, query: Callable[[Reader], T]) -> T:
        """Look up a key that was not seen before, and is perhaps a guess."""
        return await asyncio.get_running_loop().run_in_executor(self._unknown, self.engine.read, query)

    async def borrow(self, subject: str, limit_class: str, terms: Terms) -> Budget:
        """Borrow a slice of a rate budget."""
        borrow = self.engine.store.borrow
        return await asyncio.get_running_loop().run_in_executor(self._budgets, borrow, subject, limit_class, terms)

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a blocking function in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def wait_for(
        self,
        key: Key,
        query: Callable[[Reader], T],
        is_enough: Callable[[T], bool],
        wait_seconds: float,
        request: Request,
        *,
        check_key: Callable[[Request], Awaitable[None]],
    ) -> T:
        """Read again at each change of `key` until the result is enough or the time is over.

        A caller that disconnects stops the wait. After each wait the caller's key is checked again.
        """
        request.begin_wait()
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        disconnect = asyncio.ensure_future(until_disconnected(request))

        def notify() -> None:
            loop.call_soon_threadsafe(changed.set)

        self.engine.change_signal.listen(key, notify)
        try:
            deadline = loop.time() + wait_seconds
            while True:
                changed.clear()
                async with self._waiting_reads:  # one change may wake a thousand waiters: they must not fill `read`
                    found = await self.query(query)
                left = deadline - loop.time()
                if left <= 0 or is_enough(found) or self.engine.change_signal.draining:
                    return found
                change = asyncio.ensure_future(changed.wait())
                try:
                    await asyncio.wait({change, disconnect}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
                if disconnect.done():
                    raise client_disconnected()
                await check_key(request)
        finally:
            disconnect.cancel()
            self.engine.change_signal.forget(key, notify)

    def close(self) -> None:
        """Let running reads finish."""
        for threads in (self._threads, self._known, self._unknown, self._budgets):
            threads.shutdown()
