"""Worker: claims tasks, runs your handlers and reports the outcome, until it is stopped.

One thread claims as many tasks as there are free places, one thread for each place runs handlers, and one thread
reports their outcomes. A claim and a report are one request each, for one task or for many.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import queue
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from holdfast.client.abandonable_claims import CLAIM_SECONDS, AbandonableClaims
from holdfast.client.client import Client
from holdfast.client.errors import AuthError, CancelRequested, HoldfastError, Invalid, LeaseLost
from holdfast.client.forks import call_after_fork
from holdfast.client.leases.claims import TaskClaim
from holdfast.client.leases.types import TaskLease
from holdfast.client.outcomes import Outcome, Outcomes
from holdfast.client.task_runner import POLL_SECONDS, AsyncContext, run_async, run_sync
from holdfast.client.tracing import is_recording, processing

WAIT_SECONDS = 20.0
"""How long one claim waits for a task."""
LONGEST_PAUSE = 20.0
PLAN_IS_FULL = "max_workers_reached"
"""Code of the refusal of a plan that allows to hold no more tasks: the next one can be claimed when a task ends."""
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
        self._places = threading.Condition()
        """Notified when a task has ended."""
        self._running: set[TaskLease] = set()
        """Tasks that take a place: from their claim until their outcome is recorded."""
        self._claimed: queue.SimpleQueue[TaskLease | None] = queue.SimpleQueue()
        """Tasks to run; None ends a thread."""
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
        self._outcomes = Outcomes(self._client, self._free_places)
        self._loop = asyncio.new_event_loop()
        loop = _start_thread(self._loop.run_forever, "loop")
        with self._signal_handlers():
            runners = [_start_thread(self._run_tasks, str(number)) for number in range(self._concurrency)]
            self._claimer = _start_thread(self._claim_tasks, "claims")
            while not self._signalled and not self._stopping.wait(POLL_SECONDS):
                pass
            self.stop()
            self._drain(runners)
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
        with self._places:
            self._places.notify_all()

    # -- claiming ------------------------------------------------------------------------------------------------

    def _claim_tasks(self) -> None:
        """Claim as many tasks as there are free places, whenever there are any."""
        failures = 0
        while (held := self._wait_until_fewer(self._concurrency)) is not None:
            try:
                self._claim(self._concurrency - held)
                failures = 0
            except (AuthError, Invalid) as error:  # retrying does not fix these
                self._error = error
                self.stop()
            except HoldfastError as error:
                log.warning("cannot claim a task: %s", error)
                pause = (error.retry_after or 0.0) + random.uniform(0.0, min(LONGEST_PAUSE, 0.2 * 2**failures))
                failures += 1
                self._wait_until_fewer(held if error.code == PLAN_IS_FULL else 0, pause)

    def _wait_until_fewer(self, most: int, seconds: float | None = None) -> int | None:
        """Wait until fewer than `most` tasks are held, or for some seconds; how many are. None if the worker stops."""
        with self._places:
            self._places.wait_for(lambda: self._stopping.is_set() or len(self._running) < most, seconds)
            return None if self._stopping.is_set() else len(self._running)

    def _claim(self, limit: int) -> None:
        """Claim tasks and hand each to a thread that waits for one."""
        assert self._claims is not None
        claim = TaskClaim(tuple(self._handlers), self._name, {})
        leases = self._claims.claim(claim, limit, WAIT_SECONDS)
        if not leases:
            return
        if self._stopping.is_set():
            self._outcomes.report([Outcome.release(lease) for lease in leases])
            return
        self._client.renewals.add(*leases)
        with self._places:
            self._running.update(leases)
        for lease in leases:
            self._claimed.put(lease)

    def _free_places(self, leases: list[TaskLease]) -> None:
        with self._places:
            self._running.difference_update(leases)
            self._places.notify_all()

    # -- running -------------------------------------------------------------------------------------------------

    def _run_tasks(self) -> None:
        """Run one task after the other. A child that a handler forked ends here: it reports and takes no tasks."""
        process = os.getpid()
        while (lease := self._claimed.get()) is not None:
            with processing(lease.document):
                outcome = self._run_task(lease)
                if os.getpid() != process:
                    return
                if is_recording():  # within the trace of this task, to which no other outcome belongs
                    self._outcomes.report([outcome])
                else:
                    self._outcomes.add(outcome)

    def _run_task(self, lease: TaskLease) -> Outcome:
        try:
            lease.result = self._call(lease)
        except BaseException as raised:
            if not isinstance(raised, CancelRequested | LeaseLost):
                log.info("%s failed", lease.terms.what, exc_info=raised)
            return Outcome.of_handler(lease, raised)
        return Outcome.of_handler(lease, None)

    def _call(self, lease: TaskLease) -> dict[str, Any] | None:
        handler = self._handlers[lease.document["type"]]
        if inspect.iscoroutinefunction(handler):
            return run_async(handler, lease, self._loop)
        return run_sync(handler, lease)

    # -- shutdown ------------------------------------------------------------------------------------------------

    def _drain(self, runners: list[threading.Thread]) -> None:
        until = time.monotonic() + self._drain_seconds
        self._claimer.join(CLAIM_SECONDS)  # it would claim what is released
        with self._places:
            self._places.wait_for(lambda: not self._running, max(0.0, until - time.monotonic()))
            late = list(self._running)
        self._outcomes.report([Outcome.release(lease) for lease in late])
        for lease in late:
            if lease.is_settled:  # its handler, which still runs, must stop
                lease.state.refused(LeaseLost(f"{lease.terms.what} was returned to its queue"))
        for _ in runners:
            self._claimed.put(None)
        until = time.monotonic() + CLAIM_SECONDS + STOP_SECONDS
        for runner in runners:
            runner.join(max(0.0, until - time.monotonic()))
        self._outcomes.close(max(0.0, until - time.monotonic()))

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


def _start_thread(target: Callable[[], Any], name: str) -> threading.Thread:
    thread = threading.Thread(target=target, name=f"holdfast-worker-{name}", daemon=True)
    thread.start()
    return thread


async def _cancel_all() -> None:
    """Cancel everything that still runs on the event loop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=STOP_SECONDS)
