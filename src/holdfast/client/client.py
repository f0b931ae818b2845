"""The client for plain programs and threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self

from holdfast.client.claims import JobClaim, LeaderClaim, TaskClaim
from holdfast.client.errors import Document, Unreachable
from holdfast.client.event_stream import SILENCE_SECONDS, TROUBLE, Event, Following, document_of, event_of
from holdfast.client.leases import Job, Leader, TaskLease
from holdfast.client.methods.all import Methods
from holdfast.client.request import Answer, Request
from holdfast.client.retry import Broken, Call, Unsent
from holdfast.client.sse import Frame

TIMEOUT = 10.0
"""Seconds that one attempt may take, beside what the caller asked the server to wait."""
DEADLINE = 30.0
"""Seconds for all attempts together."""


class Transport(Protocol):
    """How requests reach a server."""

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt; Unsent or Broken if there was no answer."""

    def stream(self, request: Request, silence: float) -> AbstractContextManager[tuple[Answer, Iterator[bytes]]]:
        """One connection of a stream: its head, or a whole refusal, and its body piece by piece."""

    def close(self) -> None:
        """Let go of everything; whoever listens hears no more."""


class Client(Methods[Document]):
    """Every operation as a method. One client may serve many threads; close it when you are done.

    `url` and `key` come from HOLDFAST_URL and HOLDFAST_API_KEY unless they are given. What is safe to repeat is
    repeated for up to `deadline` seconds; everything else raises at the first trouble.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        transport: Transport | None = None,
    ) -> None:
        self._timeout = timeout
        self._deadline = deadline
        self._transport = transport or _over_http(url, key)
        self._closed = threading.Event()

    def call(
        self,
        operation: str,
        /,
        *,
        timeout: float | None = None,
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
            verdict = call.judge(self._attempt(call))
            if not isinstance(verdict, float):
                return verdict
            time.sleep(verdict)
        raise Unreachable("this client is closed", code="closed", hint="Make a new one.")

    def follow(self, after: int | None = None, subject: str | None = None, kind: str | None = None) -> Iterator[Event]:
        """Every event of the account after a cursor, or from now on, as it happens: each once and in order.

        A lost connection is made again where it broke off. CursorTooOld means that events were removed before they
        could be read. `subject` and `kind` may end in `*`. Closing the client ends it.
        """
        return map(event_of, self._frames(self._following("list_events", after=after, subject=subject, kind=kind)))

    def listen(self, operation: str, /, **arguments: Any) -> Iterator[Document]:
        """Every document of a stream, for as long as one listens; a lost connection is made again."""
        return map(document_of, self._frames(self._following(operation, **arguments)))

    def _following(self, operation: str, **arguments: Any) -> Following:
        return Following(operation, arguments, deadline=self._deadline)

    def _frames(self, following: Following) -> Iterator[Frame]:
        while not self._closed.is_set():
            try:
                with self._transport.stream(following.request(), SILENCE_SECONDS) as (answer, pieces):
                    following.opened(answer)
                    for piece in pieces:
                        yield from following.take(piece)
                pause = following.lost(Broken("it ended"))
            except TROUBLE as trouble:
                if self._closed.is_set():
                    return
                pause = following.lost(trouble)
            self._closed.wait(pause)

    def _attempt(self, call: Call) -> Answer | Unsent | Broken:
        try:
            return self._transport.send(call.request, call.timeout())
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
    ) -> Job:
        """A job that is ours inside a `with` block, renewed meanwhile and given back at its end.

        `wait` is for how many seconds to stand in line; then Held is raised, and tells whose it is.
        """
        return Job(self, JobClaim(job_id, owner, metadata, ttl, more), wait)

    def leader(
        self, election_id: str, candidate: str, *, metadata: str | None = None, ttl: int = 30, wait: float = 0.0
    ) -> Leader:
        """The lead of an election inside a `with` block; Held if another leads for longer than we wait."""
        return Leader(self, LeaderClaim(election_id, candidate, metadata, ttl), wait)

    def task(self, *types: str, worker: str | None = None, wait: float = 0.0, **more: Any) -> TaskLease:
        """The next task of these types inside a `with` block; NotFound if none comes while we wait."""
        return TaskLease(self, TaskClaim(types, worker, more), wait)

    def close(self) -> None:
        """Let the connections go; whatever is called afterwards is refused."""
        self._closed.set()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _over_http(url: str | None, key: str | None) -> Transport:
    from holdfast.client.http import HttpTransport  # noqa: PLC0415 - httpx2 is slow to import, and not always needed

    return HttpTransport(url, key)
