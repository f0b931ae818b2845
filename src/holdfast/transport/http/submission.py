"""Submission of commands to the engine from the event loop, and waiting for their outcomes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.core.errors import InFlight
from holdfast.engine.command import Command
from holdfast.engine.engine import Engine
from holdfast.engine.ticket import CallerKey, Ticket
from holdfast.telemetry.traces import Traces
from holdfast.transport.http.request import Request, client_disconnected, until_disconnected
from holdfast.transport.http.tracing import trace_task_command

T = TypeVar("T")

IN_FLIGHT_SECONDS = 2.0
"""How long a request waits for another with the same Idempotency-Key before it is refused."""
ON_GRANT = "holdfast.on_grant"
"""In the scope of a request that a front has forwarded: takes what gives its grant back, in case its caller left."""
PASSES_FOR_DISCONNECT = 5
"""Passes of the event loop after a grant, in which it learns of a disconnect that had already arrived.

Each takes one: the end of the input, the loss of the connection, the message about it, and the task that waits for it.
"""


class Submission:
    """Hands commands to the engine's lanes and resolves their outcomes in the event loop."""

    def __init__(self, engine: Engine, traces: Traces | None) -> None:
        self._engine = engine
        self._traces = traces
        self._sink: EventLoopSink | None = None
        self._in_flight: dict[tuple[str, str], asyncio.Future[Any]] = {}
        self._waiting: dict[tuple[str, str, str], list[Callable[[], None]]] = {}
        """Ends the waits of a request and of its repetitions, by account, Idempotency-Key and hash of the request."""

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Deliver outcomes to this event loop."""
        self._sink = EventLoopSink(loop)
        self._engine.lanes.serve(loop.call_soon_threadsafe)

    async def run(self, command: Command[T]) -> T:
        """Submit a command and wait for its outcome."""
        assert self._sink is not None
        future: asyncio.Future[Any] = self._sink.loop.create_future()
        began = time.time_ns()
        self._engine.submit(command, self._sink, future, run_soon=self._sink.loop.call_soon)
        try:
            outcome: T = await future
        finally:
            del future  # it has the error, and the error this frame: together they would wait for the garbage collector
        if self._traces is not None:
            trace_task_command(self._traces, command, outcome, began)
        return outcome

    async def run_idempotent(self, command: Command[T]) -> T:
        """Run a command; if one with the same Idempotency-Key is running, wait for that one instead.

        If the same request waits in a queue, it leaves the queue first: its caller waits no more. Otherwise it could be
        granted something after this one has been answered that there is nothing.
        """
        if command.once is None:
            return await self.run(command)
        for end_wait in [*self._waiting.get(_waiting_key(command), ())]:
            end_wait()
        key = (command.account, command.once.key)
        deadline = time.monotonic() + IN_FLIGHT_SECONDS
        while (first := self._in_flight.get(key)) is not None:
            done, _ = await asyncio.wait({first}, timeout=deadline - time.monotonic())
            if not done:
                raise InFlight("the first request with this Idempotency-Key is still running")
        running = self._in_flight[key] = asyncio.ensure_future(self.run(command))
        try:
            outcome: T = await running
            return outcome
        finally:
            del self._in_flight[key]

    async def run_waiting(self, command: Command[T], wait_seconds: float, request: Request) -> T:
        """Run a command that may wait in a queue. A caller that disconnects leaves the queue.

        If a caller disconnects after the grant, it is given back at once.
        """
        request.begin_wait()
        assert self._sink is not None
        future: asyncio.Future[Any] = self._sink.loop.create_future()
        began = time.time_ns()
        ticket = self._engine.submit(
            command, self._sink, future, wait_seconds, _caller_key(request), run_soon=self._sink.loop.call_soon
        )
        disconnect = asyncio.ensure_future(until_disconnected(request))

        def end_wait() -> None:
            self._engine.leave(ticket)
            disconnect.cancel()

        waiting_key = _waiting_key(command)
        if command.once is not None:
            self._waiting.setdefault(waiting_key, []).append(end_wait)
        is_gone = True  # until the opposite is known: the call may be cancelled, also at the moment of the grant
        try:
            await asyncio.wait({future, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            await let_disconnect_arrive()
            is_gone = disconnect.done()
        finally:
            if command.once is not None:
                self._waiting[waiting_key].remove(end_wait)
                if not self._waiting[waiting_key]:
                    del self._waiting[waiting_key]
            if is_gone:
                self._engine.leave(ticket)
                future.add_done_callback(lambda done: self._give_back(command, done))
            disconnect.cancel()
        if is_gone:
            raise client_disconnected()
        outcome: T = future.result()
        if (on_grant := request.scope.get(ON_GRANT)) is not None:
            on_grant(lambda: self._engine.give_back(command, outcome))
        if self._traces is not None:
            trace_task_command(self._traces, command, outcome, began)
        return outcome

    def _give_back(self, command: Command[T], done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and done.exception() is None:
            self._engine.give_back(command, done.result())


async def let_disconnect_arrive() -> None:
    """Let the event loop learn of a disconnect that had already arrived."""
    for _ in range(PASSES_FOR_DISCONNECT):
        await asyncio.sleep(0)


def _waiting_key(command: Command[Any]) -> tuple[str, str, str]:
    return (command.account, command.once.key, command.once.fingerprint) if command.once else ("", "", "")


def _caller_key(request: Request) -> CallerKey | None:
    """The key that the request was sent with; None for the admin key, which has no row."""
    return CallerKey(request.by.account, request.by.id, request.key_hash) if request.key_hash else None


class EventLoopSink:
    """Delivers outcomes to coroutines: one wake-up of the event loop for a whole batch, none if it ran the batch."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._thread = threading.get_ident()

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Called from the engine's threads, or from the event loop's."""
        if threading.get_ident() == self._thread:
            _resolve(replies)
        else:
            self.loop.call_soon_threadsafe(_resolve, replies)


def _resolve(replies: list[tuple[Ticket, Any]]) -> None:
    for ticket, outcome in replies:
        future: asyncio.Future[Any] = ticket.slot
        if future.done():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
            future.exception()  # marked as retrieved: a caller that disconnected does not fetch it
        else:
            future.set_result(outcome)
