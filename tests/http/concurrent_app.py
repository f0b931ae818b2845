"""Many requests at once to an application in this process; a body may come in pieces, or never completely."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from holdfast.app import sync_credentials
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.store.contract import Store
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext

KEY = "a-key-for-the-overload-tests-1"
REMOTE = "198.51.100.7"


class Call:
    """One request: its answer, and how much of its body was taken."""

    def __init__(self, pieces: Iterable[bytes], *, ends: bool, reads: bool) -> None:
        self._pieces = list(pieces)
        self._ends = ends
        self.taken = 0
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.parts = 0
        """In how many parts the answer came."""
        self.read = asyncio.Event()
        """The caller reads the body of its answer once this is set."""
        if reads:
            self.read.set()
        self.sent = asyncio.Event()
        """Set when the body's last piece was taken."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def receive(self) -> dict[str, Any]:
        if self.taken == len(self._pieces):
            await asyncio.Event().wait()  # the caller stays connected and sends no more
        self.taken += 1
        last = self.taken == len(self._pieces)
        if last:
            self.sent.set()
        return {"type": "http.request", "body": self._pieces[self.taken - 1], "more_body": not (last and self._ends)}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        await self.read.wait()
        self.parts += 1
        self.body += message.get("body", b"")


class ConcurrentApp:
    """An application over a store; use it inside `run`."""

    def __init__(self, store: Store | None = None, **settings: Any) -> None:
        self.engine = Engine(store or MemoryStore())
        self.engine.start()
        self.settings = Settings(root_key=KEY, **{"registration": "open", **settings})
        sync_credentials(self.engine, self.settings)
        self.ctx = HandlerContext(self.engine, self.settings)
        self.app = App(self.ctx)
        self._unfinished: list[asyncio.Task[None]] = []

    def run(self, scenario: Callable[["ConcurrentApp"], Awaitable[Any]]) -> Any:
        """Run a scenario, then stop everything it left unfinished."""

        async def play() -> Any:
            self.ctx.open()
            try:
                return await scenario(self)
            finally:
                for task in self._unfinished:
                    task.cancel()
                await asyncio.gather(*self._unfinished, return_exceptions=True)
                self.ctx.close()

        try:
            return asyncio.run(play())
        finally:
            self.engine.stop()
            self.engine.store.close()

    def begin(
        self,
        path: str,
        method: str = "POST",
        *,
        key: str | None = KEY,
        pieces: Iterable[bytes] = (b"",),
        ends: bool = True,
        reads: bool = True,
        length: int | None = None,
        peer: str = "127.0.0.1",
    ) -> tuple[Call, Any]:
        """Start a request; returns it and the task that answers it."""
        headers = [(b"host", b"x"), (b"content-type", b"application/json")]
        if key is not None:
            headers.append((b"authorization", f"Bearer {key}".encode()))
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        raw, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "path": raw, "raw_path": raw.encode(), "query_string": query.encode(),
            "headers": headers, "client": (peer, 50_000), "server": ("192.0.2.1", 7700), "scheme": "https",
        }  # fmt: skip
        call = Call(pieces, ends=ends, reads=reads)
        task = asyncio.ensure_future(self.app(scope, call.receive, call.send))
        self._unfinished.append(task)
        return call, task

    async def ask(self, path: str, method: str = "POST", body: Any = None, **more: Any) -> Call:
        """Send a request and wait for its answer."""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        call, task = self.begin(path, method, pieces=[raw], **more)
        await asyncio.wait_for(task, 30)
        return call


async def longest_pause(work: Awaitable[Any]) -> float:
    """The longest time for which the event loop did nothing else while it did some work."""
    loop = asyncio.get_running_loop()
    longest, last = 0.0, loop.time()
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.sleep(0)
        longest, last = max(longest, loop.time() - last), loop.time()
    await task
    return longest
