"""A body that comes in parts, for as long as somebody reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from holdfast.transport.http.message import Request, Send


async def send_parts(request: Request, parts: AsyncGenerator[bytes, None], send: Send) -> None:
    """Send each part as it comes, until there are no more or the reader goes away; either way `parts` is closed."""
    sending = asyncio.ensure_future(_send_all(parts, send, asks_for_body=request.scope["method"] != "HEAD"))
    leaving = asyncio.ensure_future(_wait_for_leaving(request))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not sending.done():
            sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def _send_all(parts: AsyncGenerator[bytes, None], send: Send, *, asks_for_body: bool) -> None:
    async with aclosing(parts):
        if asks_for_body:
            async for part in parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _wait_for_leaving(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
