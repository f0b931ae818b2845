"""The whole application in this process, over a store in memory."""

import asyncio
import itertools
import threading
from collections.abc import Mapping
from urllib.parse import unquote

from holdfast.app import sync_credentials
from holdfast.engine.engine import Engine
from holdfast.settings import Settings, load
from holdfast.store.contract import Store
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from tests.compat.octostore.server import ADMIN_KEY, static_tokens
from tests.compat.octostore.wire import LOCAL_SERVERS, Answer, Caller
from tests.http.job_client import ROOT_KEY

REMOTE = "198.51.100.7"
VARIABLES = {
    "HOLDFAST_REGISTRATION": "open",
    "HOLDFAST_STATIC_TOKENS": static_tokens(),
    "HOLDFAST_ADMIN_KEY": ADMIN_KEY,
    "HOLDFAST_ROOT_KEY": ROOT_KEY,
}
_ports = itertools.count(65_536)
"""Numbers that no real server can have."""


class InProcessApp:
    """Takes requests as ASGI scopes, so that a test chooses the address and the scheme of the caller."""

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        self.engine = Engine(store or MemoryStore())
        self.engine.start()
        sync_credentials(self.engine, settings)
        self.ctx = HandlerContext(self.engine, settings)
        self.app = App(self.ctx)
        self.runner = asyncio.Runner()

    def ask(self, path="/locks", headers=None, peer=REMOTE, scheme="http", method="GET"):
        lines = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        return self.send(path, lines, peer, scheme, method)

    def send(self, path, lines, peer=REMOTE, scheme="http", method="GET", *, raw_path=None, query=b"", body=b""):
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": raw_path or path.encode(),
            "query_string": query, "headers": lines, "client": None if peer is None else (peer, 50_000),
            "server": ("192.0.2.1", 7700), "scheme": scheme,
        }  # fmt: skip
        sent = []

        parts = [{"type": "http.request", "body": body}]

        async def receive():
            if not parts:
                await asyncio.Event().wait()  # the caller stays connected
            return parts.pop()

        async def send(message):
            sent.append(message)

        self.runner.run(self.app(scope, receive, send))
        head, *bodies = sent
        headers = Headers((name.decode(), value.decode()) for name, value in head["headers"])
        return Answer(head["status"], headers, b"".join(part["body"] for part in bodies))

    def close(self):
        self.runner.close()
        self.ctx.close()
        self.engine.stop()


class Headers(dict):
    """Response headers, found by any spelling of their names."""

    def __getitem__(self, name):
        return self.get(name.lower())

    def get_all(self, name):
        return [self[name]] if name.lower() in self else None


class InProcessServer:
    """What `Server` offers to tests, without a process: requests that go to its port are answered here."""

    def __init__(self, store: Store | None = None, variables: Mapping[str, str] = VARIABLES) -> None:
        settings, _ = load({"store": "memory:"}, variables)
        self._app = InProcessApp(settings, store)
        self._app.runner.run(self._open())
        self._lock = threading.Lock()
        self.port = next(_ports)
        LOCAL_SERVERS[self.port] = self.answer
        self.anyone = Caller(self.port)

    async def _open(self) -> None:
        self._app.ctx.open()

    def answer(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Handle one request as if it had come over a loopback connection."""
        lines = [
            (b"host", b"127.0.0.1"),
            *((name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()),
        ]
        if body is not None:
            lines.append((b"content-length", str(len(body)).encode()))
        path, _, query = target.partition("?")
        raw = {"raw_path": path.encode(), "query": query.encode(), "body": body or b""}
        with self._lock:
            return self._app.send(unquote(path), lines, "127.0.0.1", method=method, **raw)

    def close(self) -> None:
        del LOCAL_SERVERS[self.port]
        self._app.close()
