"""How a tool's request reaches its handler: within this process, or over HTTP to a server elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol
from urllib.parse import unquote

import httpx2
import msgspec

from holdfast.core import contract as contracts
from holdfast.transport.chance import chance
from holdfast.transport.http.message import Header, Receive, Scope, Send, encode

PATIENCE_SECONDS = 90.0
"""Longer than a handler ever waits."""


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


class Remote:
    """Asks a server elsewhere."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url.rstrip("/")
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}"}, timeout=httpx2.Timeout(PATIENCE_SECONDS, connect=10.0)
        )

    async def ask(self, ask: Ask) -> Reply:
        """Send it; a server that cannot be reached is told as a refusal, like everything else."""
        request_id = chance.request_id()
        address = f"{self._url}{ask.path}" + (f"?{ask.query}" if ask.query else "")
        headers = [*ask.headers, (b"x-request-id", request_id.encode())]
        try:
            answer = await self._client.request(ask.method, address, headers=headers, content=ask.body)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return _unreachable(self._url, request_id, applied="no")
        except httpx2.HTTPError:
            return _unreachable(self._url, request_id, applied="no" if ask.method == "GET" else "unknown")
        return Reply(answer.status_code, answer.content)

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()


def _unreachable(url: str, request_id: str, applied: str) -> Reply:
    """Nobody answered. Advise a repetition only if the first try cannot have had an effect."""
    retry = contracts.wait_and_retry(5)
    look = contracts.look_first(f"GET /v1/events?request_id={request_id}", "list_events")
    document = {
        "error": "unreachable",
        "message": f"{url} does not answer",
        "request_id": request_id,
        "applied": applied,
        "agent_contract": retry if applied == "no" else look,
    }
    return Reply(503, encode(document))


async def _never() -> Any:
    await asyncio.get_running_loop().create_future()
