"""Embedded mode: the engine in this process, behind the same HTTP handlers as in a server.

Requests do not cross a socket, but the same code parses, decides and refuses them, so that they behave exactly as on a
server. There are no keys: a process that can open the file may do everything.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from http import HTTPStatus
from typing import Any

from holdfast.app import running_engine
from holdfast.client.asgi_request import AsgiRequest, StreamedAsgiRequest
from holdfast.client.client import Client
from holdfast.client.errors import ServerError
from holdfast.client.forks import call_after_fork, store_of_parent
from holdfast.client.request import Answer, Request
from holdfast.client.retry import AnswerLost, NotSent
from holdfast.core.errors import HoldfastError as Refusal
from holdfast.settings import PREFIX, Settings, default_store, store_address
from holdfast.store.contract import Clock, UnusableStore
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import CALLER_GONE

UNLIMITED = 10**9
CLOSE_SECONDS = 5.0
"""How long `close` waits for calls of other threads."""

_kept: list[EmbeddedTransport] = []
"""Transports of the parent in this child: collecting them would close connections that only the parent may close."""


def open_store(path: str | os.PathLike[str] | None = None) -> Client:
    """Open a store in this process and return a client for it; no server is needed.

    `path` is an SQLite file, or a URL as for `holdfast serve --store`; by default the store that a server on this
    machine would open. `:memory:` is a store in memory, gone when the client is closed. Several processes and a server
    may open the same file at the same time. Close the client when you are done: that stops its threads.
    """
    return Client(transport=EmbeddedTransport(store_url(path)))


def store_url(path: str | os.PathLike[str] | None) -> str:
    """URL of the store for a path, a URL or the default."""
    if path is None:
        return os.environ.get(f"{PREFIX}STORE") or default_store()
    return store_address(os.fspath(path))


def _settings(store: str, admin_key: str) -> Settings:
    """Settings without limits and without retention, which only a server applies."""
    return Settings(
        store=store,
        admin_key=admin_key,
        public_election_requests_per_minute=UNLIMITED,
        max_locks_per_user=UNLIMITED,
        task_retention_days=0,
        event_retention_days=0,
    )


class EmbeddedTransport:
    """Transport to an engine in this process, with a thread whose event loop runs the handlers.

    A `clock` is for a store in memory, which a test drives.
    """

    def __init__(self, store: str, clock: Clock | None = None) -> None:
        self._key = secrets.token_urlsafe().encode()
        settings = _settings(store, self._key.decode())
        self._resources = ExitStack()
        try:
            engine = self._resources.enter_context(running_engine(settings, serving=False, clock=clock))
        except (Refusal, UnusableStore) as error:
            raise ServerError(str(error), code=error.code) from error
        self._engine = engine
        self._context = HandlerContext(engine, settings)
        self._app = App(self._context)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast-embedded", daemon=True)
        self._thread.start()
        self._busy: set[asyncio.Task[Any]] = set()
        self._streams: set[StreamedAsgiRequest] = set()
        self._closed = False
        self._forked = False
        self._run(self._open()).result()
        call_after_fork(self)

    def after_fork(self) -> None:
        """Refuse every use: the threads stayed in the parent, and SQLite connections must not cross a fork."""
        self._forked = self._closed = True
        _kept.append(self)

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt."""
        running, leave = self.begin(request)
        try:
            answer: Answer = running.result(timeout)
        except (TimeoutError, CancelledError) as error:
            raise AnswerLost("no answer in time") from error
        finally:
            leave()
        return answer

    @contextmanager
    def stream(self, request: Request, silence: float) -> Iterator[tuple[Answer, Iterator[bytes]]]:
        """One stream: the handlers send on the event loop, the caller reads in its own thread at its own pace."""
        self._check_usable()
        asgi_request = StreamedAsgiRequest(request, self._key, self._loop, silence)
        running = self._run(self._stream(asgi_request))
        try:
            answer = asgi_request.head()
            # A refusal has a whole body, like any answer.
            is_stream = answer.status == HTTPStatus.OK
            yield (answer, asgi_request.chunks()) if is_stream else (running.result(silence), iter(()))
        finally:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(asgi_request.disconnect)

    def begin(self, request: Request) -> tuple[Future[Any], Callable[[], None]]:
        """Start a request; the future of its answer, and a function to call when the answer is no longer awaited."""
        self._check_usable()
        asgi_request = AsgiRequest(request, self._key)
        running = self._run(self._answer(asgi_request))
        # As for a closed connection: a caller that stops waiting leaves the queue it waits in.
        return running, lambda: self._disconnect(asgi_request)

    def separate(self) -> SeparateEmbeddedTransport:
        """A transport to the same engine: closing it ends its requests, and leaves the engine open."""
        return SeparateEmbeddedTransport(self)

    def _check_usable(self) -> None:
        if self._forked:
            raise store_of_parent()
        if self._closed:
            raise NotSent("the client is closed")

    def _disconnect(self, asgi_request: AsgiRequest) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(asgi_request.disconnected.set)

    def close(self) -> None:
        """End waiting requests, finish running ones, and stop all threads."""
        if self._closed:
            return
        self._closed = True
        self._engine.drain()
        self._run(self._finish()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._resources.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _open(self) -> None:
        self._context.open()

    async def _answer(self, asgi_request: AsgiRequest) -> Answer:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        try:
            return await asgi_request.run(self._app)
        finally:
            self._busy.discard(task)

    async def _stream(self, asgi_request: StreamedAsgiRequest) -> Answer:
        self._streams.add(asgi_request)
        try:
            return await self._answer(asgi_request)
        finally:
            self._streams.discard(asgi_request)

    async def _finish(self) -> None:
        for asgi_request in self._streams:  # a slow reader would block its handler
            asgi_request.disconnect()
        if self._busy:
            await asyncio.wait(self._busy, timeout=CLOSE_SECONDS)
        self._context.close()
        await asyncio.sleep(0)  # lets cancelled tasks end


class SeparateEmbeddedTransport:
    """Transport to the engine of another transport. `close` ends its own requests at once."""

    def __init__(self, inner: EmbeddedTransport) -> None:
        self._inner = inner
        self._leave: set[Callable[[], None]] = set()
        """For each request: disconnects its caller."""
        self._is_closed = False

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt. `close` ends it as if its connection had been closed."""
        running, leave = self._inner.begin(request)
        self._leave.add(leave)
        if self._is_closed:
            leave()
        try:
            answer: Answer = running.result(timeout)
        except (TimeoutError, CancelledError) as error:
            raise AnswerLost("no answer in time") from error
        finally:
            self._leave.discard(leave)
            leave()
        if answer.status == CALLER_GONE:
            raise AnswerLost("the client was closed before the answer")
        return answer

    def stream(self, request: Request, silence: float) -> AbstractContextManager[tuple[Answer, Iterator[bytes]]]:
        """One stream of the engine."""
        return self._inner.stream(request, silence)

    def separate(self) -> SeparateEmbeddedTransport:
        """Another transport to the same engine."""
        return self._inner.separate()

    def close(self) -> None:
        """End all requests."""
        self._is_closed = True
        for leave in list(self._leave):
            leave()
