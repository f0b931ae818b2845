"""uvicorn's HTTP protocol, with limits on slow requests and oversized heads."""

from __future__ import annotations

import asyncio
import re
from asyncio import TimerHandle
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from holdfast.transport.advice.contract import fix_request
from holdfast.transport.http.overload.open_connections import OpenConnections
from holdfast.transport.http.overload.unread_answers import DRAINED, ReadingWatch
from holdfast.transport.http.request import SEND_WHOLE, Header, encode
from holdfast.transport.http.streams.sending import ABORT
from holdfast.transport.ids import ids

HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
MAX_URL = 8 * 1024
MAX_HEAD = 16 * 1024
MAX_HEADERS = 100

_PHRASES = {
    400: "Bad Request",
    405: "Method Not Allowed",
    408: "Request Timeout",
    414: "URI Too Long",
    431: "Request Header Fields Too Large",
}

_UNKNOWN_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [^\s]+ HTTP/1\.[01]\r?\n")
"""A request line that is valid, but whose method the parser may not know."""
_KEEP_ALIVE = (b"connection", b"keep-alive")


class HeadBuffer:
    """A transport that sends the head of a response together with the first bytes of its body.

    uvicorn writes them separately, which costs one more system call and packet for every response. A response whose
    body comes later should therefore begin with a small first chunk.
    """

    __slots__ = ("_head", "_transport", "_watch", "is_closing", "write_whole")

    def __init__(self, transport: asyncio.Transport, watch: ReadingWatch) -> None:
        self._transport = transport
        self.write_whole = transport.write
        """Sends a whole answer at once."""
        self.is_closing = transport.is_closing
        self._watch = watch
        self._head = b""

    def write(self, data: bytes) -> None:
        """Buffer a head until the next write; send everything else at once."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 100"):
            self._head = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Send a head that has no body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        """Send a buffered head, then close when everything is sent, or when the peer does not read it."""
        self.flush()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._watch.begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def send_whole(cycle: RequestResponseCycle, status: int, fields: bytes, body: bytes) -> bool:
    """Send an answer in one step, which takes half as long as uvicorn's two: it looks at every header again.

    False if uvicorn must send it, because the connection is slow, or is closed after the answer.
    """
    if cycle.response_started or cycle.disconnected or cycle.flow.write_paused or not cycle.keep_alive:
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    shared = _shared_fields(cycle.default_headers)
    cycle.transport.write_whole(b"%b%b%b\r\n%b" % (STATUS_LINE[status], shared, fields, body))  # type: ignore[attr-defined]
    cycle.message_event.set()
    cycle.on_response()
    return True


def _shared_fields(headers: list[Header]) -> bytes:
    """The header fields of all responses: the date. uvicorn makes a new list once a second."""
    global _shared  # noqa: PLW0603 - a cache with one entry
    if headers is not _shared[0]:
        _shared = headers, b"".join([b"%b: %b\r\n" % header for header in headers])
    return _shared[1]


_shared: tuple[list[Header], bytes] = [], b""


class LimitedProtocol(HttpToolsProtocol):
    """Answers requests that are too slow or whose head is too large with an error, and closes the connection."""

    _head_size = 0
    _hosts = 0
    _unparsed = 0
    _first_data = b""
    """The data that is being parsed, if a request begins with it."""
    _in_head = False
    _in_body = False
    _refused: tuple[int, str] | None = None
    _is_refusal_due = False
    """Whether the refusal of a later request waits until the answer to the one before it is complete."""
    _timer: TimerHandle | None = None
    open_connections: OpenConnections
    buffer_type = HeadBuffer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the first request."""
        self._watch = ReadingWatch(transport, self.loop)
        super().connection_made(self.buffer_type(transport, self._watch))  # type: ignore[arg-type] # forwards the rest
        self._timer = self.loop.call_later(HEAD_SECONDS, self._on_timeout)
        self.open_connections.add(self)

    def abort(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def close_if_idle(self) -> None:
        """Close the connection unless a request has begun to arrive, whose time is limited by itself."""
        if not self._in_head and not self._in_body:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeouts, and let go of the last request: it refers to this connection, so both are freed now."""
        self.open_connections.remove(self)
        self._stop_timer()
        self._watch.stop()
        super().connection_lost(exc)
        self.cycle = None  # type: ignore[assignment]

    def pause_writing(self) -> None:
        """Watch whether the peer reads what is waiting to be sent."""
        super().pause_writing()
        self._watch.begin()

    def data_received(self, data: bytes) -> None:
        """Parse data. A request that has not arrived completely gets a timeout."""
        if self._is_refusal_due:
            return  # nothing after an invalid request is read
        if not self._in_head and not self._in_body:
            self._first_data = data
        super().data_received(data)
        self._first_data = b""
        if self._in_head and not self.transport.is_closing():
            # Complete headers are counted by `on_header`; an incomplete one is counted here.
            self._unparsed += len(data)
            if self._unparsed > MAX_URL + MAX_HEAD:
                self._refused = (431, f"headers must have at most {MAX_HEAD} bytes and {MAX_HEADERS} lines")
                self.send_400_response("")
        self._start_timer()

    def _is_answering(self) -> bool:
        """Whether an earlier request on this connection has no complete answer yet."""
        last: RequestResponseCycle | None = self.cycle
        waits = last is not None and not last.response_complete
        return bool(self.pipeline) or (waits and not self._in_body)

    def _start_timer(self) -> None:
        """Limit the time of a request that has begun to arrive; its time begins after the answer to the one before."""
        is_partial = self._in_head or self._in_body
        if is_partial and self._timer is None and not self.transport.is_closing() and not self._is_answering():
            self._timer = self.loop.call_later(HEAD_SECONDS if self._in_head else BODY_SECONDS, self._on_timeout)

    def on_message_begin(self) -> None:
        """Start counting the head of a request."""
        self._head_size = self._unparsed = self._hosts = 0
        self._in_head = True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Refuse a URL that is too long."""
        super().on_url(url)
        if len(self.url) > MAX_URL:
            self._refuse(414, f"a URL must have at most {MAX_URL} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Record a header, or refuse a head that is too large. Called for every line, so uvicorn's is not called."""
        headers = self.headers
        self._head_size += len(name) + len(value) + 4
        if self._head_size > MAX_HEAD or len(headers) >= MAX_HEADERS:
            self._refuse(431, f"headers must have at most {MAX_HEAD} bytes and {MAX_HEADERS} lines")
        name, value = name.lower(), value.rstrip(b" \t")  # surrounding spaces are not part of a value
        headers.append((name, value))
        if name == b"host":
            self._hosts += 1
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True

    def on_headers_complete(self) -> None:
        """Stop the timeout of the head, and refuse one that does not name exactly one host.

        Proxies and this server could read different hosts in it; HTTP/1.0 has no Host header.
        """
        hosts = self._hosts
        if hosts != 1 and (hosts or self.parser.get_http_version() != "1.0"):
            self._refuse(400, f"a request must have one Host header, this one has {hosts}")
        self._in_head, self._in_body = False, True
        self.open_connections.begin_request(self)
        self._stop_timer()
        self.scope[ABORT] = self.transport.abort  # type: ignore[literal-required] # ours
        self.scope[DRAINED] = self.flow.drain  # type: ignore[literal-required] # ours
        super().on_headers_complete()
        if self.parser.get_http_version() == "1.0":
            self._keep_alive_if_asked()
        self.scope[SEND_WHOLE] = partial(send_whole, self.cycle)  # type: ignore[literal-required] # ours

    def _keep_alive_if_asked(self) -> None:
        """Keep an HTTP/1.0 connection open for a client that asks for it; uvicorn closes all of them."""
        cycle: RequestResponseCycle = self.cycle
        asked = b",".join(value for name, value in self.headers if name == b"connection").lower()
        if b"keep-alive" in [word.strip() for word in asked.split(b",")]:
            cycle.keep_alive = True
            cycle.default_headers = [*cycle.default_headers, _KEEP_ALIVE]

    def on_message_complete(self) -> None:
        """Stop the timeout of the body."""
        self._in_body = False
        self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request; uvicorn would set a timer, which `OpenConnections` makes superfluous."""
        self.transport.flush()  # type: ignore[attr-defined] # ours: the head of a response without a body
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
        if not self._is_answering():
            self.open_connections.end_request(self)
            if self._is_refusal_due:
                self.send_400_response("")
        self._start_timer()

    def _refuse(self, status: int, message: str) -> None:
        """Stop the parser; uvicorn then calls `send_400_response`."""
        self._refused = (status, message)
        raise ValueError(message)

    def _on_timeout(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._in_head or self._in_body:
            part, limit = ("head", HEAD_SECONDS) if self._in_head else ("body", BODY_SECONDS)
            self._refused = (408, f"the request's {part} did not arrive within {limit:.0f} seconds")
            self.send_400_response("")
        else:
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def send_400_response(self, msg: str) -> None:
        """Send the error in the same form as all others, and close the connection.

        While an earlier request is answered it waits: it would be taken for that request's answer.
        """
        self._is_refusal_due = self._is_answering()
        if self._is_refusal_due:
            return
        if self._refused is None and not self.url and _UNKNOWN_METHOD.match(self._first_data):
            self._refused = (405, "no operation has this method")
        status, message = self._refused or (400, msg or "the request is not valid HTTP")
        request_id = ids.request_id()
        document = {"agent_contract": fix_request(message), "code": "invalid_input", "details": message}
        body = encode(document | {"error": "Invalid input", "request_id": request_id})
        head = (
            f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: application/json\r\n"
            "x-content-type-options: nosniff\r\n"
            f"content-length: {len(body)}\r\nx-request-id: {request_id}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
