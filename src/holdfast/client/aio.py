"""The client for programs with an event loop: the same names, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Protocol, Self

from holdfast.client.client import DEADLINE, TIMEOUT
from holdfast.client.errors import Document
from holdfast.client.methods.every import Methods
from holdfast.client.retry import Broken, Call, Unsent
from holdfast.client.wire import Answer, Request


class AsyncTransport(Protocol):
    """How requests reach a server."""

    async def send(self, request: Request, timeout: float) -> Answer:  # noqa: ASYNC109 - a transport does the timing
        """One attempt; Unsent or Broken if there was no answer."""

    async def close(self) -> None:
        """Let go of everything."""


class AsyncClient(Methods[Coroutine[Any, Any, Document]]):
    """Every operation as a method, as in `Client`."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        transport: AsyncTransport | None = None,
    ) -> None:
        self._timeout = timeout
        self._deadline = deadline
        self._transport = transport or _over_http(url, key)

    async def call(
        self,
        operation: str,
        /,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - of one attempt, not of the call
        deadline: float | None = None,
        idempotency_key: str | None = None,
        **arguments: Any,
    ) -> Document:
        """Ask for an operation by its name; path parameters, query and body are all arguments."""
        call = Call(
            operation,
            arguments,
            timeout=self._timeout if timeout is None else timeout,
            deadline=self._deadline if deadline is None else deadline,
            idempotency_key=idempotency_key,
        )
        while True:
            verdict = call.judge(await self._attempt(call))
            if not isinstance(verdict, float):
                return verdict
            await asyncio.sleep(verdict)

    async def _attempt(self, call: Call) -> Answer | Unsent | Broken:
        try:
            return await self._transport.send(call.request, call.timeout())
        except (Unsent, Broken) as trouble:
            return trouble

    async def close(self) -> None:
        """Let the connections go."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _over_http(url: str | None, key: str | None) -> AsyncTransport:
    from holdfast.client.http import AsyncHttpTransport  # noqa: PLC0415 - httpx2 is slow to import

    return AsyncHttpTransport(url, key)
