"""Worker: claims tasks, runs your handlers and reports the outcome, until it is stopped."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from holdfast.client.client import Client
from holdfast.client.forks import call_after_fork
from holdfast.client.worker.handlers import Handler
from holdfast.client.worker.payloads import payload_reader
from holdfast.client.worker.run import WorkerRun

Function = TypeVar("Function", bound=Callable[..., Any])


class Worker:
    """Runs handlers marked with `@worker.task("type")`, up to `concurrency` at a time.

    A handler takes one argument, its context: a `TaskContext`, or an `AsyncTaskContext` if it is `async`, with
    `payload`, `id`, `token`, `previous`, `note`, `check()`, `checkpoint(…)` and `progress(…)`. Its return value, a
    dict or None, completes the task. Raise `Retry` or `Permanent` to say how it failed; any other exception fails the
    attempt with its class as error code.
    The worker gets tasks that require nothing beyond its `capabilities`.

        @worker.task("translate")
        def translate(context):
            return {"text": translated(context.payload["text"])}
    """

    def __init__(
        self,
        client: Client,
        concurrency: int = 4,
        *,
        name: str | None = None,
        drain_seconds: float = 30.0,
        capabilities: Iterable[str] = (),
    ) -> None:
        self._client = client
        self._concurrency = concurrency
        self._given_name = name
        self._drain_seconds = drain_seconds
        self._capabilities = list(capabilities)
        self._handlers: dict[str, Handler] = {}
        self.after_fork()
        call_after_fork(self)

    def after_fork(self) -> None:
        """Begin without the threads and tasks of the parent: a child that calls `run()` is a worker of its own."""
        self._name = self._given_name or f"{socket.gethostname()}-{os.getpid()}"
        self._mutex = threading.RLock()  # a signal handler of the program may call `stop()`
        self._run: WorkerRun | None = None
        self._is_stopped = False
        """Whether `stop()` was called while nothing ran: the next `run()` returns at once."""

    def task(self, type: str, *, payload: type[Any] | None = None) -> Callable[[Function], Function]:
        """Decorator: make a function the handler of tasks of this type.

        With `payload`, a dataclass, msgspec Struct or pydantic model, `context.payload` is an object of it. A task
        whose payload does not match fails for good, its failure reason names the field, and its handler is not called.
        """
        read_payload = payload_reader(payload)

        def mark(function: Function) -> Function:
            self._handlers[type] = Handler(function, read_payload)
            return function

        return mark

    def run(self) -> None:
        """Work until `stop()`, SIGTERM or SIGINT; then finish the running tasks and return.

        Tasks that still run after `drain_seconds` are released with their checkpoint; their attempt is not counted.
        """
        with self._new_run(self._client, until_idle=False) as run:
            with self._mutex:
                if self._is_stopped:
                    run.stop()
            run.work()

    def run_until_idle(self, client: Client | None = None) -> int:
        """Work until no task is ready and none is running, and return how many were run. For tests and batch programs.

        Tasks that the handlers create are run as well. One that is due later, such as one that waits for its next
        attempt, is left in its queue. Errors of the server are raised instead of retried. A `client` takes the place of
        the worker's own, for this run.
        """
        with self._new_run(client or self._client, until_idle=True) as run:
            run.work()
        return run.started

    def stop(self) -> None:
        """Claim no more tasks; `run()` returns when the running ones are done."""
        with self._mutex:
            self._is_stopped = True
            if self._run is not None:
                self._run.stop()

    @contextmanager
    def _new_run(self, client: Client, *, until_idle: bool) -> Iterator[WorkerRun]:
        if not self._handlers:
            raise ValueError("the worker has no handler: add one with @worker.task(type)")
        run = WorkerRun(
            client,
            dict(self._handlers),
            self._name,
            concurrency=self._concurrency,
            drain_seconds=self._drain_seconds,
            until_idle=until_idle,
            capabilities=self._capabilities,
        )
        with self._mutex:
            self._run = run
        try:
            with _signal_handlers(run.interrupt):
                yield run
        finally:
            with self._mutex:
                self._run, self._is_stopped = None, False


@contextmanager
def _signal_handlers(interrupt: Callable[[], None]) -> Iterator[None]:
    """Stop on SIGTERM and SIGINT; only the main thread can set signal handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: interrupt()) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
