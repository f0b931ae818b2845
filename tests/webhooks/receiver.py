"""Webhook receiver on a background thread: records the messages, and answers with configured statuses or failures."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook

from tests.support import wait_until


@dataclass(frozen=True)
class Message:
    """One received request."""

    path: str
    headers: dict[str, str]
    raw: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def subject(self) -> str:
        return self.json["data"]["subject"]

    @property
    def seq(self) -> int:
        return self.json["data"]["seq"]

    def verify(self, secret: str) -> None:
        """Verify the signature with the reference library, which raises if it is wrong."""
        Webhook(secret).verify(self.raw, self.headers)


class Receiver:
    """Answers each path with its configured statuses in order; the last one is repeated."""

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:
        self.messages: list[Message] = []
        self.plans: dict[str, list[int | Callable[[Any], None]]] = {}
        self.headers: dict[str, str] = {}
        self.inside = 0
        """Requests in progress."""
        self.most_inside = 0
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        if trust is not None:
            self._server.socket = trust.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str = "/ok", *plan: int | Callable[[Any], None]) -> str:
        """Where to post, and what happens there: 204 unless a plan is given."""
        self.plans[path] = list(plan) or [204]
        return f"http://127.0.0.1:{self.port}{path}"

    def late(self, status: int, seconds: float) -> Callable[[Any], None]:
        """A step of a plan: this status, after some seconds."""

        def step(request: BaseHTTPRequestHandler) -> None:
            time.sleep(seconds)
            self._status(request, status)

        return step

    def on(self, path: str) -> list[Message]:
        with self._lock:
            return [message for message in self.messages if message.path == path]

    def await_messages(self, path: str, count: int, seconds: float = 30) -> list[Message]:
        wait_until(lambda: len(self.on(path)) >= count, seconds)
        return self.on(path)

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        declared = int(request.headers.get("content-length", 0))
        raw = request.rfile.read(declared)
        if len(raw) < declared:  # the sender was killed while it sent the body
            return
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self._lock:
            self.messages.append(Message(request.path, headers, raw))
            plan = self.plans.get(request.path, [404])
            step = plan.pop(0) if len(plan) > 1 else plan[0]
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        try:
            if callable(step):
                step(request)
            else:
                self._status(request, step)
        finally:
            with self._lock:
                self.inside -= 1

    def _status(self, request: BaseHTTPRequestHandler, status: int) -> None:
        request.send_response(status)
        for name, value in self.headers.items():
            request.send_header(name, value)
        if status != 204:
            request.send_header("Content-Length", "0")
        request.end_headers()
