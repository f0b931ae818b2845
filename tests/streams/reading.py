"""Reads an event stream from a socket and splits it into frames."""

import json
import socket
import time
from typing import Any, Self

SECONDS = 10.0


class StreamEnded(Exception):
    """The server closed the stream."""


class Stream:
    """One connection. It reads only when a method is called, so that a test can be a slow reader."""

    def __init__(self, port: int, path: str, *, buffer: int | None = None, **headers: str) -> None:
        self._socket = socket.socket()
        if buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self._socket.settimeout(SECONDS)
        self._socket.connect(("127.0.0.1", port))
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in ({"Host": "x"} | headers).items())
        self._socket.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        self._raw = b""
        self._body = b""
        self.was_finished = False
        """Whether the body ended with its last chunk, not with a closed connection."""
        while b"\r\n\r\n" not in self._raw:
            self._receive()
        head, _, self._raw = self._raw.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}

    def frame(self, seconds: float = SECONDS) -> str:
        """The next frame, without the blank line after it."""
        deadline = time.monotonic() + seconds
        while b"\n\n" not in self._body:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            self._chunk()
        frame, _, self._body = self._body.partition(b"\n\n")
        return frame.decode("ascii")

    def event(self, seconds: float = SECONDS) -> dict[str, Any]:
        """The document of the next frame with data; other frames are skipped."""
        deadline = time.monotonic() + seconds
        while True:
            found = fields(self.frame(deadline - time.monotonic()))
            if "data" in found:
                return found | {"data": json.loads(found["data"])}

    def body(self) -> dict[str, Any]:
        """The whole body of a refusal."""
        size = int(self.headers["content-length"])
        while len(self._raw) < size:
            self._receive()
        document: dict[str, Any] = json.loads(self._raw[:size])
        return document

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _chunk(self) -> None:
        while b"\r\n" not in self._raw:
            self._receive()
        size, _, rest = self._raw.partition(b"\r\n")
        while len(rest) < int(size, 16) + 2:
            self._receive()
            rest = self._raw.partition(b"\r\n")[2]
        if int(size, 16) == 0:
            self.was_finished = True
            raise StreamEnded
        self._body += rest[: int(size, 16)]
        self._raw = rest[int(size, 16) + 2 :]

    def _receive(self) -> None:
        try:
            piece = self._socket.recv(1 << 16)
        except ConnectionResetError:
            raise StreamEnded from None
        if not piece:
            raise StreamEnded
        self._raw += piece


def fields(frame: str) -> dict[str, str]:
    """The fields of a frame by name; a comment has the empty name."""
    return {name: value.removeprefix(" ") for name, _, value in (line.partition(":") for line in frame.split("\n"))}


def follow(caller: Any, query: str = "", *, last: int | None = None, buffer: int | None = None) -> Stream:
    """Open the event stream of a caller's account."""
    more = {} if last is None else {"Last_Event_ID": str(last)}
    path = "/v1/events" + (f"?{query}" if query else "")
    return Stream(caller.port, path, buffer=buffer, Accept="text/event-stream", **caller.headers, **more)
