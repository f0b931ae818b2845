"""The server process: uvicorn with a drain on SIGTERM."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.overload.open_connections import OpenConnections, max_connections, raise_file_limit
from holdfast.transport.http.protocol import LimitedProtocol
from holdfast.transport.http.systemd import report_ready

DRAIN_SECONDS = 30
HANDSHAKE_SECONDS = 10.0
"""A TLS handshake that takes longer is ended, as is a head that arrives more slowly."""
SWITCH_SECONDS = 0.001
"""The interpreter's switch interval: how long a lane waits for the lock while the event loop is busy."""
GARBAGE_OBJECTS = 10_000
"""Objects made since the last look for cycles among the youngest."""
OUTDATED_SECONDS = 5.0
"""How long a server that the store no longer accepts answers 503 with the reason before it stops."""
TICK_SECONDS = 1.0
"""How often the date in responses is renewed. uvicorn wakes up ten times as often, to see whether it shall exit."""
SOCKET_FD = "HOLDFAST_SOCKET_FD"

P = TypeVar("P", bound=LimitedProtocol)

log = logging.getLogger("holdfast.server")


class DrainingServer(uvicorn.Server):
    """On shutdown answers waiting requests first, lets the others finish, and exits with status 0."""

    _should_exit = False
    _loop: asyncio.AbstractEventLoop | None = None
    """The event loop, while it serves."""

    def __init__(self, config: uvicorn.Config, engine: Engine) -> None:
        super().__init__(config)
        self._engine = engine
        self._stops_at: float | None = None
        self.open_connections = OpenConnections(max_connections(), engine.registry)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on the sockets. uvicorn's own method has no limit for the TLS handshake but a minute."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        self.servers = await self.listen(sockets or [])
        self.started = True
        if self.servers:  # a front has none: it accepts connections when the engine process lets it
            report_ready()

    async def listen(self, sockets: list[socket.socket]) -> list[asyncio.Server]:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        return [
            await loop.create_server(
                self.make_protocol,
                sock=each,
                ssl=self.config.ssl,
                ssl_handshake_timeout=self.handshake_seconds,
                backlog=self.config.backlog,
            )
            for each in sockets
        ]

    @property
    def handshake_seconds(self) -> float | None:
        """How long a TLS handshake may take; None without TLS."""
        return None if self.config.ssl is None else HANDSHAKE_SECONDS

    def make_protocol(self) -> LimitedProtocol:
        """The protocol of a new connection."""
        return self._made(LimitedProtocol, self.open_connections)

    def _made(self, kind: type[P], open_connections: OpenConnections) -> P:
        made = kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        made.open_connections = open_connections
        return made

    @property
    def should_exit(self) -> bool:
        """Whether to shut down."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        """Set by a signal or by another thread: wakes the event loop."""
        self._should_exit = value
        if value and self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._exiting.set)

    async def main_loop(self) -> None:
        """Serve until it shall exit, which it learns at once."""
        self._exiting = asyncio.Event()
        self._loop = asyncio.get_running_loop()  # before the first look: whoever sets the flag later sees the loop
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exiting.wait(), TICK_SECONDS)

    async def on_tick(self, counter: int) -> bool:
        """Whether to shut down: also some seconds after the store has refused this server as outdated."""
        if self._stops_at is None and self._engine.outdated is not None:
            log.error("this server stops: %s", self._engine.outdated.message)
            self._stops_at = time.monotonic() + OUTDATED_SECONDS
        self.close_idle_connections()
        is_over = self._stops_at is not None and time.monotonic() >= self._stops_at
        return await super().on_tick(counter) or is_over

    def close_idle_connections(self) -> None:
        """Close connections that nobody uses."""
        self.open_connections.close_idle()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer waiting requests with a hint to retry; then let uvicorn finish the others."""
        self._engine.drain()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Forget the captured signals: the base class would raise them again after a clean shutdown."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def serve(ctx: HandlerContext, listener: socket.socket) -> None:
    """Serve until a signal stops it."""
    run(make_server(ctx), listener)


def run(server: DrainingServer, listener: socket.socket) -> None:
    """Run a server in this process until a signal stops it."""
    with suppress(RuntimeError, ValueError):  # nothing to write to
        faulthandler.enable()  # if native code crashes, the last lines of the log say where
    sys.setswitchinterval(SWITCH_SECONDS)
    raise_file_limit()
    collect_garbage_rarely()
    server.run(sockets=[listener])


def collect_garbage_rarely() -> None:
    """Look for unreachable cycles less often, and never among what was made so far, which stays until the end.

    Requests leave few cycles. With Python's own settings looking for them took 8 to 15 % of the processor time, and a
    full pass 24 to 42 ms.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS, 20, 20)


def make_server(ctx: HandlerContext) -> DrainingServer:
    """A server of the whole application."""
    return DrainingServer(make_config(App(ctx), ctx.settings), ctx.engine)


def make_config(app: Any, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves an application."""
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        loop="auto",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        backlog=2048,
    )


def bind(settings: Settings) -> socket.socket:
    """The listening socket: a new one, or the one inherited from the parent process."""
    inherited = os.environ.get(SOCKET_FD)
    if inherited is not None:
        return socket.socket(fileno=int(inherited))
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((settings.host, settings.port))
    listener.listen(2048)
    return listener
