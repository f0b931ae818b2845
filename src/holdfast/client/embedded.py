"""Embedded mode: the engine in this process, behind the very handlers that a server has.

A request never becomes bytes on a socket, but it is parsed, decided and refused by the same code, so that a program
cannot tell the difference. Whoever may open the file administers it: there is no key to know.
"""

from __future__ import annotations

import asyncio
import os
import queue
import secrets
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from holdfast.app import running_engine
from holdfast.client.client import Client
from holdfast.client.errors import ServerError
from holdfast.client.request import Answer, Request
from holdfast.client.retry import Broken, Unsent
from holdfast.core.errors import HoldfastError as Refusal
from holdfast.settings import PREFIX, Settings, default_store
from holdfast.store.contract import UnusableStore
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext

UNLIMITED = 10**9
PARTS_AHEAD = 16
"""How many parts of a stream may wait to be read."""
_GOOD = 200
LAST_SECONDS = 5.0
"""How long closing waits for calls of other threads."""


def open_store(path: str | os.PathLike[str] | None = None) -> Client:
    """A client over a store in this process: a path of an SQLite file, or an address as `--store` takes it.

    Without one it is the store that a server on this machine would open. Any number of processes and a server may have
    the same file open. Close the client when you are done: that stops its threads.
    """
    return Client(transport=EmbeddedTransport(address_of(path)))


def address_of(path: str | os.PathLike[str] | None) -> str:
    """The store that a program means."""
    if path is None:
        return os.environ.get(f"{PREFIX}STORE") or default_store()
    text = os.fspath(path)
    return text if text == "memory:" or "://" in text else f"sqlite:///{text}"


def _settings(store: str, admin_key: str) -> Settings:
    """Nothing is limited, and nothing is tidied away: how long things are kept is for a server to say."""
    return Settings(
        store=store,
        admin_key=admin_key,
        public_election_requests_per_minute=UNLIMITED,
        max_locks_per_user=UNLIMITED,
        task_retention_days=0,
        event_retention_days=0,
    )


class EmbeddedTransport:
    """An engine, a door, and a thread whose event loop the door's handlers run on."""

    def __init__(self, store: str) -> None:
        self._key = secrets.token_urlsafe().encode()
        settings = _settings(store, self._key.decode())
        self._rooms = ExitStack()
        try:
            engine = self._rooms.enter_context(running_engine(settings, serving=False))
        except (Refusal, UnusableStore) as error:
            raise ServerError(str(error), code=error.code) from error
        self._engine = engine
        self._door = HandlerContext(engine, settings)
        self._app = App(self._door)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast-embedded", daemon=True)
        self._thread.start()
        self._busy: set[asyncio.Task[Any]] = set()
        self._streams: set[Streamed] = set()
        self._closed = False
        self._run(self._begin()).result()

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt."""
        running, leave = self.begin(request)
        try:
            answer: Answer = running.result(timeout)
        except (TimeoutError, CancelledError) as error:
            raise Broken("no answer in time") from error
        finally:
            leave()
        return answer

    @contextmanager
    def stream(self, request: Request, silence: float) -> Iterator[tuple[Answer, Iterator[bytes]]]:
        """One stream: what the handlers send is read on the caller's thread, which may take its time."""
        if self._closed:
            raise Unsent("it was closed just now")
        exchange = Streamed(request, self._key, self._loop, silence)
        running = self._run(self._stream(exchange))
        try:
            answer = exchange.head()
            # A refusal comes whole, like any answer.
            yield (answer, exchange.pieces()) if answer.status == _GOOD else (running.result(silence), iter(()))
        finally:
            with suppress(RuntimeError):  # it may have been closed since
                self._loop.call_soon_threadsafe(exchange.leave)

    def begin(self, request: Request) -> tuple[Future[Any], Callable[[], None]]:
        """(the answer to come, what to call when nobody listens for it any more)."""
        if self._closed:
            raise Unsent("it was closed just now")
        exchange = Exchange(request, self._key)
        running = self._run(self._answer(exchange))
        # Whoever stops listening leaves the line, exactly as a closed connection does.
        return running, lambda: self._leave(exchange)

    def _leave(self, exchange: Exchange) -> None:
        with suppress(RuntimeError):  # it may have been closed since
            self._loop.call_soon_threadsafe(exchange.gone.set)

    def close(self) -> None:
        """Send waiters away, finish what is under way, and stop every thread."""
        if self._closed:
            return
        self._closed = True
        self._engine.drain()
        self._run(self._end()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._rooms.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _begin(self) -> None:
        self._door.open()

    async def _answer(self, exchange: Exchange) -> Answer:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        try:
            return await exchange.through(self._app)
        finally:
            self._busy.discard(task)

    async def _stream(self, exchange: Streamed) -> Answer:
        self._streams.add(exchange)
        try:
            return await self._answer(exchange)
        finally:
            self._streams.discard(exchange)

    async def _end(self) -> None:
        for exchange in self._streams:  # a reader who takes its time would never come to the end
            exchange.leave()
        if self._busy:
            await asyncio.wait(self._busy, timeout=LAST_SECONDS)
        self._door.close()
        await asyncio.sleep(0)  # what was cancelled ends here


class Exchange:
    """One request through the application, as a server would hand it over."""

    def __init__(self, request: Request, key: bytes) -> None:
        path, _, query = request.target.partition("?")
        headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
        self._scope = {
            "type": "http",
            "method": request.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [*headers, (b"x-admin-key", key)],
            "client": None,
        }
        self._body: bytes | None = request.body
        self._status = 0
        self._headers: dict[str, str] = {}
        self._chunks: list[bytes] = []
        self.gone = asyncio.Event()
        """Nobody listens for the answer any more."""

    async def through(self, app: App) -> Answer:
        """What the application answers."""
        await app(self._scope, self._receive, self._send)
        return Answer(self._status, self._headers, b"".join(self._chunks))

    async def _receive(self) -> dict[str, Any]:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]
            }
        else:
            self._chunks.append(message.get("body", b""))


class Streamed(Exchange):
    """A request whose answer comes in parts: sent on the event loop, read on another thread, a few parts apart."""

    def __init__(self, request: Request, key: bytes, loop: asyncio.AbstractEventLoop, silence: float) -> None:
        super().__init__(request, key)
        self._loop = loop
        self._silence = silence
        self._parts: queue.SimpleQueue[bytes | Answer] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(PARTS_AHEAD)

    def head(self) -> Answer:
        """Status and headers."""
        head = self._next()
        if not isinstance(head, Answer):
            raise Broken("it was closed just now")
        return head

    def pieces(self) -> Iterator[bytes]:
        """Part after part; an empty one is the end."""
        while piece := self._next():
            with suppress(RuntimeError):  # it was closed, and nobody waits for room
                self._loop.call_soon_threadsafe(self._room.release)
            assert isinstance(piece, bytes)
            yield piece

    def leave(self) -> None:
        """Nobody reads on: whoever is about to send need not wait, and whoever still waits for a part gets the end."""
        self.gone.set()
        self._room.release()
        self._parts.put(b"")

    def _next(self) -> bytes | Answer:
        try:
            return self._parts.get(timeout=self._silence)
        except queue.Empty:
            raise Broken("nothing was heard for long") from None

    async def _send(self, message: Any) -> None:
        await super()._send(message)
        if message["type"] == "http.response.start":
            self._parts.put(Answer(self._status, self._headers, b""))
            return
        if self._status == _GOOD:
            self._chunks.clear()
        part = message.get("body", b"")
        if part:
            await self._room.acquire()
            self._parts.put(part)
        if not message.get("more_body"):
            self._parts.put(b"")
