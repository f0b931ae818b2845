"""Requests of the OctoStore verbs, each sent once: the caller watches the deadline and decides about retries."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from holdfast.addresses import is_loopback
from holdfast.client import errors
from holdfast.client import request as wire
from holdfast.client.errors import Unreachable
from holdfast.client.event_stream import SILENCE_SECONDS, StreamState
from holdfast.client.request import Answer
from holdfast.client.retry import AnswerLost, is_delayed_lock
from holdfast.client.sse import Frame
from holdfast.private_files import UnusableFile
from holdfast.server_keys import address_of, configured_key, environment_key
from holdfast.transport.cli.credentials import BadAddress, read_private
from holdfast.transport.cli.http_sender import HttpSender
from holdfast.transport.cli.output import print_message

MAX_ANSWER_BYTES = 2**20
CONNECT_SECONDS, REQUEST_SECONDS = 5.0, 10.0


class Requester:
    """Sends requests to one server, with or without a token."""

    def __init__(self, arguments: dict[str, Any], *, with_token: bool) -> None:
        self.server = server_of(arguments.get("server"))
        self.token = read_token(self.server, is_named=arguments.get("server") is not None) if with_token else None
        self.request_timeout: float = arguments.get("request_timeout") or REQUEST_SECONDS
        connect = arguments.get("connect_timeout") or CONNECT_SECONDS
        self._sender = HttpSender(
            self.server,
            self.token,
            connect_seconds=connect,
            head_seconds=self.request_timeout,
            max_bytes=MAX_ANSWER_BYTES,
        )

    def call(self, operation: str, limit: float = float("inf"), **arguments: Any) -> dict[str, Any]:
        """Send one request and return its answer, within the request timeout or `limit` seconds, whichever is less."""
        request = wire.build_request(wire.find_operation(operation), arguments)
        try:
            answer = self._sender.send(request, max(min(self.request_timeout, limit), 0.001))
        except AnswerLost as error:
            raise Unreachable(f"no answer from {self.server}: {error}") from error
        answer = self._without_token(answer)
        document = answer.document()
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES and not is_delayed_lock(answer.status, document):
            raise errors.error_of(answer.status, document, answer.headers)
        return document

    def stream(self, stream: StreamState) -> Iterator[Frame]:
        """Frames of one connection of a stream; raises AnswerLost when it ends, because a stream has no end."""
        with self._sender.stream(stream.request(), SILENCE_SECONDS) as (answer, chunks):
            stream.check_answer(self._without_token(answer))
            for chunk in chunks:
                yield from stream.feed(chunk)
        raise AnswerLost("the stream ended")

    def _without_token(self, answer: Answer) -> Answer:
        """Remove our token from an answer, so that a server that echoes it does not make us print it."""
        if self.token is None:
            return answer
        return replace(answer, body=answer.body.replace(self.token.encode(), b"[REDACTED]"))


def server_of(given: str | None) -> str:
    """Address of the server: the flag, OCTOSTORE_URL, HOLDFAST_URL, or the default on this machine."""
    url = address_of(given or os.environ.get("OCTOSTORE_URL", "").strip())
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise BadAddress("the server must be http(s)://host[/path]")
    if parts.query or parts.fragment:
        raise BadAddress("the server's address must not have a query or fragment")
    return url


def check_encryption(server: str, *, allow_http: bool) -> None:
    """Refuse to send a secret over plain HTTP to another machine."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if parts.scheme == "http" and not (allow_http or host == "localhost" or is_loopback(host)):
        raise BadAddress("plain HTTP would expose a secret to the network: use https or --allow-insecure-http")


def read_token(server: str, *, is_named: bool) -> str:
    """The bearer token: a private file, stdin, the environment, or the configuration."""
    path = os.environ.get("OCTOSTORE_TOKEN_FILE")
    if path:
        token = sys.stdin.readline() if path == "-" else read_private(path)
    elif os.environ.get("OCTOSTORE_TOKEN"):
        print_message("holdfast: other processes may read a token in the environment; OCTOSTORE_TOKEN_FILE is safer")
        token = os.environ["OCTOSTORE_TOKEN"]
    else:
        token = _read_key(server, is_named=is_named)
    token = token.strip()
    if not token or any(character in token for character in "\r\n\0"):
        raise BadAddress("no token: set OCTOSTORE_TOKEN_FILE to a file with it, or set HOLDFAST_API_KEY")
    return token


def _read_key(server: str, *, is_named: bool) -> str:
    try:
        found = environment_key() or configured_key(server, is_named=is_named)
    except UnusableFile as error:
        raise BadAddress(str(error)) from error
    return "" if found is None else found.key
