"""Embedded mode for programs with an event loop: the same engine in this process, awaited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from holdfast.client.async_client import AsyncClient
from holdfast.client.embedded import EmbeddedTransport, address_of
from holdfast.client.request import Answer, Request
from holdfast.client.retry import Broken


def open_async(path: str | os.PathLike[str] | None = None) -> AsyncClient:
    """What `holdfast.open` gives, for `async with`: the same stores, the same names, each call awaited."""
    return AsyncClient(transport=AsyncEmbeddedTransport(address_of(path)))


class AsyncEmbeddedTransport:
    """The engine keeps its own threads and its own loop: the program's loop only waits for what they answer."""

    def __init__(self, store: str) -> None:
        self._inner = EmbeddedTransport(store)

    async def send(self, request: Request, timeout: float) -> Answer:  # noqa: ASYNC109 - a transport does the timing
        """One attempt. Whoever is cancelled stops listening: what was begun ends as if a connection had closed."""
        running, leave = self._inner.begin(request)
        try:
            answer: Answer = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), timeout)
        except asyncio.CancelledError as error:
            if running.cancelled():  # it was closed meanwhile; otherwise it is we who were cancelled
                raise Broken("it was closed before it answered") from error
            raise
        except TimeoutError as error:
            raise Broken("no answer in time") from error
        finally:
            leave()
        return answer

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """One stream: a thread waits for each part, so that the program's loop need not."""
        opened = self._inner.stream(request, silence)
        opening = asyncio.ensure_future(asyncio.to_thread(opened.__enter__))
        try:
            answer, pieces = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda _: opened.__exit__(None, None, None))
            raise
        try:
            yield answer, _awaited(pieces)
        finally:
            opened.__exit__(None, None, None)

    async def close(self) -> None:
        """Waits for what is under way, and lets the program's loop go on meanwhile."""
        await asyncio.to_thread(self._inner.close)


async def _awaited(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(next, pieces, b""):
        yield piece
