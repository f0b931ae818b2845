"""The asyncio client: the methods of `Client`, awaited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, aclosing
from types import TracebackType
from typing import Any, Protocol, Self

from holdfast.client.client import DEADLINE, TIMEOUT
from holdfast.client.errors import Document
from holdfast.client.event_stream import (
    RECONNECT_ERRORS,
    SILENCE_SECONDS,
    Event,
    StreamState,
    parse_document,
    parse_event,
)
from holdfast.client.forks import call_after_fork, copy_event
from holdfast.client.leases.async_renewals import AsyncRenewals
from holdfast.client.leases.async_types import AsyncJob, AsyncLeader, AsyncReservation, AsyncTaskLease
from holdfast.client.leases.claims import JobClaim, LeaderClaim, TaskByIdClaim, TaskClaim
from holdfast.client.leases.reservation import reservation_claim
from holdfast.client.methods.all import Methods
from holdfast.client.request import Answer, Request
from holdfast.client.retry import AnswerLost, Call, NotSent
from holdfast.client.sse import Frame
from holdfast.operations.bounds import RESERVATION_TTL


class AsyncTransport(Protocol):
    """Sends requests to a server, or to an engine in this process."""

    async def send(self, request: Request, timeout: float) -> Answer:
        """One attempt. Raises NotSent or AnswerLost if there was no answer."""

    def stream(
        self, request: Request, silence: float
    ) -> AbstractAsyncContextManager[tuple[Answer, AsyncIterator[bytes]]]:
        """One connection of a stream: its head (or a whole refusal) and its body in chunks.

        `silence` is the number of seconds without data after which the connection counts as lost.
        """

    async def close(self) -> None:
        """Close all connections; streams that are being read end."""


class AsyncClient(Methods[Coroutine[Any, Any, Document]]):
    """Client for asyncio with one coroutine method for every operation; the arguments are those of `Client`."""

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
        self._transport = transport or _http_transport(url, key)
        self._closed = threading.Event()
        self._renewals: AsyncRenewals | None = None
        call_after_fork(self)

    def after_fork(self) -> None:
        """Use an event whose lock no thread of the parent holds, and leave its leases to the parent."""
        self._closed = copy_event(self._closed)
        self._renewals = None

    @property
    def renewals(self) -> AsyncRenewals:
        """Renews what the client holds, on the event loop that runs now."""
        if self._renewals is None or self._renewals.loop is not asyncio.get_running_loop():
            self._renewals = AsyncRenewals(self)
        return self._renewals

    async def call(
        self,
        operation: str,
        /,
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        idempotency_key: str | None = None,
        **arguments: Any,
    ) -> Document:
        """Call an operation by its name. Path parameters, query parameters and body fields are all keyword arguments.

        `timeout` limits one attempt, `deadline` all attempts together, both in seconds. An Idempotency-Key is made for
        you where the server accepts one; pass your own to repeat a call after your program has restarted.
        """
        call = Call(
            operation,
            arguments,
            timeout=self._timeout if timeout is None else timeout,
            deadline=self._deadline if deadline is None else deadline,
            idempotency_key=idempotency_key,
        )
        while not self._closed.is_set():
            outcome = call.evaluate(await self._attempt(call))
            if not isinstance(outcome, float):
                return outcome
            await asyncio.sleep(outcome)
        raise call.closed()

    async def follow(
        self, after: int | None = None, subject: str | None = None, kind: str | None = None
    ) -> AsyncIterator[Event]:
        """Iterate over the account's events as they happen, each once and in order.

        Starts after the sequence number `after`, or with the next event. `subject` and `kind` may end in `*`. A lost
        connection is made again and continues after the last event. Raises CursorTooOld if retention removed events
        before they were read, and CursorAhead if the log ends before `after`. Closing the client ends the iteration.
        """
        async with aclosing(self._read_frames("list_events", after=after, subject=subject, kind=kind)) as frames:
            async for frame in frames:
                yield parse_event(frame)

    async def listen(self, operation: str, /, **arguments: Any) -> AsyncIterator[Document]:
        """Iterate over the documents of a stream by its operation's name. A lost connection is made again."""
        async with aclosing(self._read_frames(operation, **arguments)) as frames:
            async for frame in frames:
                yield parse_document(frame)

    async def _read_frames(self, operation: str, **arguments: Any) -> AsyncGenerator[Frame, None]:
        stream = StreamState(operation, arguments, deadline=self._deadline)
        while not self._closed.is_set():
            try:
                async with self._transport.stream(stream.request(), SILENCE_SECONDS) as (answer, chunks):
                    stream.check_answer(answer)
                    if self._closed.is_set():  # while it was being connected, so that `close` did not know of it
                        return
                    async for chunk in chunks:
                        for frame in stream.feed(chunk):
                            yield frame
                pause = stream.reconnect_pause(AnswerLost("the stream ended"))
            except RECONNECT_ERRORS as problem:
                if self._closed.is_set():
                    return
                pause = stream.reconnect_pause(problem)
            await asyncio.sleep(pause)

    async def _attempt(self, call: Call) -> Answer | NotSent | AnswerLost:
        try:
            return await self._transport.send(call.request, call.timeout())
        except (NotSent, AnswerLost) as problem:
            return problem

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
        """A job that is held inside an `async with` block: renewed in the background, released at its end.

        `ttl` and `wait` are in seconds. If the job is held for longer than `wait`, Held is raised, with its `owner`;
        if it is done, Done, with its `result`, unless you claim it with `again=True`. With the code of an `offer` it is
        taken over from its holder.
        """
        return AsyncJob(self, JobClaim({"job_id": job_id}, owner, metadata, ttl, more), wait)

    def any_job(
        self,
        any_of: Iterable[str],
        owner: str,
        metadata: dict[str, Any] | str | None = None,
        ttl: int = 120,
        *,
        wait: float = 0.0,
        **more: Any,
    ) -> AsyncJob:
        """The first of several jobs that is free, as `job` does; its `id` says which. `order="random"` mixes them."""
        return AsyncJob(self, JobClaim({"any_of": list(any_of)}, owner, metadata, ttl, more), wait)

    def reserve(
        self,
        *paths: str,
        space: str | None = None,
        owner: str | None = None,
        mode: str = "exclusive",
        ttl_seconds: int = RESERVATION_TTL.default,
        wait: float = 0.0,
        **more: Any,
    ) -> AsyncReservation:
        """Files that are reserved, all or none, inside an `async with` block: renewed meanwhile, released at its end.

        `paths` are patterns such as `src/auth/**`; `mode` is `exclusive` or `shared`. The `space` is the repository: by
        default HOLDFAST_SPACE, or what its `.holdfast.toml` says; `owner` is HOLDFAST_OWNER, or user@host. If others
        hold the files for longer than `wait` seconds, Held is raised, with `conflicts`.
        """
        more |= {"mode": mode, "ttl_seconds": ttl_seconds}
        return AsyncReservation(self, reservation_claim(paths, space=space, owner=owner, more=more), wait)

    def leader(
        self, election_id: str, candidate: str, *, metadata: str | None = None, ttl: int = 30, wait: float = 0.0
    ) -> AsyncLeader:
        """Leadership of an election inside an `async with` block. Raises Held if another candidate keeps leading."""
        return AsyncLeader(self, LeaderClaim(election_id, candidate, metadata, ttl), wait)

    def task(self, *types: str, worker: str | None = None, wait: float = 0.0, **more: Any) -> AsyncTaskLease:
        """The next task of these types, held inside an `async with` block. Raises NotFound if none is ready in time."""
        return AsyncTaskLease(self, TaskClaim(types, worker, more), wait)

    async def mine(
        self, *, owner: str | None = None, session_id: str | None = None, session_secret: str | None = None
    ) -> AsyncIterator[Document]:
        """Iterate over everything that this key holds: sessions, jobs, locks, reservations and tasks.

        Each has its `kind` and `id`. `owner` and `session_id` select some of it. With the `session_secret`, what the
        session holds has its `lease_id`.
        """
        cursor = None
        while True:
            page = await self.list_mine(
                owner=owner, session_id=session_id, session_secret=session_secret, cursor=cursor
            )
            for held in page["held"]:
                yield held
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def task_by_id(self, task_id: str, *, worker: str | None = None, **more: Any) -> AsyncTaskLease:
        """A task by its id, held inside an `async with` block.

        With the code of an `offer` it is taken over from its holder.
        """
        return AsyncTaskLease(self, TaskByIdClaim((), worker, more, task_id=task_id))

    async def close(self) -> None:
        """Close all connections. Later calls raise Unreachable with the code `closed`."""
        self._closed.set()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _http_transport(url: str | None, key: str | None) -> AsyncTransport:
    from holdfast.client.http import AsyncHttpTransport  # slow to import, and not needed for embedded mode

    return AsyncHttpTransport(url, key)
