"""A body that comes in parts, for as long as somebody reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any

from holdfast.transport.http.request import Parts, Request, Send

ABORT = "holdfast.abort"
"""Where a scope keeps what closes its connection at once, whatever still waits to be written."""

WRITE_SECONDS = 30.0
"""A connection that takes nothing for so long is closed: nobody keeps memory by not reading."""


class Begun:
    """Parts that have begun: whatever could be refused was, and closing lets go of what they hold, read or not."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        first, self._first = self._first, None
        return await anext(self._rest) if first is None else first

    async def aclose(self) -> None:
        """Nobody reads on."""
        await self._rest.aclose()


async def begin(parts: AsyncGenerator[bytes, None]) -> Begun:
    """Wait for the first part, so that a refusal can still become an answer of its own."""
    return Begun(await anext(parts), parts)


def abort_of(request: Request) -> Callable[[], None]:
    """What closes the connection of a caller who does not take what is sent."""
    abort: Callable[[], None] = request.scope.get(ABORT, _nothing)
    return abort


def _nothing() -> None:
    """There is no connection: the caller is in this process."""


async def send_parts(request: Request, parts: Parts, send: Send) -> None:
    """Send each part as it comes, until there are no more or the reader goes away; either way `parts` is closed."""
    sending = asyncio.ensure_future(_send_all(request, parts, send))
    leaving = asyncio.ensure_future(_wait_for_leaving(request))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not sending.done():
            sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def _send_all(request: Request, parts: Parts, send: Send) -> None:
    abort, loop = abort_of(request), asyncio.get_running_loop()

    async def send_in_time(message: dict[str, Any]) -> None:
        too_long = loop.call_later(WRITE_SECONDS, abort)
        try:
            await send(message)
        finally:
            too_long.cancel()

    async with aclosing(parts):
        if request.scope["method"] != "HEAD":
            async for part in parts:
                await send_in_time({"type": "http.response.body", "body": part, "more_body": True})
        await send_in_time({"type": "http.response.body", "body": b""})


async def _wait_for_leaving(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
