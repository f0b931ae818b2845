"""The dashboard in this process, on a store in memory with a driven clock, for requests from any address."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

from holdfast.app import sync_credentials
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from tests.compat.octostore.wire import Answer
from tests.http.in_process_app import Headers
from tests.http.job_client import ROOT_KEY
from tests.support import DrivenClock


class InProcessDashboard:
    """Sends requests directly to the ASGI application."""

    def __init__(self, store=None, clock=None):
        self.clock = clock or DrivenClock()
        settings = Settings(root_key=ROOT_KEY, public_url="https://holdfast.example")
        self.engine = Engine(store or MemoryStore(self.clock))
        self.engine.start()
        sync_credentials(self.engine, settings)
        self.ctx = HandlerContext(self.engine, settings)
        self.app = App(self.ctx)
        # The browser of other tests keeps another event loop on this thread.
        self.thread = ThreadPoolExecutor(1)
        self.runner = self.thread.submit(asyncio.Runner).result()

    def send(self, method, path, body=b"", peer="127.0.0.1", scheme="http", **headers):
        given = {"host": "holdfast.example", "accept": "text/html", **headers}
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
            "client": (peer, 50_000), "server": ("192.0.2.1", 7700), "scheme": scheme,
        }  # fmt: skip
        sent = []

        async def receive():
            return {"type": "http.request", "body": body}

        async def send(message):
            sent.append(message)

        self.thread.submit(lambda: self.runner.run(self.app(scope, receive, send))).result()
        headers = Headers((name.decode(), value.decode()) for name, value in sent[0]["headers"])
        return Answer(sent[0]["status"], headers, sent[1]["body"])

    def send_key(self, key=ROOT_KEY, **more):
        kind = "application/x-www-form-urlencoded"
        return self.send("POST", "/ui/sign-in", urlencode({"key": key}).encode(), content_type=kind, **more)

    def cookie(self, **more):
        return self.send_key(**more).headers["set-cookie"]

    def sign_in(self):
        return self.cookie().split(";")[0]

    def is_signed_in(self, cookie, *, fragments=False):
        more = {"x_fragments": "1"} if fragments else {}
        return b"Held work" in self.send("GET", "/", cookie=cookie, **more).raw

    def later(self, seconds):
        self.clock.advance(seconds)

    def close(self):
        self.thread.submit(self.runner.close).result()
        self.thread.shutdown()
        self.ctx.close()
        self.engine.stop()
