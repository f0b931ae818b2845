"""The server process: uvicorn with a drain on SIGTERM, as one process or several workers on one socket."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from holdfast.billing.provider import PaymentProvider
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.telemetry.registry import Registry
from holdfast.telemetry.shared_memory import METRICS_FD, METRICS_ROW, SharedRegistry
from holdfast.telemetry.traces import Traces
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.overload.open_connections import OpenConnections, max_connections, raise_file_limit
from holdfast.transport.http.protocol import LimitedProtocol
from holdfast.transport.http.system.stats import Stats

DRAIN_SECONDS = 30
HANDSHAKE_SECONDS = 10.0
"""A TLS handshake that takes longer is ended, as is a head that arrives more slowly."""
SWITCH_SECONDS = 0.001
"""The interpreter's switch interval: how long a lane waits for the lock while the event loop is busy."""
GARBAGE_OBJECTS = 10_000
"""Objects made since the last look for cycles among the youngest."""
RESTART_SECONDS = 0.5
OUTDATED_SECONDS = 5.0
"""How long a server that the store no longer accepts answers 503 with the reason before it stops."""
OUTDATED_STATUS = 3
"""Exit status of a worker that the store no longer accepts: a new one would not be accepted either."""
PARENT_SECONDS = 1.0
SOCKET_FD = "HOLDFAST_SOCKET_FD"

log = logging.getLogger("holdfast.server")


class DrainingServer(uvicorn.Server):
    """On shutdown answers waiting requests first, lets the others finish, and exits with status 0."""

    def __init__(self, config: uvicorn.Config, engine: Engine) -> None:
        super().__init__(config)
        self._engine = engine
        self._stops_at: float | None = None
        self._open_connections = OpenConnections(max_connections(), engine.registry)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on the sockets. uvicorn's own method has no limit for the TLS handshake but a minute."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILURE)
        is_encrypted, loop = self.config.ssl is not None, asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(
                self._make_protocol,
                sock=each,
                ssl=self.config.ssl,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if is_encrypted else None,
                backlog=self.config.backlog,
            )
            for each in sockets or ()
        ]
        self.started = True

    def _make_protocol(self) -> LimitedProtocol:
        made = LimitedProtocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        made.open_connections = self._open_connections
        return made

    async def on_tick(self, counter: int) -> bool:
        """Whether to shut down: also some seconds after the store has refused this server as outdated."""
        if self._stops_at is None and self._engine.outdated is not None:
            log.error("this server stops: %s", self._engine.outdated.message)
            self._stops_at = time.monotonic() + OUTDATED_SECONDS
        is_over = self._stops_at is not None and time.monotonic() >= self._stops_at
        return await super().on_tick(counter) or is_over

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


def serve(
    engine: Engine,
    settings: Settings,
    listener: socket.socket,
    payments: PaymentProvider | None = None,
    on_webhook: Callable[[], None] = lambda: None,
    *,
    traces: Traces | None = None,
) -> None:
    """Serve until a signal stops it."""
    with suppress(RuntimeError, ValueError):  # nothing to write to
        faulthandler.enable()  # if native code crashes, the last lines of the log say where
    sys.setswitchinterval(SWITCH_SECONDS)
    raise_file_limit()
    server = make_server(HandlerContext(engine, settings, payments, on_webhook, traces=traces))
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
    config = uvicorn.Config(
        App(ctx),
        http=LimitedProtocol,
        loop="auto",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ssl_certfile=ctx.settings.tls_cert,
        ssl_keyfile=ctx.settings.tls_key,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        backlog=2048,
    )
    return DrainingServer(config, ctx.engine)


def follow_parent() -> None:
    """Stop this worker when its parent process dies: no other process would replace or stop it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="holdfast-parent", daemon=True).start()


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


def record_minute(stats: Stats, registry: SharedRegistry) -> None:
    """Write a finished minute to the history that all workers share, if it had requests."""
    if stats.minute_is_over():
        minute = stats.close_minute()
        if minute.requests:
            registry.write_minute(minute)


def supervise(settings: Settings, listener: socket.socket) -> bool:
    """Run several workers on one socket, restart those that die, and pass SIGTERM to all of them.

    Returns whether it was stopped on purpose. It stops by itself if the store no longer accepts its workers.
    """
    stopping = False
    registry = SharedRegistry.create(settings.workers)
    stats = Stats(Registry(group=registry))
    inherited_fds = [listener.fileno(), registry.descriptor]
    environment = os.environ | {SOCKET_FD: str(inherited_fds[0]), METRICS_FD: str(inherited_fds[1])}

    def start(row: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own command line
            [sys.executable, "-m", "holdfast", *sys.argv[1:]],
            env=environment | {METRICS_ROW: str(row)},
            pass_fds=inherited_fds,
        )

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True
        for worker in workers:
            worker.terminate()

    workers: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    workers.extend(start(row) for row in range(settings.workers))
    while not stopping and not any(worker.poll() == OUTDATED_STATUS for worker in workers):
        time.sleep(RESTART_SECONDS)
        for row, worker in enumerate(workers):
            if worker.poll() not in {None, OUTDATED_STATUS} and not stopping:
                registry.retire(row)
                workers[row] = start(row)
        record_minute(stats, registry)
    for worker in workers:
        worker.terminate()  # a worker that was just started may have missed the first signal
    for worker in workers:
        worker.wait()
    return stopping
