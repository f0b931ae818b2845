"""The fronts as the engine process sees them: it runs their commands and answers each front once for each batch."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.engine.command import Outcome
from holdfast.engine.engine import Engine
from holdfast.engine.ticket import Ticket
from holdfast.transport.fronts import frames
from holdfast.transport.fronts.forwarded_grants import ForwardedGrants
from holdfast.transport.fronts.notices import ACCEPT, CALLER_LEFT, HELLO, NOTICE, STOP_ACCEPTING

log = logging.getLogger("holdfast.front")


class FrontConnections:
    """Every connected front."""

    def __init__(self, engine: Engine, on_change: Callable[[], None] = lambda: None) -> None:
        self.engine = engine
        self.open: set[FrontConnection] = set()
        self.grants = ForwardedGrants()
        self.on_change = on_change
        """Called when a front has connected or left."""
        self._notice = STOP_ACCEPTING
        self._all_gone = asyncio.Event()

    def make(self) -> FrontConnection:
        """The protocol of a new connection."""
        return FrontConnection(self)

    def add(self, front: FrontConnection) -> None:
        """A front that has shown its version."""
        self.open.add(front)
        front.notify(self._notice)
        self.on_change()

    def remove(self, front: FrontConnection) -> None:
        """A front that has stopped."""
        self.open.discard(front)
        if not self.open:
            self._all_gone.set()
        self.on_change()

    def let_accept(self, *, accept: bool) -> None:
        """Tell every front whether to accept connections."""
        notice = ACCEPT if accept else STOP_ACCEPTING
        if notice != self._notice:
            self._notice = notice
            for front in self.open:
                front.notify(notice)

    async def wait_until_gone(self, seconds: float) -> None:
        """Wait until every front has stopped: until then their callers get answers."""
        if self.open:
            self._all_gone.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), seconds)


class FrontConnection(asyncio.Protocol):
    """One front. It is the sink of the commands that it sent."""

    def __init__(self, fronts: FrontConnections) -> None:
        self._fronts = fronts
        self._frames = frames.Frames()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Wait for the front's version."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio passes it
        """Forget the front. Its commands run all the same; what they are granted is given back."""
        self._transport = None
        self._fronts.remove(self)

    def data_received(self, data: bytes) -> None:
        """Submit all commands of the front, so that they share a batch."""
        try:
            for number, kind, content in self._frames.feed(data):
                if kind != NOTICE:
                    self._submit(number, frames.read(kind, content))
                elif number == HELLO:
                    self._greet(msgspec.msgpack.decode(content, type=str))
                elif number == CALLER_LEFT:
                    self._fronts.grants.caller_left(msgspec.msgpack.decode(content, type=str))
        except (frames.BadFrame, msgspec.DecodeError) as error:
            log.error("a front process is disconnected: %s", error)  # noqa: TRY400 - the place is known
            self._close()

    def _greet(self, version: str) -> None:
        if version != frames.version():
            log.error("a front process of another version is disconnected; start the server again")
            self._close()
            return
        self._fronts.add(self)

    def _submit(self, number: int, command: Any) -> None:
        try:
            self._fronts.engine.submit(command, self, number, run_soon=self._loop.call_soon)
        except HoldfastError as error:
            self._write([frames.message(number, error)])

    def deliver(self, replies: list[tuple[Ticket, Any]]) -> None:
        """Send outcomes to the front; called on any thread."""
        if threading.get_ident() == self._thread:
            self._send(replies)
        else:
            self._loop.call_soon_threadsafe(self._send, replies)

    def _send(self, replies: list[tuple[Ticket, Any]]) -> None:
        self._write([frames.message(ticket.slot, outcome) for ticket, outcome in replies])
        if self._transport is not None and not self._transport.is_closing():
            return
        for ticket, outcome in replies:  # the front was killed, and its callers' connections with it
            if isinstance(outcome, Outcome):
                self._fronts.engine.give_back(ticket.command, outcome)

    def notify(self, notice: int) -> None:
        """Send a notice."""
        self._write([(notice, NOTICE, None)])

    def _write(self, messages: list[frames.Message]) -> None:
        if self._transport is not None:
            self._transport.write(frames.frame(messages))

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()
