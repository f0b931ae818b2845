"""One request to the HTTP application in this process, as a server would pass it."""

from __future__ import annotations

import asyncio
import os
import queue
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from holdfast.client.forks import store_of_parent
from holdfast.client.request import Answer, Request
from holdfast.client.retry import AnswerLost
from holdfast.transport.http.app import App

MAX_UNREAD_CHUNKS = 16
"""How many chunks of a stream may wait to be read."""


class AsgiRequest:
    """One request to the ASGI application, as a server would pass it."""

    def __init__(self, request: Request, key: bytes) -> None:
        path, _, query = request.target.partition("?")
        headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
        self._scope = {
            "type": "http",
            "method": request.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [*headers, (b"x-admin-key", key)],
            "client": None,
        }
        self._body: bytes | None = request.body
        self._status = 0
        self._headers: dict[str, str] = {}
        self._chunks: list[bytes] = []
        self.disconnected = asyncio.Event()
        """Set when the caller no longer waits for the answer."""

    async def run(self, app: App) -> Answer:
        """Call the application and return its answer."""
        await app(self._scope, self._receive, self._send)
        return Answer(self._status, self._headers, b"".join(self._chunks))

    async def _receive(self) -> dict[str, Any]:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]
            }
        else:
            self._chunks.append(message.get("body", b""))


class StreamedAsgiRequest(AsgiRequest):
    """A streamed answer: sent on the event loop, read in another thread, with a bounded number of unread chunks."""

    def __init__(self, request: Request, key: bytes, loop: asyncio.AbstractEventLoop, silence: float) -> None:
        super().__init__(request, key)
        self._loop = loop
        self._silence = silence
        self._process = os.getpid()
        self._unread: queue.SimpleQueue[bytes | Answer] = queue.SimpleQueue()
        self._capacity = asyncio.Semaphore(MAX_UNREAD_CHUNKS)

    def head(self) -> Answer:
        """Wait for status and headers."""
        head = self._receive_chunk()
        if not isinstance(head, Answer):
            raise AnswerLost("the client is closed")
        return head

    def chunks(self) -> Iterator[bytes]:
        """Chunks of the body until its end."""
        while chunk := self._receive_chunk():
            with suppress(RuntimeError):  # the loop is closed, and no handler waits
                self._loop.call_soon_threadsafe(self._capacity.release)
            assert isinstance(chunk, bytes)
            yield chunk

    def disconnect(self) -> None:
        """End the stream for both sides: the handler need not wait for the reader, and the reader gets the end."""
        self.disconnected.set()
        self._capacity.release()
        self._unread.put(b"")

    def _receive_chunk(self) -> bytes | Answer:
        if os.getpid() != self._process:
            raise store_of_parent()
        try:
            return self._unread.get(timeout=self._silence)
        except queue.Empty:
            raise AnswerLost("no data for too long") from None

    async def _send(self, message: Any) -> None:
        await super()._send(message)
        if message["type"] == "http.response.start":
            self._unread.put(Answer(self._status, self._headers, b""))
            return
        if self._status == HTTPStatus.OK:
            self._chunks.clear()
        chunk = message.get("body", b"")
        if chunk:
            await self._capacity.acquire()
            self._unread.put(chunk)
        if not message.get("more_body"):
            self._unread.put(b"")
