"""Worker: claims tasks, runs your handlers and reports the outcome, until it is stopped."""

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

from holdfast.client.abandonable_claims import AbandonableClaims
from holdfast.client.client import Client
from holdfast.client.errors import AuthError, CancelRequested, HoldfastError, Invalid, LeaseLost, NotFound
from holdfast.client.forks import call_after_fork
from holdfast.client.leases.types import TaskLease
from holdfast.client.task_runner import POLL_SECONDS, AsyncContext, run_async, run_sync
from holdfast.client.tracing import processing

CLAIM_SECONDS = 5.0
"""How long a claim is repeated while the server cannot be reached."""
WAIT_SECONDS = 20.0
"""How long one claim waits for a task. Only one slot waits at a time, however many slots an idle worker has."""
LONGEST_PAUSE = 20.0
CLAIMS_POLL_SECONDS = 0.02
STOP_SECONDS = 1.0
"""How long handlers of released tasks have to stop. A plain function that never checks runs until the process ends."""

Handler = TypeVar("Handler", bound=Callable[..., Any])

log = logging.getLogger("holdfast.worker")

__all__ = ["AsyncContext", "Worker"]


class Worker:
    """Runs handlers marked with `@worker.task("type")`, up to `concurrency` at a time.

    A handler takes one argument, its context, with `payload`, `id`, `token`, `previous`, `note`, `check()` and
    `checkpoint(…)`, which an `async` handler awaits. Its return value, a dict or None, completes the task. Raise
    `Retry` or `Permanent` to say how it failed; any other exception fails the attempt with its class as error code.

        @worker.task("translate")
        def translate(context):
            return {"text": translated(context.payload["text"])}
    """

    def __init__(
        self, client: Client, concurrency: int = 4, *, name: str | None = None, drain_seconds: float = 30.0
    ) -> None:
        self._client = client
        self._concurrency = concurrency
        self._given_name = name
        self._drain_seconds = drain_seconds
        self._handlers: dict[str, Callable[..., Any]] = {}
        self.after_fork()
        call_after_fork(self)

    def after_fork(self) -> None:
        """Begin without the threads and tasks of the parent: a child that calls `run()` is a worker of its own."""
        self._process = os.getpid()
        self._name = self._given_name or f"{socket.gethostname()}-{self._process}"
        self._stopping = threading.Event()
        self._running: set[TaskLease] = set()
        self._claiming: set[int] = set()
        """Threads that claim a task now."""
        self._one_waits = threading.Lock()
        """Held by the slot that waits for a task."""
        self._claims: AbandonableClaims | None = None
        self._error: HoldfastError | None = None
        self._signalled = False

    def task(self, type: str) -> Callable[[Handler], Handler]:
        """Decorator: make a function the handler of tasks of this type."""

        def mark(handler: Handler) -> Handler:
            self._handlers[type] = handler
            return handler

        return mark

    def run(self) -> None:
        """Work until `stop()`, SIGTERM or SIGINT; then finish the running tasks and return.

        Tasks that still run after `drain_seconds` are released with their checkpoint; their attempt is not counted.
        """
        if not self._handlers:
            raise ValueError("the worker has no handler: add one with @worker.task(type)")
        self._claims = AbandonableClaims(self._client)
        self._loop = asyncio.new_event_loop()
        loop = threading.Thread(target=self._loop.run_forever, name="holdfast-worker-loop", daemon=True)
        loop.start()
        slots = [
            threading.Thread(target=self._run_slot, name=f"holdfast-worker-{number}", daemon=True)
            for number in range(self._concurrency)
        ]
        with self._signal_handlers():
            for slot in slots:
                slot.start()
            while not self._signalled and not self._stopping.wait(POLL_SECONDS):
                pass
            self.stop()
            self._drain(slots)
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        loop.join()
        self._loop.close()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Claim no more tasks; `run()` returns when the running ones are done."""
        self._stopping.set()
        if self._claims is not None:
            self._claims.abandon()

    # -- one slot ------------------------------------------------------------------------------------------------

    def _run_slot(self) -> None:
        failures, process = 0, os.getpid()
        while not self._stopping.is_set() and os.getpid() == process:  # a child that a handler forked takes no tasks
            try:
                self._run_next()
                failures = 0
            except (AuthError, Invalid) as error:  # retrying does not fix these
                self._error = error
                self.stop()
            except HoldfastError as error:
                log.warning("cannot claim a task: %s", error)
                longest = min(LONGEST_PAUSE, 0.2 * 2**failures)
                failures += 1
                self._stopping.wait((error.retry_after or 0.0) + random.uniform(0.0, longest))

    def _run_next(self) -> None:
        """Claim one task and run it. Only claiming may raise: the outcome of the handler is reported to the server."""
        lease = self._claim_next()
        if lease is None:
            return
        try:
            with processing(lease.document):
                self._finish(lease, self._run_handler(lease))
        finally:
            self._running.discard(lease)

    def _claim_next(self) -> TaskLease | None:
        """The next task: one that is ready, or one that is made soon, if no other slot waits for it already."""
        lease = self._claim(wait=0.0)
        if lease is None and self._one_waits.acquire(timeout=POLL_SECONDS):
            try:
                lease = self._claim(WAIT_SECONDS)
            finally:
                self._one_waits.release()
        return lease

    def _claim(self, wait: float) -> TaskLease | None:
        assert self._claims is not None
        lease = self._claims.task(*self._handlers, worker=self._name, wait=wait, deadline=CLAIM_SECONDS)
        self._claiming.add(threading.get_ident())
        try:
            lease.__enter__()
        except NotFound:
            return None
        else:
            self._running.add(lease)
            return lease
        finally:
            self._claiming.discard(threading.get_ident())

    def _run_handler(self, lease: TaskLease) -> BaseException | None:
        """Run the handler; the exception that it raised, if any."""
        try:
            if self._stopping.is_set():  # claimed while the worker was stopping
                self._wait_for_claims()
                lease.release()
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
        except HoldfastError as problem:
            log.warning("the outcome of %s was not recorded: %s", lease.terms.what, problem)

    def _call(self, lease: TaskLease) -> dict[str, Any] | None:
        handler = self._handlers[lease.document["type"]]
        if inspect.iscoroutinefunction(handler):
            return run_async(handler, lease, self._loop)
        return run_sync(handler, lease)

    # -- shutdown -------------------------------------------------------------------------------------------------

    def _drain(self, slots: list[threading.Thread]) -> None:
        until = time.monotonic() + self._drain_seconds
        while self._running and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        self._wait_for_claims()
        for lease in list(self._running):
            with suppress(HoldfastError):
                lease.hand_back()
        until = time.monotonic() + CLAIM_SECONDS + STOP_SECONDS
        for slot in slots:
            slot.join(max(0.0, until - time.monotonic()))

    def _wait_for_claims(self) -> None:
        """Wait until no slot claims any more: it would get the task that is released next."""
        until = time.monotonic() + CLAIM_SECONDS
        while self._claiming and time.monotonic() < until:
            time.sleep(CLAIMS_POLL_SECONDS)

    def _handle_signal(self, *_: Any) -> None:
        """Only set a flag: a signal may interrupt any code."""
        self._signalled = True

    @contextmanager
    def _signal_handlers(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT; only the main thread can set signal handlers."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, self._handle_signal) for number in signals]
        try:
            yield
        finally:
            for number, handler in zip(signals, before, strict=True):
                signal.signal(number, handler)


async def _cancel_all() -> None:
    """Cancel everything that still runs on the event loop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=STOP_SECONDS)
