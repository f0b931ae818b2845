"""The dashboard in this process, on a store in memory with a driven clock, for requests from any address."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

from holdfast.app import sync_credentials
from holdfast.engine.engine import Engine
from holdfast.settings import Settings
from holdfast.store.memory.store import MemoryStore
from holdfast.transport.http.app import App
from holdfast.transport.http.context import HandlerContext
from tests.compat.octostore.wire import Answer
from tests.dashboard.client import FORM, text_of
from tests.http.in_process_app import Headers
from tests.http.job_client import ROOT_KEY
from tests.support import DrivenClock


class InProcessDashboard:
    """Sends requests directly to the ASGI application."""

    def __init__(self, store=None, clock=None, settings=None):
        self.clock = clock or DrivenClock()
        settings = settings or Settings(root_key=ROOT_KEY, public_url="https://holdfast.example")
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

    def open(self):
        """Let the event loop run commands, which actions need."""

        async def opened():
            self.ctx.open()

        self.thread.submit(lambda: self.runner.run(opened())).result()

    def close(self):
        self.thread.submit(self.runner.close).result()
        self.thread.shutdown()
        self.ctx.close()
        self.engine.stop()


class Visitor:
    """A signed-in browser of an InProcessDashboard."""

    def __init__(self, dashboard, key=ROOT_KEY):
        self.dashboard = dashboard
        dashboard.open()
        self.cookie = dashboard.send_key(key).headers["set-cookie"].split(";")[0]

    def get(self, path, status=200):
        """The main part of a page."""
        return self._main(self.dashboard.send("GET", path, cookie=self.cookie), status)

    def words(self, path, status=200):
        """The text of a page's main part."""
        return words_of(self.get(path, status))

    def rows(self, path):
        """The text of each row of the page's tables."""
        found = re.findall(r"<tr>\s*<t[hd].*?</tr>", self.get(path).replace("<thead><tr>", ""), re.DOTALL)
        return [words_of(row) for row in found]

    def post(self, path, status=303, **fields):
        """Where the browser is redirected to, or the main part of the answer."""
        page = self.dashboard.send("GET", "/", cookie=self.cookie).raw.decode()
        token = re.search(r'name="token" value="([0-9a-f]+)"', page)[1]
        body = urlencode({"token": token, **fields}).encode()
        answer = self.dashboard.send("POST", path, body, cookie=self.cookie, content_type=FORM)
        return answer.headers["location"] if answer.status == status == 303 else self._main(answer, status)

    def _main(self, answer, status):
        page = answer.raw.decode()
        assert answer.status == status, words_of(page)
        return page.partition("<main")[2]


def words_of(page):
    return " ".join(text_of(page).split())
