"""Runs one handler on one task, and cancels it when the lease is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from holdfast.client.errors import Document, HoldfastError
from holdfast.client.leases.types import TaskLease

POLL_SECONDS = 0.25
"""How often the lease of a task on the event loop is checked."""
CLEANUP_SECONDS = 10.0
"""How long a cancelled handler may take to clean up before its slot takes the next task."""


def run_sync(handler: Callable[..., Any], lease: TaskLease) -> Document | None:
    """Call the handler in this thread; it must call `context.check()` itself."""
    return _check_result(handler(lease))


def run_async(handler: Callable[..., Any], lease: TaskLease, loop: asyncio.AbstractEventLoop) -> Document | None:
    """Run the handler on the event loop, and cancel it when the lease is lost or cancellation is requested."""
    running: Future[Any] = asyncio.run_coroutine_threadsafe(handler(AsyncContext(lease)), loop)
    while not wait([running], POLL_SECONDS if lease.is_offered else min(POLL_SECONDS, lease.remaining)).done:
        if lease.is_offered:
            continue  # the handler passes the code on
        try:
            lease.check()
        except HoldfastError:
            running.cancel()
            wait([running], CLEANUP_SECONDS)
            raise
    return _check_result(running.result())


def _check_result(value: Any) -> Document | None:
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"a task handler must return a dict or None, not {type(value).__name__}")
    return value


class AsyncContext:
    """Context of an `async` handler: as for a plain one, except that `checkpoint` is awaited."""

    def __init__(self, lease: TaskLease) -> None:
        self._lease = lease

    def check(self) -> None:
        """Raise LeaseLost or CancelRequested; in both cases the handler is cancelled soon after."""
        self._lease.check()

    async def checkpoint(self, data: Any) -> None:
        """Save data for the next attempt. It is stored when this returns."""
        await asyncio.to_thread(self._lease.checkpoint, data)

    async def offer(self, **fields: Any) -> str:
        """Offer the task to another worker; returns the code. What the handler returns after that is not recorded."""
        return await asyncio.to_thread(self._lease.offer, **fields)

    @property
    def id(self) -> str:
        """The task's id."""
        return self._lease.id

    @property
    def payload(self) -> Document:
        """The task's payload."""
        return self._lease.payload

    @property
    def previous(self) -> Document | None:
        """How the last attempt ended, with its `note` and `checkpoint`; None for the first attempt."""
        return self._lease.previous

    @property
    def token(self) -> int:
        """Fencing token: larger than that of every earlier holder."""
        return self._lease.token

    @property
    def note(self) -> str | None:
        """A note for the next attempt."""
        return self._lease.note

    @note.setter
    def note(self, text: str) -> None:
        self._lease.note = text
