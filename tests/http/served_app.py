"""A server on a real socket in a thread of this process, so that a test can change its time limits."""

import socket
import threading
from typing import Any, Self

from holdfast.app import sync_credentials
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.server import make_server

KEY = "a-key-for-the-served-app-tests"


class ServedApp:
    """The application over a store in memory; it is stopped at the end of a `with` block."""

    def __init__(self, **settings: Any) -> None:
        self.engine = Engine(MemoryStore())
        self.engine.start()
        self.settings = Settings(root_key=KEY, **settings)
        sync_credentials(self.engine, self.settings)
        self.ctx = HandlerContext(self.engine, self.settings)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.port: int = self._listener.getsockname()[1]
        self._server = make_server(self.ctx)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(5)
        self._server.force_exit = True  # requests that a test left open
        self._thread.join(5)
        self.engine.stop()

    def connect(self, *, receive_bytes: int | None = None) -> socket.socket:
        """A new connection; a small receive buffer makes the server keep what is not read."""
        connection = socket.socket()
        connection.settimeout(20)
        if receive_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def connections(self) -> int:
        """How many connections are open."""
        return len(self._server.server_state.connections)


def request(method: str, path: str, body: bytes = b"", *, key: str = KEY) -> bytes:
    """The bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
