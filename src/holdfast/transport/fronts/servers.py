"""The servers of the engine process and of a front: both accept connections on one socket, but not at the same time.

While few connections are open the engine process accepts them: a lone caller is answered without a second process. From
then on the fronts do.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

import uvicorn

from holdfast.engine.engine import Engine
from holdfast.telemetry.registry import Registry
from holdfast.transport.fronts.acceptor import Acceptor
from holdfast.transport.fronts.connections import FrontConnections
from holdfast.transport.fronts.forwarded_grants import ForwardedGrants
from holdfast.transport.fronts.forwarding import PEER, Forwarder
from holdfast.transport.fronts.lanes import RemoteLanes
from holdfast.transport.http.overload.open_connections import OpenConnections, max_connections
from holdfast.transport.http.protocol import HeadBuffer, LimitedProtocol
from holdfast.transport.http.server import DRAIN_SECONDS, DrainingServer
from holdfast.transport.http.submission import ON_GRANT

LINGER_SECONDS = 5.0
DIRECT_CONNECTIONS = 4
"""Connections that the engine process accepts itself."""


class LeftToPeer(HeadBuffer):
    """A transport that leaves the closing to the front, which may still be sending a body that was refused.

    Closed at once, the connection would break under it, and the answer could be lost.
    """

    __slots__ = ()

    def close(self) -> None:
        """Send a buffered head; the front closes when it has the answer."""
        self.flush()
        self.is_closing = lambda: True
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self.abort)


class ForwardedProtocol(LimitedProtocol):
    """A connection of a front to the engine's HTTP server: a header says who the caller is."""

    buffer_type = LeftToPeer
    grants: ForwardedGrants

    def on_headers_complete(self) -> None:
        """Take the caller's address and scheme from the front's header."""
        for position, (name, value) in enumerate(self.headers):
            if name == PEER:
                number, scheme, port, host = value.decode("latin-1").split(" ", 3)
                self.scope[ON_GRANT] = partial(self.grants.add, number)  # type: ignore[literal-required]
                self.scope["scheme"] = scheme
                self.scope["client"] = (host, int(port)) if host else None
                del self.headers[position]
                break
        super().on_headers_complete()


class EngineServer(DrainingServer):
    """Serves callers directly, commands of fronts, and requests that fronts forward."""

    def __init__(
        self, config: uvicorn.Config, engine: Engine, commands: socket.socket, requests: socket.socket
    ) -> None:
        super().__init__(config, engine)
        self._commands = commands
        self._requests = requests
        self._fronts = FrontConnections(engine, self._balance)
        self.open_connections.on_change = self._balance
        self._forwarded = OpenConnections(max_connections(), Registry())
        self._acceptors: list[Acceptor] = []

    async def listen(self, sockets: list[socket.socket]) -> list[Any]:
        """Accept fronts, and connections as long as there are few."""
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_unix_server(self._fronts.make, sock=self._commands),
            await loop.create_unix_server(self._make_forwarded, sock=self._requests),
        ]
        self._acceptors = [
            Acceptor(each, self.make_protocol, self.config.ssl, self.handshake_seconds) for each in sockets
        ]
        self._balance()
        return servers

    def close_idle_connections(self) -> None:
        """Close connections that nobody uses, also those of fronts."""
        super().close_idle_connections()
        self._forwarded.close_idle()

    def _make_forwarded(self) -> ForwardedProtocol:
        made = self._made(ForwardedProtocol, self._forwarded)
        made.grants = self._fronts.grants
        return made

    def _balance(self) -> None:
        """Accept connections here, or let the fronts accept them."""
        here = not self._fronts.open or self.open_connections.count() < DIRECT_CONNECTIONS
        for acceptor in self._acceptors:
            acceptor.accept(accept=here)
        self._fronts.let_accept(accept=not here)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer waiting callers; serve the fronts until they have answered theirs."""
        for acceptor in self._acceptors:
            acceptor.stop()
        self._engine.drain()
        await self._fronts.wait_until_gone(DRAIN_SECONDS)
        await super().shutdown(sockets)


class FrontServer(DrainingServer):
    """Accepts connections while the engine process lets it."""

    def __init__(self, config: uvicorn.Config, engine: Engine, lanes: RemoteLanes, forwarder: Forwarder) -> None:
        super().__init__(config, engine)
        self._lanes = lanes
        self._forwarder = forwarder
        self._acceptors: list[Acceptor] = []
        self._connecting: asyncio.Task[None] | None = None

    async def listen(self, sockets: list[socket.socket]) -> list[Any]:
        """Connect to the engine, which says when to accept connections."""
        self._acceptors = [
            Acceptor(each, self.make_protocol, self.config.ssl, self.handshake_seconds) for each in sockets
        ]
        self._lanes.on_accept = partial(self._accept, accept=True)
        self._lanes.on_stop_accepting = partial(self._accept, accept=False)
        self._connecting = asyncio.ensure_future(self._lanes.keep_connected())
        return []

    def _accept(self, *, accept: bool) -> None:
        for acceptor in self._acceptors:
            acceptor.accept(accept=accept)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what was accepted, then leave the engine."""
        for acceptor in self._acceptors:
            acceptor.stop()
        await super().shutdown(sockets)
        if self._connecting is not None:
            self._connecting.cancel()
        self._forwarder.close()
        self._lanes.stop()
