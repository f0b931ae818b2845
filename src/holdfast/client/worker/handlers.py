"""A handler: your function for the tasks of one type. It is cancelled when the lease of its task is lost."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from holdfast.client.errors import Document, HoldfastError
from holdfast.client.leases.types import TaskLease
from holdfast.client.worker.context import AsyncTaskContext, TaskContext
from holdfast.client.worker.payloads import PayloadReader

POLL_SECONDS = 0.25
"""How often the lease of a task on the event loop is checked."""
CLEANUP_SECONDS = 10.0
"""How long a cancelled handler may take to clean up before its slot takes the next task."""


class Handler(NamedTuple):
    """A function, and the reader of its payloads."""

    function: Callable[..., Any]
    read_payload: PayloadReader

    def run(self, lease: TaskLease, loop: asyncio.AbstractEventLoop) -> Document | None:
        """Run the function on a task: a plain one in this thread, an `async` one on the event loop."""
        payload = self.read_payload(lease.payload)
        if inspect.iscoroutinefunction(self.function):
            result = _run_async(self.function(AsyncTaskContext(lease, payload)), lease, loop)
        else:
            result = self.function(TaskContext(lease, payload))  # it must call `context.check()` itself
        if result is not None and not isinstance(result, dict):
            raise TypeError(f"a task handler must return a dict or None, not {type(result).__name__}")
        return result


def _run_async(running_handler: Any, lease: TaskLease, loop: asyncio.AbstractEventLoop) -> Any:
    """Run a coroutine on the event loop, and cancel it when the lease is lost or cancellation is requested."""
    running: Future[Any] = asyncio.run_coroutine_threadsafe(running_handler, loop)
    while not wait([running], POLL_SECONDS if lease.is_offered else min(POLL_SECONDS, lease.remaining)).done:
        was_offered = lease.is_offered
        try:
            lease.check()
        except HoldfastError:
            if was_offered or lease.is_offered:
                continue  # the handler passes the code on
            running.cancel()
            wait([running], CLEANUP_SECONDS)
            raise
    return running.result()
