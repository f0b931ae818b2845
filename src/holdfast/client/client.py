"""The synchronous client, safe to share between threads."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

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
from holdfast.client.leases.claims import JobClaim, LeaderClaim, TaskByIdClaim, TaskClaim
from holdfast.client.leases.renewals import Renewals
from holdfast.client.leases.reservation import reservation_claim
from holdfast.client.leases.types import Job, Leader, Reservation, TaskLease
from holdfast.client.methods.all import Methods
from holdfast.client.request import Answer, Request
from holdfast.client.retry import AnswerLost, Call, NotSent
from holdfast.client.sse import Frame
from holdfast.operations.bounds import RESERVATION_TTL

TIMEOUT = 10.0
"""Seconds for one attempt, in addition to the time that the call asks the server to wait."""
DEADLINE = 30.0
"""Seconds for all attempts of a call together."""


class Transport(Protocol):
    """Sends requests to a server, or to an engine in this process."""

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt. Raises NotSent or AnswerLost if there was no answer."""

    def stream(self, request: Request, silence: float) -> AbstractContextManager[tuple[Answer, Iterator[bytes]]]:
        """One connection of a stream: its head (or a whole refusal) and its body in chunks.

        `silence` is the number of seconds without data after which the connection counts as lost.
        """

    def close(self) -> None:
        """Close all connections; streams that are being read end."""


@runtime_checkable
class SeparableTransport(Transport, Protocol):
    """Transport that can make another one to the same server, as a worker needs."""

    def separate(self) -> Transport:
        """A transport to the same server with connections of its own: closing it ends its requests at once."""


class Client(Methods[Document]):
    """Client with one method for every operation. Threads may share it; close it when you are done.

    `url` and `key` default to HOLDFAST_URL and HOLDFAST_API_KEY, else to the server on this machine and its key, which
    `holdfast serve` wrote to the user's configuration. Calls that are safe to repeat are retried for up to `deadline`
    seconds; other calls raise the first error. `timeout` is the number of seconds for one attempt.

        with holdfast.Client() as client, client.job("deploy/web", owner="build-42", wait=60) as job:
            push(fence=job.token)
            job.check()   # raises LeaseLost if the job may no longer be ours
            activate()
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
        self._transport = transport or _http_transport(url, key)
        self._closed = threading.Event()
        self._separate: weakref.WeakSet[Client] = weakref.WeakSet()
        """Clients that this one has made: they are closed with it."""
        self.renewals = Renewals(self)
        """Renews what the client holds."""
        call_after_fork(self)

    def after_fork(self) -> None:
        """Use an event whose lock no thread of the parent holds, and leave its leases to the parent."""
        self._closed = copy_event(self._closed)
        self.renewals = Renewals(self)

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
            outcome = call.evaluate(self._attempt(call))
            if not isinstance(outcome, float):
                return outcome
            self._closed.wait(outcome)
        raise call.closed()

    def follow(self, after: int | None = None, subject: str | None = None, kind: str | None = None) -> Iterator[Event]:
        """Iterate over the account's events as they happen, each once and in order.

        Starts after the sequence number `after`, or with the next event. `subject` and `kind` may end in `*`. A lost
        connection is made again and continues after the last event. Raises CursorTooOld if retention removed events
        before they were read, and CursorAhead if the log ends before `after`. Closing the client ends the iteration.
        """
        return map(parse_event, self._read_frames("list_events", after=after, subject=subject, kind=kind))

    def listen(self, operation: str, /, **arguments: Any) -> Iterator[Document]:
        """Iterate over the documents of a stream by its operation's name. A lost connection is made again."""
        return map(parse_document, self._read_frames(operation, **arguments))

    def _read_frames(self, operation: str, **arguments: Any) -> Iterator[Frame]:
        stream = StreamState(operation, arguments, deadline=self._deadline)
        return self._reconnect(stream)

    def _reconnect(self, stream: StreamState) -> Iterator[Frame]:
        while not self._closed.is_set():
            try:
                with self._transport.stream(stream.request(), SILENCE_SECONDS) as (answer, chunks):
                    stream.check_answer(answer)
                    if self._closed.is_set():  # while it was being connected, so that `close` did not know of it
                        return
                    for chunk in chunks:
                        yield from stream.feed(chunk)
                pause = stream.reconnect_pause(AnswerLost("the stream ended"))
            except RECONNECT_ERRORS as problem:
                if self._closed.is_set():
                    return
                pause = stream.reconnect_pause(problem)
            self._closed.wait(pause)

    def _attempt(self, call: Call) -> Answer | NotSent | AnswerLost:
        try:
            return self._transport.send(call.request, call.timeout())
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
    ) -> Job:
        """A job that is held inside a `with` block: renewed in the background, released at its end.

        `ttl` and `wait` are in seconds. If the job is held for longer than `wait`, Held is raised, with its `owner`;
        if it is done, Done, with its `result`, unless you claim it with `again=True`. With the code of an `offer` it is
        taken over from its holder.
        """
        return Job(self, JobClaim({"job_id": job_id}, owner, metadata, ttl, more), wait)

    def any_job(
        self,
        any_of: Iterable[str],
        owner: str,
        metadata: dict[str, Any] | str | None = None,
        ttl: int = 120,
        *,
        wait: float = 0.0,
        **more: Any,
    ) -> Job:
        """The first of several jobs that is free, as `job` does; its `id` says which. `order="random"` mixes them."""
        return Job(self, JobClaim({"any_of": list(any_of)}, owner, metadata, ttl, more), wait)

    def reserve(
        self,
        *paths: str,
        space: str | None = None,
        owner: str | None = None,
        mode: str = "exclusive",
        ttl_seconds: int = RESERVATION_TTL.default,
        wait: float = 0.0,
        **more: Any,
    ) -> Reservation:
        """Files that are reserved, all or none, inside a `with` block: renewed meanwhile, released at its end.

        `paths` are patterns such as `src/auth/**`; `mode` is `exclusive` or `shared`. The `space` is the repository: by
        default HOLDFAST_SPACE, or what its `.holdfast.toml` says; `owner` is HOLDFAST_OWNER, or user@host. If others
        hold the files for longer than `wait` seconds, Held is raised, with `conflicts`.
        """
        more |= {"mode": mode, "ttl_seconds": ttl_seconds}
        return Reservation(self, reservation_claim(paths, space=space, owner=owner, more=more), wait)

    def leader(
        self, election_id: str, candidate: str, *, metadata: str | None = None, ttl: int = 30, wait: float = 0.0
    ) -> Leader:
        """Leadership of an election inside a `with` block. Raises Held if another candidate keeps leading."""
        return Leader(self, LeaderClaim(election_id, candidate, metadata, ttl), wait)

    def task(self, *types: str, worker: str | None = None, wait: float = 0.0, **more: Any) -> TaskLease:
        """The next task of these types, held inside a `with` block. Raises NotFound if none is ready within `wait`."""
        return TaskLease(self, TaskClaim(types, worker, more), wait)

    def mine(
        self, *, owner: str | None = None, session_id: str | None = None, session_secret: str | None = None
    ) -> Iterator[Document]:
        """Iterate over everything that this key holds: sessions, jobs, locks, reservations and tasks.

        Each has its `kind` and `id`. `owner` and `session_id` select some of it. With the `session_secret`, what the
        session holds has its `lease_id`.
        """
        cursor = None
        while True:
            page = self.list_mine(owner=owner, session_id=session_id, session_secret=session_secret, cursor=cursor)
            yield from page["held"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def task_by_id(self, task_id: str, *, worker: str | None = None, **more: Any) -> TaskLease:
        """A task by its id, held inside a `with` block.

        With the code of an `offer` it is taken over from its holder.
        """
        return TaskLease(self, TaskByIdClaim((), worker, more, task_id=task_id))

    def separate(self) -> Client:
        """A client of the same server with connections of its own: closing it ends its calls at once, and no others.

        It is closed with this one.
        """
        if not isinstance(self._transport, SeparableTransport):
            raise TypeError(f"{type(self._transport).__name__} has no method `separate`")
        made = Client(timeout=self._timeout, deadline=self._deadline, transport=self._transport.separate())
        self._separate.add(made)
        if self._closed.is_set():
            made.close()
        return made

    def close(self) -> None:
        """Close all connections. Later calls raise Unreachable with the code `closed`."""
        self._closed.set()
        for made in list(self._separate):
            made.close()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _http_transport(url: str | None, key: str | None) -> Transport:
    from holdfast.client.http import HttpTransport  # slow to import, and not needed for embedded mode

    return HttpTransport(url, key)
