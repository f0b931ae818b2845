"""A server with an engine process and fronts, whose callers reach it through the fronts."""

import socket
import threading
from contextlib import suppress

import psutil

from tests.compat.octostore.server import Server
from tests.proof_size import FULL
from tests.support import wait_until

DIRECT = 4
"""Connections that the engine process accepts; it leaves all others to the fronts."""
KEEP_ALIVE_SECONDS = 20
REQUEST = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def shared_server(store, **settings):
    """The server of many tests: on SQLite it has fronts in `make prove` and one process in `make test`."""
    return FrontedServer(store, **settings) if FULL and store.startswith("sqlite:") else Server(store, **settings)


class FrontedServer(Server):
    """A server on SQLite with fronts. It occupies the engine's own connections, so that fronts accept all others."""

    def __init__(self, store, *, workers=3, **settings):
        super().__init__(store, WORKERS=str(workers), **settings)
        self.workers = workers
        self._held = []
        self._closed = threading.Event()

    def start(self):
        super().start()
        wait_until(lambda: len(self.processes()) == self.workers, 20)
        self.occupy_engine()
        threading.Thread(target=self._keep_alive, daemon=True).start()
        return self

    def occupy_engine(self):
        """Open connections until fronts accept the next one."""
        self._held += [self._connect() for _ in range(DIRECT)]
        wait_until(self.accepts_at_front, 20)

    def free_engine(self):
        """Close the connections to the engine process."""
        while self._held:
            self._held.pop().close()

    def close(self):
        self._closed.set()
        self.free_engine()
        super().close()

    def processes(self):
        """The process ids of the engine process, which was started first, and of the fronts."""
        children = [each for each in psutil.Process(self.process.pid).children() if _is_running(each)]
        return [child.pid for child in sorted(children, key=lambda child: child.create_time())]

    def engine(self):
        """The engine process is the one that serves connections of others."""
        return next(pid for pid in self.processes() if self._serves_fronts(pid))

    def fronts(self):
        return [pid for pid in self.processes() if pid != self.engine()]

    def accepts_at_front(self):
        """Whether a new connection belongs to a front."""
        with self._connect() as probe:
            ours = probe.getsockname()[1]
            return any(each.raddr and each.raddr.port == ours for pid in self.fronts() for each in tcp_connections(pid))

    def _serves_fronts(self, pid):
        with suppress(psutil.NoSuchProcess):
            return any(each.laddr.endswith("/commands") for each in psutil.Process(pid).net_connections("unix"))
        return False

    def _connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.sendall(REQUEST)
        connection.recv(4096)
        return connection

    def _keep_alive(self):
        """Send a request on each connection now and then: idle ones are closed."""
        while not self._closed.wait(KEEP_ALIVE_SECONDS):
            for connection in list(self._held):
                with suppress(OSError):  # the server was killed
                    connection.sendall(REQUEST)
                    connection.recv(4096)


def tcp_connections(pid):
    """The TCP connections of a process; none if it has ended."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).net_connections("tcp")
    return []


def _is_running(process):
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False
