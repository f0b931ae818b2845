"""Sends tool requests to the handlers of this process. `remote.py` sends them to another server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec

from holdfast.transport.http.request import Header, Receive, Scope, Send


class ToolRequest(msgspec.Struct, frozen=True):
    """An HTTP request without host and credentials."""

    method: str
    path: str
    """Percent-encoded."""
    query: str = ""
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    operation: str = ""
    """The operation of a tool call; empty for other requests."""
    subject: str = ""
    """The id or name in the path of a tool call."""


class ToolResponse(msgspec.Struct, frozen=True):
    """Status and body of the answer."""

    status: int
    body: bytes


class Sender(Protocol):
    """Sends requests to the HTTP handlers on behalf of one client."""

    async def send(self, request: ToolRequest) -> ToolResponse:
        """Send a request and wait for its response."""


class App(Protocol):
    """An ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""


class InProcessSender:
    """Calls the ASGI application directly, without a socket."""

    def __init__(self, app: App, headers: Iterable[Header] = (), outer: Scope | None = None) -> None:
        self._app = app
        self._headers = tuple(headers)
        self._outer = outer or {}

    async def send(self, request: ToolRequest) -> ToolResponse:
        """Run the handler as if the request had arrived over HTTP from the client of the outer request.

        No disconnect is ever received: the SDK cancels this call when the client is gone, and a waiting handler then
        leaves its queue.
        """
        unread = [{"type": "http.request", "body": request.body, "more_body": False}]
        status, parts = 0, []

        async def receive() -> Any:
            return unread.pop() if unread else await _wait_forever()

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            parts.append(message.get("body", b""))

        scope = {
            "type": "http",
            "method": request.method,
            "path": unquote(request.path),
            "raw_path": request.path.encode(),
            "query_string": request.query.encode(),
            "headers": [*self._headers, *request.headers],
            "scheme": self._outer.get("scheme", "http"),
            "client": self._outer.get("client"),
            "server": self._outer.get("server"),
        }
        await self._app(scope, receive, send)
        return ToolResponse(status, b"".join(parts))


async def _wait_forever() -> Any:
    await asyncio.get_running_loop().create_future()
