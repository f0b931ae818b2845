"""The lanes as a front sees them: commands go to the engine process over a local socket, and outcomes come back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from typing import Any

from holdfast.core.errors import OutcomeUnknown, Overloaded, StoreUnavailable
from holdfast.engine.ticket import RunSoon, Ticket, deliver
from holdfast.telemetry.heartbeats import LoopHeartbeat
from holdfast.telemetry.registry import Registry
from holdfast.telemetry.traces import Traces
from holdfast.transport.fronts import frames
from holdfast.transport.fronts.notices import ACCEPT, CALLER_LEFT, HELLO, NOTICE

RETRY_SECONDS = 0.1
MAX_UNSENT = 32 * 1024 * 1024
"""Bytes that the engine has not taken yet; more commands are refused."""

log = logging.getLogger("holdfast.front")


class RemoteLanes(asyncio.Protocol):
    """The connection of a front to the engine. It is made again until the front stops."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._transport: asyncio.Transport | None = None
        self._frames = frames.Frames()
        self._numbers = count(1)
        self._unsent: list[frames.Message] = []
        self._sent: dict[int, Ticket] = {}
        self._is_closed = False
        self.on_accept: Callable[[], None] = lambda: None
        """Called when this front shall accept connections."""
        self.on_stop_accepting: Callable[[], None] = lambda: None

    # -- what the engine's own lanes do as well ----------------------------------------------------------------------

    def start(self) -> None:
        """Nothing: `keep_connected` connects."""

    def stop(self) -> None:
        """Close the connection."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.close()

    def put(self, ticket: Ticket, run_soon: RunSoon | None = None) -> None:
        """Send a command with all others of this turn of the event loop."""
        assert run_soon is not None, "a front sends commands from its event loop"
        assert ticket.deadline is None, "a request that may wait is forwarded"
        assert ticket.command.once is None, "a request with an Idempotency-Key is forwarded"
        if self._transport is None:
            raise StoreUnavailable("the engine process is not reachable; it is started again")
        if self._transport.get_write_buffer_size() > MAX_UNSENT:
            raise Overloaded("too many requests are waiting for the engine process")
        number = next(self._numbers)
        if not self._unsent:
            run_soon(self._flush)
        self._unsent.append(frames.message(number, ticket.command))
        self._sent[number] = ticket

    def trace(self, traces: Traces | None) -> None:
        """Nothing: batches are traced where they run."""

    def serve(self, run_soon: RunSoon) -> None:
        """Do nothing: no batch runs in this process."""

    def seconds_on_callers(self) -> float:
        """Always 0: no batch runs here."""
        return 0.0

    def heartbeat(self) -> LoopHeartbeat:
        """Stuck while there is no engine."""
        return LoopHeartbeat(0.0, stuck=self._transport is None)

    def sample(self, registry: Registry) -> None:
        """Nothing: the engine process sets the gauges."""

    def caller_left(self, number: str) -> None:
        """Tell the engine that the caller of a forwarded request left before it got its answer."""
        if self._transport is not None:
            self._transport.write(frames.frame([(CALLER_LEFT, NOTICE, number)]))

    # -- the connection ------------------------------------------------------------------------------------------

    async def keep_connected(self) -> None:
        """Connect, and connect again whenever the connection is lost."""
        loop = asyncio.get_running_loop()
        while not self._is_closed:
            if self._transport is None:
                try:
                    await loop.create_unix_connection(lambda: self, self._path)
                except OSError:
                    log.debug("the engine process is not reachable")
            await asyncio.sleep(RETRY_SECONDS)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Show which version this front has."""
        self._frames = frames.Frames()
        self._transport = transport
        transport.write(frames.frame([(HELLO, NOTICE, frames.version())]))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio passes it
        """Answer every caller: whether its command was applied is unknown, unless it was not sent."""
        self._transport = None
        unsent = {number for number, _, _ in self._unsent}
        sent, self._sent, self._unsent = self._sent, {}, []
        gone: list[tuple[Ticket, Any]] = []
        for number, ticket in sent.items():
            if number in unsent:
                gone.append((ticket, StoreUnavailable("the engine process is not reachable; it is started again")))
            else:
                gone.append((ticket, OutcomeUnknown("the engine process stopped before it answered")))
        deliver(gone)
        if not self._is_closed:
            self.on_accept()  # callers are told to try again, rather than left waiting for a connection

    def data_received(self, data: bytes) -> None:
        """Deliver outcomes, and follow notices."""
        replies: list[tuple[Ticket, Any]] = []
        for number, kind, content in self._frames.feed(data):
            if kind == NOTICE:
                (self.on_accept if number == ACCEPT else self.on_stop_accepting)()
            else:
                replies.append((self._sent.pop(number), frames.read(kind, content)))
        deliver(replies)

    def _flush(self) -> None:
        messages, self._unsent = self._unsent, []
        if self._transport is not None and messages:
            self._transport.write(frames.frame(messages))
