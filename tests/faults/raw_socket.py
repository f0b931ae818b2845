"""Raw bytes over a socket, for requests that no HTTP client would send."""

import http.client
import io
import socket
from contextlib import suppress

from tests.compat.octostore.wire import Answer

SECONDS = 5.0


def connect(port: int, seconds: float = SECONDS) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=seconds)


def read_answer(connection: socket.socket) -> Answer:
    """One answer; the connection stays open."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return Answer(response.status, response.headers, response.read())


def talk(port: int, data: bytes, seconds: float = SECONDS) -> Answer | None:
    """Send bytes and read until the server closes; None if it sent nothing. A server that hangs fails the test."""
    with connect(port, seconds) as connection:
        # It may answer and close before it has read everything.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
        received = b""
        with suppress(ConnectionResetError):
            while chunk := connection.recv(65536):
                received += chunk
    return parse(received) if received else None


def parse(received: bytes) -> Answer:
    head, _, rest = received.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    headers = http.client.parse_headers(io.BytesIO(head.partition(b"\r\n")[2] + b"\r\n\r\n"))
    return Answer(status, headers, rest)
