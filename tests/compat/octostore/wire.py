"""A small HTTP client that sends exactly the bytes it is given.

Other clients normalize paths (`//`, `%2F`, `..`), merge repeated query parameters and add headers. These tests are
about such requests, so nothing is normalized here.
"""

import http.client
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from tests.conformance import check_answer

TIMEOUT_SECONDS = 20
NOTHING = object()
STREAM = "text/event-stream"


@dataclass(frozen=True)
class Answer:
    """An unmodified response."""

    status: int
    headers: http.client.HTTPMessage
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    def header(self, name: str) -> str | None:
        """All values of a header, joined as HTTP joins them; None if it was not sent."""
        values = self.headers.get_all(name)
        return None if values is None else ", ".join(values)

    def words(self, name: str) -> set[str]:
        """A comma-separated header as a set of lower-case words."""
        return {word.strip().lower() for word in (self.header(name) or "").split(",")} - {""}

    def __str__(self) -> str:
        return f"{self.status} {self.raw[:400]!r}"


LOCAL_SERVERS: dict[int, Callable[..., Answer]] = {}
"""Applications in this process that answer instead of a server, by a number used as their port."""


def send(port: int, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
    """Send one request on one connection. The response must match the OpenAPI document."""
    if port in LOCAL_SERVERS:
        answer = LOCAL_SERVERS[port](method, path, body, headers)
        check_answer(method, path, answer.status, answer.headers, answer.raw)
        return answer
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.connect()
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        # A server may refuse an oversized body before it has read it all; its answer still waits for us.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.endheaders(body)
        response = connection.getresponse()
        body = first_frame(response) if response.headers["Content-Type"] == STREAM else response.read()
        answer = Answer(response.status, response.headers, body)
        check_answer(method, path, answer.status, answer.headers, answer.raw)
        return answer
    finally:
        connection.close()


def first_frame(response: http.client.HTTPResponse) -> bytes:
    """Read the first part of a stream, which has no end."""
    return b"".join(iter(response.readline, b"\n")) + b"\n"


@dataclass(frozen=True)
class Caller:
    """A client: a port, the headers it always sends, and its name."""

    port: int
    headers: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    token: str = field(default="", repr=False)

    def with_headers(self, **headers: str) -> "Caller":
        """The same caller with more headers (underscores become hyphens)."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **more})

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        return send(self.port, method, path, body, self.with_headers(**headers).headers)

    def send_json(self, method: str, path: str, value: object) -> Answer:
        return self.send(method, path, json.dumps(value).encode(), Content_Type="application/json")

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def delete(self, path: str) -> Answer:
        return self.send("DELETE", path)

    def put(self, path: str, value: object) -> Answer:
        return self.send_json("PUT", path, value)

    def post(self, path: str, value: object = NOTHING) -> Answer:
        """POST a JSON value, or no body."""
        return self.send("POST", path) if value is NOTHING else self.send_json("POST", path, value)

    # The verbs of the API, for short tests.

    def acquire(self, lock: str, **fields: object) -> Answer:
        return self.post(lock_path(lock, "/acquire"), fields)

    def renew(self, lock: str, lease_id: str, **fields: object) -> Answer:
        return self.post(lock_path(lock, "/renew"), {"lease_id": lease_id, **fields})

    def release(self, lock: str, lease_id: str) -> Answer:
        return self.post(lock_path(lock, "/release"), {"lease_id": lease_id})

    def read_lock(self, lock: str) -> Answer:
        return self.get(lock_path(lock))

    def set_acl(self, lock: str, *principals: str) -> Answer:
        return self.put(lock_path(lock, "/acl"), {"acl": {"acquire": list(principals)}})

    def open_session(self, **fields: object) -> Answer:
        return self.post("/sessions", fields)

    def keep_alive(self, session: str) -> Answer:
        return self.post(f"/sessions/{session}/keepalive")

    def campaign(self, election: str, candidate: str = "candidate", **fields: object) -> Answer:
        return self.post(f"/elections/{election}/campaign", {"candidate_id": candidate, **fields})

    def renew_leadership(self, election: str, leader_token: str, **fields: object) -> Answer:
        return self.post(f"/elections/{election}/renew", {"leader_token": leader_token, **fields})

    def resign(self, election: str, leader_token: str, **fields: object) -> Answer:
        return self.post(f"/elections/{election}/resign", {"leader_token": leader_token, **fields})


def lock_path(lock: str, verb: str = "") -> str:
    """The path of a lock; its name is one segment, so slashes are encoded."""
    return f"/locks/{quote(lock, safe='')}{verb}"
