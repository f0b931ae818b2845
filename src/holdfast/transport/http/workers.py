"""Worker processes: a parent starts several on one socket, restarts those that die, and stops them together."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

from holdfast.settings import Settings
from holdfast.telemetry.registry import Registry
from holdfast.telemetry.shared_memory import METRICS_FD, METRICS_ROW, SharedRegistry
from holdfast.transport.http.server import SOCKET_FD
from holdfast.transport.http.system.stats import Stats

RESTART_SECONDS = 0.1
OUTDATED_STATUS = 3
"""Exit status of a worker that the store no longer accepts: a new one would not be accepted either."""
PARENT_SECONDS = 1.0
_SET_PARENT_DEATH_SIGNAL = 1
"""An option of prctl, on Linux."""

log = logging.getLogger("holdfast.server")


class Worker(Protocol):
    """A process that was started."""

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""

    def terminate(self) -> None:
        """Ask it to stop."""

    def wait(self) -> int:
        """Wait for its end; returns its exit status."""


class ForkedWorker:
    """A worker that was forked: it is started within milliseconds, because everything is imported already."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def terminate(self) -> None:
        """Ask it to stop."""
        if self.poll() is None:
            os.kill(self._pid, signal.SIGTERM)

    def wait(self) -> int:
        """Wait for its end; returns its exit status."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status


def fork(run: Callable[[], int]) -> ForkedWorker:
    """Start a worker that calls `run` and exits with its result. The parent must have one thread."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return ForkedWorker(pid)
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        end_with_parent(parent)
        status = run()
    except BaseException:
        log.exception("a worker process failed")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def end_with_parent(parent: int) -> None:
    """End this process when its parent is killed: no other process would replace or stop it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    else:
        follow_parent()


def follow_parent() -> None:
    """Stop this worker when its parent process dies: no other process would replace or stop it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="holdfast-parent", daemon=True).start()


def record_minute(stats: Stats, registry: SharedRegistry) -> None:
    """Write a finished minute to the history that all workers share, if it had requests."""
    if stats.minute_is_over():
        minute = stats.close_minute()
        if minute.requests:
            registry.write_minute(minute)


def supervise(start: Callable[[int], Worker], count: int, registry: SharedRegistry) -> bool:
    """Start workers by their numbers, restart those that die, and pass SIGTERM to all of them.

    Returns whether it was stopped on purpose. It stops by itself if the store no longer accepts its workers.
    """
    stopping = False
    stats = Stats(Registry(group=registry))

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True
        for worker in workers:
            worker.terminate()

    workers: list[Worker] = []
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    workers.extend(start(row) for row in range(count))
    while not stopping and not any(worker.poll() == OUTDATED_STATUS for worker in workers):
        time.sleep(RESTART_SECONDS)
        for row, worker in enumerate(workers):
            if worker.poll() not in {None, OUTDATED_STATUS} and not stopping:
                log.warning("a worker process ended with status %s; another one is started", worker.poll())
                registry.retire(row)
                workers[row] = start(row)
        record_minute(stats, registry)
    for worker in workers:
        worker.terminate()  # a worker that was just started may have missed the first signal
    for worker in workers:
        worker.wait()
    return stopping


def supervise_servers(settings: Settings, listener: socket.socket) -> bool:
    """Run several whole servers on one socket, over one database."""
    registry = SharedRegistry.create(settings.workers)
    inherited_fds = [listener.fileno(), registry.descriptor]
    environment = os.environ | {SOCKET_FD: str(inherited_fds[0]), METRICS_FD: str(inherited_fds[1])}

    def start(row: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own command line
            [sys.executable, "-m", "holdfast", *sys.argv[1:]],
            env=environment | {METRICS_ROW: str(row)},
            pass_fds=inherited_fds,
        )

    return supervise(start, settings.workers, registry)
