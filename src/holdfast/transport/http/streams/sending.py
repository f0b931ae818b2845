"""Sending a body in parts until it ends or its reader disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any

from holdfast.transport.http.request import Parts, Request, Send, until_disconnected

ABORT = "holdfast.abort"
"""Key of the ASGI scope: a function that closes the connection at once, without writing what is buffered."""

WRITE_SECONDS = 30.0
"""A connection that accepts no data for this long is closed, so that an idle reader does not hold memory."""


class StartedParts:
    """A body whose first part is already rendered, so that no refusal can follow."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        first, self._first = self._first, None
        return await anext(self._rest) if first is None else first

    async def aclose(self) -> None:
        """Stop, and release what the parts hold."""
        await self._rest.aclose()


async def begin(parts: AsyncGenerator[bytes, None]) -> StartedParts:
    """Render the first part before the response starts, so that a refusal still has its own status."""
    return StartedParts(await anext(parts), parts)


def connection_abort(request: Request) -> Callable[[], None]:
    """A function that closes the connection of a caller that does not read."""
    abort: Callable[[], None] = request.scope.get(ABORT, _no_connection)
    return abort


def _no_connection() -> None:
    """Do nothing: the caller is in this process and has no connection."""


async def send_parts(request: Request, parts: Parts, send: Send) -> None:
    """Send each part as it comes until the end or until the reader disconnects; then close `parts`."""
    sending = asyncio.ensure_future(_send_all(request, parts, send))
    disconnect = asyncio.ensure_future(until_disconnected(request))
    try:
        await asyncio.wait({sending, disconnect}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        disconnect.cancel()
        if not sending.done():
            sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def _send_all(request: Request, parts: Parts, send: Send) -> None:
    abort, loop = connection_abort(request), asyncio.get_running_loop()

    async def send_with_timeout(message: dict[str, Any]) -> None:
        timeout = loop.call_later(WRITE_SECONDS, abort)
        try:
            await send(message)
        finally:
            timeout.cancel()

    async with aclosing(parts):
        if request.scope["method"] != "HEAD":
            async for part in parts:
                await send_with_timeout({"type": "http.response.body", "body": part, "more_body": True})
        await send_with_timeout({"type": "http.response.body", "body": b""})
