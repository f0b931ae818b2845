"""Embedded mode for asyncio: the engine of `embedded`, awaited."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from holdfast.client.async_client import AsyncClient
from holdfast.client.embedded import EmbeddedTransport, store_url
from holdfast.client.request import Answer, Request
from holdfast.client.retry import AnswerLost


def open_async(path: str | os.PathLike[str] | None = None) -> AsyncClient:
    """Open a store in this process, as `holdfast.open` does, and return an AsyncClient for it."""
    return AsyncClient(transport=AsyncEmbeddedTransport(store_url(path)))


class AsyncEmbeddedTransport:
    """Transport to an engine in this process. The engine has its own threads: the program's event loop only waits."""

    def __init__(self, store: str) -> None:
        self._inner = EmbeddedTransport(store)

    async def send(self, request: Request, timeout: float) -> Answer:
        """One attempt. If the caller is cancelled, the request ends as if its connection had been closed."""
        running, disconnect = self._inner.begin(request)
        try:
            answer: Answer = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), timeout)
        except asyncio.CancelledError as error:
            if running.cancelled():  # the client was closed; otherwise the caller itself was cancelled
                raise AnswerLost("the client was closed before the answer") from error
            raise
        except TimeoutError as error:
            raise AnswerLost("no answer in time") from error
        finally:
            disconnect()
        return answer

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """One stream. A thread waits for each chunk, so that the event loop is not blocked."""
        opened = self._inner.stream(request, silence)
        opening = asyncio.ensure_future(asyncio.to_thread(opened.__enter__))
        try:
            answer, chunks = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda _: opened.__exit__(None, None, None))
            raise
        try:
            yield answer, _iterate(chunks)
        finally:
            opened.__exit__(None, None, None)

    async def close(self) -> None:
        """Close the engine in a thread, because it waits for running requests."""
        await asyncio.to_thread(self._inner.close)


async def _iterate(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(next, chunks, b""):
        yield chunk
