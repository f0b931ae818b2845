"""The application over a store in memory; a test chooses the address of the peer."""

import asyncio

from holdfast.app import sync_credentials
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from tests.compat.octostore.wire import Answer

AFAR = "198.51.100.7"


class House:
    """Requests go in at the application itself, so that they can come from anywhere."""

    def __init__(self, settings: Settings) -> None:
        self.engine = Engine(MemoryStore())
        self.engine.start()
        sync_credentials(self.engine, settings)
        self.ctx = HandlerContext(self.engine, settings)
        self.app = App(self.ctx)
        self.runner = asyncio.Runner()

    def ask(self, path="/locks", headers=None, peer=AFAR, scheme="http", method="GET"):
        lines = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        return self.send(path, lines, peer, scheme, method)

    def send(self, path, lines, peer=AFAR, scheme="http", method="GET"):
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": lines, "client": None if peer is None else (peer, 50_000), "server": ("192.0.2.1", 7700),
            "scheme": scheme,
        }  # fmt: skip
        sent = []

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            sent.append(message)

        self.runner.run(self.app(scope, receive, send))
        head, body = sent
        headers = Headers((name.decode(), value.decode()) for name, value in head["headers"])
        return Answer(head["status"], headers, body["body"])

    def close(self):
        self.runner.close()
        self.ctx.close()
        self.engine.stop()


class Headers(dict):
    def get_all(self, name):
        return [self[name.lower()]] if name.lower() in self else None
