"""The client for programs with an event loop: the same names, awaited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Any, Protocol, Self

from holdfast.client.async_leases import AsyncJob, AsyncLeader, AsyncTaskLease
from holdfast.client.claims import JobClaim, LeaderClaim, TaskClaim
from holdfast.client.client import DEADLINE, TIMEOUT
from holdfast.client.errors import Document, Unreachable
from holdfast.client.event_stream import SILENCE_SECONDS, TROUBLE, Event, Following, document_of, event_of
from holdfast.client.methods.all import Methods
from holdfast.client.request import Answer, Request
from holdfast.client.retry import Broken, Call, Unsent
from holdfast.client.sse import Frame


class AsyncTransport(Protocol):
    """How requests reach a server."""

    async def send(self, request: Request, timeout: float) -> Answer:  # noqa: ASYNC109 - a transport does the timing
        """One attempt; Unsent or Broken if there was no answer."""

    def stream(
        self, request: Request, silence: float
    ) -> AbstractAsyncContextManager[tuple[Answer, AsyncIterator[bytes]]]:
        """One connection of a stream: its head, or a whole refusal, and its body piece by piece."""

    async def close(self) -> None:
        """Let go of everything; whoever listens hears no more."""


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
        self._closed = threading.Event()

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
        while not self._closed.is_set():
            verdict = call.judge(await self._attempt(call))
            if not isinstance(verdict, float):
                return verdict
            await asyncio.sleep(verdict)
        raise Unreachable("this client is closed", code="closed", hint="Make a new one.")

    async def follow(
        self, after: int | None = None, subject: str | None = None, kind: str | None = None
    ) -> AsyncIterator[Event]:
        """Every event of the account after a cursor, or from now on, as it happens: each once and in order.

        A lost connection is made again where it broke off. CursorTooOld means that events were removed before they
        could be read. `subject` and `kind` may end in `*`. Closing the client ends it.
        """
        async with aclosing(self._frames("list_events", after=after, subject=subject, kind=kind)) as frames:
            async for frame in frames:
                yield event_of(frame)

    async def listen(self, operation: str, /, **arguments: Any) -> AsyncIterator[Document]:
        """Every document of a stream, for as long as one listens; a lost connection is made again."""
        async with aclosing(self._frames(operation, **arguments)) as frames:
            async for frame in frames:
                yield document_of(frame)

    async def _frames(self, operation: str, **arguments: Any) -> AsyncGenerator[Frame, None]:
        following = Following(operation, arguments, deadline=self._deadline)
        while not self._closed.is_set():
            try:
                async with self._transport.stream(following.request(), SILENCE_SECONDS) as (answer, pieces):
                    following.opened(answer)
                    async for piece in pieces:
                        for frame in following.take(piece):
                            yield frame
                pause = following.lost(Broken("it ended"))
            except TROUBLE as trouble:
                if self._closed.is_set():
                    return
                pause = following.lost(trouble)
            await asyncio.sleep(pause)

    async def _attempt(self, call: Call) -> Answer | Unsent | Broken:
        try:
            return await self._transport.send(call.request, call.timeout())
        except (Unsent, Broken) as trouble:
            return trouble

    def job(
        self,
        job_id: str,
        owner: str,
        metadata: dict[str, Any] | str | None = None,
        ttl: int = 120,
        *,
        wait: float = 0.0,
        **more: Any,
    ) -> AsyncJob:
        """A job that is ours inside an `async with` block, renewed meanwhile and given back at its end.

        `wait` is for how many seconds to stand in line; then Held is raised, and tells whose it is.
        """
        return AsyncJob(self, JobClaim(job_id, owner, metadata, ttl, more), wait)

    def leader(
        self, election_id: str, candidate: str, *, metadata: str | None = None, ttl: int = 30, wait: float = 0.0
    ) -> AsyncLeader:
        """The lead of an election inside an `async with` block; Held if another leads for longer than we wait."""
        return AsyncLeader(self, LeaderClaim(election_id, candidate, metadata, ttl), wait)

    def task(self, *types: str, worker: str | None = None, wait: float = 0.0, **more: Any) -> AsyncTaskLease:
        """The next task of these types inside an `async with` block; NotFound if none comes while we wait."""
        return AsyncTaskLease(self, TaskClaim(types, worker, more), wait)

    async def close(self) -> None:
        """Let the connections go; whatever is called afterwards is refused."""
        self._closed.set()
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
