"""A worker: takes tasks, runs your functions, and tells how it went, until it is told to stop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from holdfast.client.client import Client
from holdfast.client.errors import AuthError, CancelRequested, HoldfastError, Invalid, LeaseLost, NotFound
from holdfast.client.leases import TaskLease
from holdfast.client.task_runner import LOOK_SECONDS, AsyncContext, run_async, run_sync
from holdfast.client.tracing import processing

POLL_SECONDS = 5.0
"""How long one claim waits for work, and so how long an idle worker takes to stop."""
LONGEST_PAUSE = 20.0
LAST_SECONDS = 1.0
"""For what was handed back to hear of it. A plain function that never asks is left to the end of the process."""

Handler = TypeVar("Handler", bound=Callable[..., Any])

log = logging.getLogger("holdfast.worker")

__all__ = ["AsyncContext", "Worker"]


class Worker:
    """Runs functions marked with `@worker.task("type")`, up to `concurrency` at a time.

    A function gets one argument, its context: `payload`, `id`, `token`, `previous`, `note`, `check()` and
    `checkpoint(…)`, which an `async` function awaits. What it returns, a dict or None, completes the task. `Retry` and
    `Permanent` say how it failed; any other exception is a failure with its class as the code.
    """

    def __init__(
        self, client: Client, concurrency: int = 4, *, name: str | None = None, drain_seconds: float = 30.0
    ) -> None:
        self._client = client
        self._concurrency = concurrency
        self._name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._drain_seconds = drain_seconds
        self._handlers: dict[str, Callable[..., Any]] = {}
        self._stopping = threading.Event()
        self._running: set[TaskLease] = set()
        self._trouble: HoldfastError | None = None
        self._signalled = False

    def task(self, type: str) -> Callable[[Handler], Handler]:
        """Mark the function that does tasks of this type."""

        def mark(handler: Handler) -> Handler:
            self._handlers[type] = handler
            return handler

        return mark

    def run(self) -> None:
        """Work until `stop()` or SIGTERM; then finish what is under way, and return.

        What is not finished `drain_seconds` later is handed back with its checkpoint, and its attempt not counted.
        """
        if not self._handlers:
            raise ValueError("a worker needs at least one @worker.task function")
        self._loop = asyncio.new_event_loop()
        loop = threading.Thread(target=self._loop.run_forever, name="holdfast-worker-loop", daemon=True)
        loop.start()
        slots = [
            threading.Thread(target=self._work, name=f"holdfast-worker-{number}", daemon=True)
            for number in range(self._concurrency)
        ]
        with self._stopped_by_signals():
            for slot in slots:
                slot.start()
            while not self._signalled and not self._stopping.wait(LOOK_SECONDS):
                pass
            self.stop()
            self._drain(slots)
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        loop.join()
        self._loop.close()
        if self._trouble is not None:
            raise self._trouble

    def stop(self) -> None:
        """Take no more tasks; `run()` returns when those under way are done."""
        self._stopping.set()

    # -- one slot ------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                self._next()
                failures = 0
            except (AuthError, Invalid) as error:  # no patience mends these
                self._trouble = error
                self.stop()
            except HoldfastError as error:
                log.warning("no task can be had: %s", error)
                most = min(LONGEST_PAUSE, 0.2 * 2**failures)
                failures += 1
                self._stopping.wait((error.retry_after or 0.0) + random.uniform(0.0, most))  # noqa: S311 - spreads load

    def _next(self) -> None:
        """Claim one task and do it. Only claiming may raise: how the work went is told to the server."""
        lease = self._client.task(*self._handlers, worker=self._name, wait=POLL_SECONDS, deadline=POLL_SECONDS)
        try:
            lease.__enter__()
        except NotFound:
            return
        self._running.add(lease)
        try:
            self._do(lease)
        finally:
            self._running.discard(lease)

    def _do(self, lease: TaskLease) -> None:
        with processing(lease.document):
            self._finish(lease, self._try(lease))

    def _try(self, lease: TaskLease) -> BaseException | None:
        """Do the work; what went wrong, if anything did."""
        try:
            if self._stopping.is_set():
                lease.release()  # it came while we were closing
            else:
                lease.result = self._call(lease)
        except BaseException as raised:
            if not isinstance(raised, CancelRequested | LeaseLost):
                log.info("%s failed", lease.terms.what, exc_info=raised)
            return raised
        return None

    def _finish(self, lease: TaskLease, error: BaseException | None) -> None:
        try:
            lease.__exit__(None if error is None else type(error), error, None)
        except HoldfastError as trouble:
            log.warning("%s is done, and that was not told: %s", lease.terms.what, trouble)

    def _call(self, lease: TaskLease) -> dict[str, Any] | None:
        handler = self._handlers[lease.document["type"]]
        if inspect.iscoroutinefunction(handler):
            return run_async(handler, lease, self._loop)
        return run_sync(handler, lease)

    # -- the end -------------------------------------------------------------------------------------------------

    def _drain(self, slots: list[threading.Thread]) -> None:
        until = time.monotonic() + self._drain_seconds
        while self._running and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        for lease in list(self._running):
            with suppress(HoldfastError):
                lease.hand_back()
        until = time.monotonic() + POLL_SECONDS + LAST_SECONDS
        for slot in slots:
            slot.join(max(0.0, until - time.monotonic()))

    def _hear(self, *_: Any) -> None:
        """A signal may come in the middle of anything, so it only leaves a word."""
        self._signalled = True

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT ask us to stop, if we are the main program and not a thread of one."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, self._hear) for number in signals]
        try:
            yield
        finally:
            for number, handler in zip(signals, before, strict=True):
                signal.signal(number, handler)


async def _cancel_all() -> None:
    """What still runs on the loop is told that it is over."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=LAST_SECONDS)
