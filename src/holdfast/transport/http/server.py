"""uvicorn around the application: drains on SIGTERM, one process or several on one socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from holdfast.billing.provider import Payments
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.telemetry.registry import Registry
from holdfast.telemetry.shared_memory import BOARD_FD, BOARD_ROW, SharedRegistry
from holdfast.telemetry.traces import Traces
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.system.stats import Stats

DRAIN_SECONDS = 30
SWITCH_SECONDS = 0.001
"""How soon a lane that waits for the interpreter gets it from an event loop that is busy with a thousand readers."""
RESTART_SECONDS = 0.5
PARENT_SECONDS = 1.0
SOCKET_FD = "HOLDFAST_SOCKET_FD"


class DrainingServer(uvicorn.Server):
    """Sends waiters away first, lets the rest finish, and ends quietly with status 0."""

    def __init__(self, config: uvicorn.Config, on_drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_drain = on_drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Whoever waits in line gets a hint to come back; then uvicorn finishes what is in flight."""
        self._on_drain()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The base class would raise the signal again at the end; a drained server has done what it was told."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def serve(
    engine: Engine,
    settings: Settings,
    listener: socket.socket,
    payments: Payments | None = None,
    on_webhook: Callable[[], None] = lambda: None,
    *,
    traces: Traces | None = None,
) -> None:
    """Answer until told to stop."""
    config = uvicorn.Config(
        App(HandlerContext(engine, settings, payments, on_webhook, traces=traces)),
        http="holdfast.transport.http.protocol:LimitedProtocol",
        loop="auto",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        backlog=2048,
    )
    sys.setswitchinterval(SWITCH_SECONDS)
    DrainingServer(config, engine.drain).run(sockets=[listener])


def follow_parent() -> None:
    """A worker whose parent was killed has nobody to replace it, or to stop it: it drains and ends."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="holdfast-parent", daemon=True).start()


def bind(settings: Settings) -> socket.socket:
    """The listening socket: a new one, or the one that the parent process handed down."""
    inherited = os.environ.get(SOCKET_FD)
    if inherited is not None:
        return socket.socket(fileno=int(inherited))
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((settings.host, settings.port))
    listener.listen(2048)
    return listener


def keep_minute(stats: Stats, board: SharedRegistry) -> None:
    """Write the minute down for all workers once it is over, if anybody came in it."""
    if stats.minute_is_over():
        minute = stats.close_minute()
        if minute.requests:
            board.write_minute(minute)


def supervise(settings: Settings, listener: socket.socket) -> None:
    """Run several processes on one socket; one that dies is replaced; SIGTERM goes to all of them."""
    stopping = False
    board = SharedRegistry.made(settings.workers)
    stats = Stats(Registry(together=board))
    handed_down = [listener.fileno(), board.descriptor]
    environment = os.environ | {SOCKET_FD: str(handed_down[0]), BOARD_FD: str(handed_down[1])}

    def start(place: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-m", "holdfast", *sys.argv[1:]],
            env=environment | {BOARD_ROW: str(place)},
            pass_fds=handed_down,
        )

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True
        for worker in workers:
            worker.terminate()

    workers: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    workers.extend(start(place) for place in range(settings.workers))
    while not stopping:
        time.sleep(RESTART_SECONDS)
        for place, worker in enumerate(workers):
            if worker.poll() is not None and not stopping:
                board.bury(place)
                workers[place] = start(place)
        keep_minute(stats, board)
    for worker in workers:
        worker.terminate()  # one that was just started may have missed the first word
    for worker in workers:
        worker.wait()
