"""How a tool's request reaches its handler within this process. `remote.py` reaches one elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec

from holdfast.transport.http.request import Header, Receive, Scope, Send


class Ask(msgspec.Struct, frozen=True):
    """A request, before it is anybody's."""

    method: str
    path: str
    """Percent-encoded."""
    query: str = ""
    headers: tuple[Header, ...] = ()
    body: bytes = b""


class Reply(msgspec.Struct, frozen=True):
    """What was answered."""

    status: int
    body: bytes


class Caller(Protocol):
    """Somebody who can put a request to the handlers."""

    async def ask(self, ask: Ask) -> Reply:
        """Send it and wait for the answer."""


class App(Protocol):
    """An ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""


class InProcess:
    """Asks the application itself, without a socket."""

    def __init__(self, app: App, headers: Iterable[Header] = (), outer: Scope | None = None) -> None:
        self._app = app
        self._headers = tuple(headers)
        self._outer = outer or {}

    async def ask(self, ask: Ask) -> Reply:
        """Run the handler as if the request had come over the wire, from where the outer one came.

        Nobody hangs up in here: the SDK cancels us when the client is gone, and a handler that waits then leaves its
        line.
        """
        unread = [{"type": "http.request", "body": ask.body, "more_body": False}]
        status, parts = 0, []

        async def receive() -> Any:
            return unread.pop() if unread else await _never()

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            parts.append(message.get("body", b""))

        scope = {
            "type": "http",
            "method": ask.method,
            "path": unquote(ask.path),
            "raw_path": ask.path.encode(),
            "query_string": ask.query.encode(),
            "headers": [*self._headers, *ask.headers],
            "scheme": self._outer.get("scheme", "http"),
            "client": self._outer.get("client"),
            "server": self._outer.get("server"),
        }
        await self._app(scope, receive, send)
        return Reply(status, b"".join(parts))


async def _never() -> Any:
    await asyncio.get_running_loop().create_future()
