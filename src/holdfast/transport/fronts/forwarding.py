"""Forwarding: a front sends a request, as it came, to the engine's own HTTP server, and its answer to the caller."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from itertools import count
from typing import Any

import httptools

from holdfast.core.errors import HoldfastError, OutcomeUnknown, StoreUnavailable
from holdfast.transport.http.request import Header, Receive, Scope, Send
from holdfast.transport.http.streams.sending import ABORT
from holdfast.transport.http.submission import let_disconnect_arrive

PEER = b"x-holdfast-peer"
"""A header between a front and the engine: a number of the request, and the caller's scheme, port and host."""
MAX_BUFFERED = 256 * 1024
"""Bytes of an answer that the caller has not taken; more stay in the socket."""
MAX_IDLE = 64
IDLE_SECONDS = 60.0
"""How long an idle connection may be used again. The engine gives it up after 75 s, and cuts it off 5 s later."""
_FINAL = 200
"""Answers with a lower status are followed by another one."""
_OWN = {PEER, b"connection", b"keep-alive", b"transfer-encoding", b"expect"}
"""Headers of a connection rather than of a request."""
_NOT_RETURNED = {b"date", b"connection", b"keep-alive", b"transfer-encoding"}


class Forwarder:
    """The connections of a front to the engine's HTTP server; idle ones are used again."""

    def __init__(self, path: str, on_caller_left: Callable[[str], None]) -> None:
        """`on_caller_left` tells the engine that the caller of a request left before it got its answer."""
        self._path = path
        self._on_caller_left = on_caller_left
        self._numbers = count(1)
        self._idle: list[EngineConnection] = []

    async def forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request. Raises StoreUnavailable if it was not sent, OutcomeUnknown if no answer came."""
        connection = await self._connect()
        number = f"{os.getpid()}.{next(self._numbers)}"
        try:
            await _exchange(connection, _head(scope, number), scope, receive, send)
        finally:
            if connection.is_caller_gone:
                self._on_caller_left(number)
            if connection.is_reusable and len(self._idle) < MAX_IDLE:
                connection.idle_since = time.monotonic()
                self._idle.append(connection)
            else:
                connection.abort()

    async def _connect(self) -> EngineConnection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_lost and time.monotonic() - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.abort()
        try:
            _, made = await asyncio.get_running_loop().create_unix_connection(EngineConnection, self._path)
        except OSError as error:
            raise StoreUnavailable("the engine process is not reachable; it is started again") from error
        return made

    def close(self) -> None:
        """Close the idle connections."""
        for connection in self._idle:
            connection.abort()
        self._idle.clear()


async def _exchange(connection: EngineConnection, head: bytes, scope: Scope, receive: Receive, send: Send) -> None:
    """Send the request, and its answer to the caller."""
    connection.begin(scope["method"])
    connection.write(head)
    sending = asyncio.ensure_future(_send_body(connection, scope, receive))
    try:
        while True:
            message = await connection.next_message()
            if not connection.is_answering:
                await let_disconnect_arrive()
            if connection.is_caller_gone:
                return
            if message is None:
                if not connection.is_answering:
                    raise _unanswered(scope["method"])
                scope[ABORT]()  # the caller sees that the answer is not complete
                return
            connection.is_answering = True
            await send(message)
            if message["type"] == "http.response.body" and not message["more_body"]:
                return
    finally:
        sending.cancel()


def _unanswered(method: str) -> HoldfastError:
    message = "the engine process stopped before it answered"
    return StoreUnavailable(message) if method in {"GET", "HEAD"} else OutcomeUnknown(message)


def _head(scope: Scope, number: str) -> bytes:
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    host, port = scope.get("client") or ("", 0)
    fields = [field for field in scope["headers"] if field[0] not in _OWN]
    if not _is_sized(scope):
        fields.append((b"transfer-encoding", b"chunked"))
    fields.append((PEER, f"{number} {scope['scheme']} {port} {host}".encode()))
    version = scope["http_version"].encode()
    if version == b"1.0":  # may lack a Host header, which HTTP/1.1 needs
        fields.append((b"connection", b"keep-alive"))
    lines = b"".join(b"%b: %b\r\n" % field for field in fields)
    return b"%b %b HTTP/%b\r\n%b\r\n" % (scope["method"].encode(), target, version, lines)


def _is_sized(scope: Scope) -> bool:
    """Whether the head says how long the body is; a request without a body needs no length."""
    names = {name for name, _ in scope["headers"]}
    return b"transfer-encoding" not in names


async def _send_body(connection: EngineConnection, scope: Scope, receive: Receive) -> None:
    """Send the body as it comes; then watch for the caller: if it disconnects, so does the connection."""
    is_sized, more = _is_sized(scope), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            connection.leave()
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if body:
            connection.write(body if is_sized else b"%x\r\n%b\r\n" % (len(body), body))
            await connection.drained()
    if not is_sized:
        connection.write(b"0\r\n\r\n")
    connection.is_sent = True
    if (await receive())["type"] == "http.disconnect":
        connection.leave()


class EngineConnection(asyncio.Protocol):
    """A connection to the engine's HTTP server: one request at a time."""

    def __init__(self) -> None:
        self.is_lost = False
        self.is_caller_gone = False
        self.is_sent = False
        """Whether the request was sent completely."""
        self.is_complete = False
        """Whether its answer has arrived completely."""
        self.is_answering = False
        """Whether the caller gets the answer."""
        self.idle_since = time.monotonic()
        self._keeps_alive = False
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._arrived = asyncio.Event()

    def begin(self, method: str) -> None:
        """Begin a request."""
        self._is_head_all = method == "HEAD"
        self._parser = httptools.HttpResponseParser(self)
        self._messages: deque[MutableMapping[str, Any]] = deque()
        self._buffered = 0
        self._headers: list[Header] = []
        self.is_sent = self.is_complete = self.is_answering = self.is_caller_gone = False

    @property
    def is_reusable(self) -> bool:
        """Whether another request can be sent."""
        return self.is_sent and self.is_complete and self._keeps_alive and not self.is_lost

    def write(self, data: bytes) -> None:
        """Send bytes of the request."""
        if self._transport is not None:
            self._transport.write(data)

    async def drained(self) -> None:
        """Wait until the engine has taken most of what was written."""
        await self._writable.wait()

    async def next_message(self) -> MutableMapping[str, Any] | None:
        """The next message of the answer; None if the connection was lost."""
        while not self._messages:
            if self.is_lost:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        self._buffered -= len(message.get("body", b""))
        if self._buffered <= MAX_BUFFERED // 2 and self._transport is not None:
            self._transport.resume_reading()
        return message

    def leave(self) -> None:
        """The caller has closed its connection: close this one, unless the whole answer has arrived."""
        if self.is_complete and self.is_answering:
            return
        self.is_caller_gone = True
        if not self.is_complete:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        self._lose()

    def _lose(self) -> None:
        self.is_lost = True
        self._arrived.set()
        self._writable.set()

    # -- asyncio.Protocol ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """The connection can be used."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio passes it
        """The engine has stopped, or has closed the connection."""
        self._transport = None
        self._lose()

    def pause_writing(self) -> None:
        """The engine reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The engine has caught up."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Parse the answer."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()
        if self._buffered > MAX_BUFFERED and self._transport is not None:
            self._transport.pause_reading()
        self._arrived.set()

    # -- httptools -----------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head."""
        name = name.lower()
        if name not in _NOT_RETURNED or (name == b"connection" and value == b"close"):
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete; an answer such as 100 is followed by another one."""
        status = self._parser.get_status_code()
        if status >= _FINAL:
            self._messages.append({"type": "http.response.start", "status": status, "headers": self._headers})
            if self._is_head_all:
                self._complete()
        self._headers = []

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._messages.append({"type": "http.response.body", "body": body, "more_body": True})
        self._buffered += len(body)

    def on_message_complete(self) -> None:
        """The answer is complete."""
        if self._parser.get_status_code() >= _FINAL and not self.is_complete:
            self._complete()

    def _complete(self) -> None:
        self.is_complete = True
        self._keeps_alive = self._parser.should_keep_alive()
        self._messages.append({"type": "http.response.body", "body": b"", "more_body": False})
