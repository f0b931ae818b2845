"""The processes of a server with fronts: a parent, one engine process, and fronts. The parent restarts what dies."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.app import make_store, make_traces
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.telemetry.shared_memory import METRICS_FD, METRICS_ROW, SharedRegistry, open_registry
from holdfast.transport.fronts.app import FrontApp
from holdfast.transport.fronts.forwarding import Forwarder
from holdfast.transport.fronts.lanes import RemoteLanes
from holdfast.transport.fronts.servers import EngineServer, FrontServer
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.server import SOCKET_FD, make_config, run
from holdfast.transport.http.workers import ForkedWorker, fork, supervise

COMMANDS, REQUESTS = "commands", "requests"
"""The engine's sockets: for commands of fronts, and for HTTP requests that they forward."""
ENGINE_ROW = 0
"""The engine process is the first worker."""


@dataclass(frozen=True)
class EngineSide:
    """What the engine process has for its fronts."""

    commands: socket.socket
    requests: socket.socket
    is_first: bool
    """Whether no engine process of this server was started before."""
    report_ready: Callable[[], None]
    """To be called when the store is open."""


def supervise_fronts(settings: Settings, listener: socket.socket, run_engine: Callable[[EngineSide], int]) -> int:
    """Run an engine process and fronts until they are stopped; returns the exit status.

    If the first engine process ends before it is ready, its exit status is returned. The parent keeps the engine's
    sockets, so fronts reach the next engine process at the same place.
    """
    registry = SharedRegistry.create(settings.workers)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:  # only this user can open it
        commands, requests = (_listen(Path(folder) / name) for name in (COMMANDS, REQUESTS))

        def start(row: int, report_ready: Callable[[], None] = lambda: None, *, is_first: bool = False) -> ForkedWorker:
            def run_worker() -> int:
                os.environ[SOCKET_FD] = str(listener.fileno())
                os.environ[METRICS_FD], os.environ[METRICS_ROW] = str(registry.descriptor), str(row)
                if row == ENGINE_ROW:
                    return run_engine(EngineSide(commands, requests, is_first, report_ready))
                commands.close()
                requests.close()
                serve_front(settings, listener, Path(folder))
                return 0

            return fork(run_worker)

        engine: ForkedWorker | None = _start_and_wait(start)
        if engine is not None and (status := engine.poll()) is not None:
            return status

        def start_next(row: int) -> ForkedWorker:
            nonlocal engine
            if row == ENGINE_ROW and engine is not None:
                first, engine = engine, None
                return first
            return start(row)

        return 0 if supervise(start_next, settings.workers, registry) else 1


def _start_and_wait(start: Callable[..., ForkedWorker]) -> ForkedWorker:
    """Start the first engine process; returns when it is ready or has ended."""
    is_ready, ready = os.pipe()

    def report_ready() -> None:
        os.write(ready, b"r")

    engine = start(ENGINE_ROW, report_ready, is_first=True)
    os.close(ready)
    if not os.read(is_ready, 1):
        engine.wait()
    os.close(is_ready)
    return engine


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(2048)
    return listener


def serve_engine(ctx: HandlerContext, listener: socket.socket, side: EngineSide) -> None:
    """Serve callers and fronts until a signal stops it."""
    run(EngineServer(make_config(App(ctx), ctx.settings), ctx.engine, side.commands, side.requests), listener)


def serve_front(settings: Settings, listener: socket.socket, folder: Path) -> None:
    """Serve as a front until a signal stops it. Reads go to the store directly, commands to the engine process."""
    store = make_store(settings)
    store.open()
    lanes = RemoteLanes(str(folder / COMMANDS))
    forwarder = Forwarder(str(folder / REQUESTS), lanes.caller_left)
    engine = Engine(store, registry=open_registry(settings.workers), lanes=lanes)
    traces = make_traces(settings)
    ctx = HandlerContext(engine, settings, traces=traces)
    try:
        run(FrontServer(make_config(FrontApp(ctx, forwarder), settings), engine, lanes, forwarder), listener)
    finally:
        store.close()
        if traces is not None:
            traces.close()
