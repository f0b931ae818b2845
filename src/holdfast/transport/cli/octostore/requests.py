"""One request at a time, never repeated here: when to ask again is for whoever counts the time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast.addresses import is_loopback
from holdfast.client import errors
from holdfast.client import request as wire
from holdfast.client.errors import Unreachable
from holdfast.client.event_stream import SILENCE_SECONDS, Following
from holdfast.client.request import Answer
from holdfast.client.retry import Broken
from holdfast.client.sse import Frame
from holdfast.transport.cli.credentials import read_private
from holdfast.transport.cli.http_sender import DEFAULT_URL, BadAddress, Sender
from holdfast.transport.cli.output import say

LARGEST = 2**20
CONNECT, REQUEST = 5.0, 10.0
_GOOD, _CONFLICT = 300, 409


class Asker:
    """Asks one server, as one user or as nobody."""

    def __init__(self, arguments: dict[str, Any], *, with_token: bool) -> None:
        self.server = server_of(arguments.get("server"))
        self.token = read_token() if with_token else None
        self.request_timeout: float = arguments.get("request_timeout") or REQUEST
        connect = arguments.get("connect_timeout") or CONNECT
        self._sender = Sender(
            self.server, self.token, connect_seconds=connect, head_seconds=self.request_timeout, largest=LARGEST
        )

    def ask(self, operation: str, limit: float = float("inf"), **arguments: Any) -> dict[str, Any]:
        """The answer within the time a request may take, or less."""
        request = wire.request(wire.find(operation), arguments)
        try:
            answer = self._sender.send(request, max(min(self.request_timeout, limit), 0.001))
        except Broken as error:
            raise Unreachable(f"no answer from {self.server}: {error}") from error
        answer = self._without_token(answer)
        document = answer.document()
        if answer.status >= _GOOD and not (answer.status == _CONFLICT and document.get("status") == "delayed"):
            raise errors.of_answer(answer.status, document, answer.headers)
        return document

    def hear(self, following: Following) -> Iterator[Frame]:
        """What comes over one connection of a stream; Broken when it ends, as streams do not end by themselves."""
        with self._sender.stream(following.request(), SILENCE_SECONDS) as (answer, pieces):
            following.opened(self._without_token(answer))
            for piece in pieces:
                yield from following.take(piece)
        raise Broken("the stream ended")

    def _without_token(self, answer: Answer) -> Answer:
        """A server that reflects it shall not make us tell it."""
        if self.token is None:
            return answer
        return replace(answer, body=answer.body.replace(self.token.encode(), b"[REDACTED]"))


def server_of(given: str | None) -> str:
    """Which server: the flag, the variables, or the one on this machine."""
    url = given or os.environ.get("OCTOSTORE_URL", "").strip() or os.environ.get("HOLDFAST_URL") or DEFAULT_URL
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise BadAddress("the server is http(s)://host[/path]")
    if parts.query or parts.fragment:
        raise BadAddress("the server's address has neither query nor fragment")
    return url.rstrip("/")


def check_secrecy(server: str, *, careless: bool) -> None:
    """Whoever reads a capability on its way has it."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if parts.scheme == "http" and not (careless or host == "localhost" or is_loopback(host)):
        raise BadAddress("plain HTTP would show a secret capability to the network: use https or --allow-insecure-http")


def read_token() -> str:
    """The bearer token: a private file, stdin, or the environment."""
    path = os.environ.get("OCTOSTORE_TOKEN_FILE")
    if path:
        token = sys.stdin.readline() if path == "-" else read_private(path)
    elif os.environ.get("OCTOSTORE_TOKEN"):
        say("holdfast: a token in the environment can be seen by others; OCTOSTORE_TOKEN_FILE is safer")
        token = os.environ["OCTOSTORE_TOKEN"]
    else:
        token = os.environ.get("HOLDFAST_API_KEY", "")
    token = token.strip()
    if not token or any(character in token for character in "\r\n\0"):
        raise BadAddress("no token: name a file in OCTOSTORE_TOKEN_FILE, or set HOLDFAST_API_KEY")
    return token
