"""Runs one function on one task, and stops it when the task is ours no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from holdfast.client.errors import Document, HoldfastError
from holdfast.client.leases import TaskLease

LOOK_SECONDS = 0.25
"""How often a task that runs on the event loop is looked after."""
GOODBYE_SECONDS = 10.0
"""How long a cancelled task may take to clean up before its slot goes on without it."""


def run_sync(handler: Callable[..., Any], lease: TaskLease) -> Document | None:
    """Call it here; it asks `context.check()` itself."""
    return _result(handler(lease))


def run_async(handler: Callable[..., Any], lease: TaskLease, loop: asyncio.AbstractEventLoop) -> Document | None:
    """Run it on the loop, and cancel it as soon as the lease is lost or somebody asked for that."""
    running: Future[Any] = asyncio.run_coroutine_threadsafe(handler(AsyncContext(lease)), loop)
    while not wait([running], min(LOOK_SECONDS, lease.remaining)).done:
        try:
            lease.check()
        except HoldfastError:
            running.cancel()
            wait([running], GOODBYE_SECONDS)
            raise
    return _result(running.result())


def _result(value: Any) -> Document | None:
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"a task's function returns a dict or None, not {type(value).__name__}")
    return value


class AsyncContext:
    """What an `async` function sees of its task: the same, but it awaits what is sent."""

    def __init__(self, lease: TaskLease) -> None:
        self._lease = lease

    def check(self) -> None:
        """Raise LeaseLost or CancelRequested; the function is cancelled soon after in any case."""
        self._lease.check()

    async def checkpoint(self, data: Any) -> None:
        """Leave this for the next attempt. It is kept once this returns."""
        await asyncio.to_thread(self._lease.checkpoint, data)

    @property
    def id(self) -> str:
        """The task's id."""
        return self._lease.id

    @property
    def payload(self) -> Document:
        """What is to be done."""
        return self._lease.payload

    @property
    def previous(self) -> Document | None:
        """How the last attempt ended, with the `note` and `checkpoint` that were left."""
        return self._lease.previous

    @property
    def token(self) -> int:
        """Larger than every earlier holder's."""
        return self._lease.token

    @property
    def note(self) -> str | None:
        """For the next attempt."""
        return self._lease.note

    @note.setter
    def note(self, text: str) -> None:
        self._lease.note = text
