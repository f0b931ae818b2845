"""Carries the client's requests with the standard library: a verb is done before a richer library is imported."""

from __future__ import annotations

import http.client
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.addresses import url_problem
from holdfast.client.client import Client
from holdfast.client.errors import Unreachable
from holdfast.client.request import Answer, Request
from holdfast.client.retry import Broken, Unsent

DEFAULT_URL = "http://127.0.0.1:7700"
PATIENCE = 10.0
"""Seconds for an answer, beyond the time that the request itself asks to wait."""
CONNECT_SECONDS = 5.0
MAX_ANSWER = 16 * 2**20
PIECE = 64 * 1024
_GOOD = 200


class BadAddress(Exception):
    """The address or the key cannot be used at all."""


def client_of(url: str | None, key: str | None) -> Client:
    """A client for one verb. A lost answer is asked for again; a server that is not there is not."""
    address = address_of(url)
    check_address(address, key)
    return Client(transport=Sender(address, key), timeout=PATIENCE, deadline=PATIENCE)


def address_of(url: str | None) -> str:
    return (url or os.environ.get("HOLDFAST_URL") or DEFAULT_URL).rstrip("/")


class Sender:
    """One connection a request. Redirects are not followed: they would carry the key elsewhere."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        head_seconds: float = PATIENCE,
        largest: int = MAX_ANSWER,
    ) -> None:
        self.url = url
        self._largest = largest
        self._parts = urlsplit(url)
        self._connect_seconds = connect_seconds
        self._head_seconds = head_seconds
        """For the head of a stream."""
        self._headers = {"user-agent": f"holdfast-cli/{__version__}"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt."""
        connection = self._connect(timeout)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise Unreachable(f"no answer from {self.url}: {error}") from error
            assert connection.sock is not None
            connection.sock.settimeout(timeout)
            target = self._parts.path + request.target
            connection.request(request.method, target, request.body or None, request.headers | self._headers)
            answer = connection.getresponse()
            body = answer.read(self._largest + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Broken(str(error) or type(error).__name__) from error
        finally:
            connection.close()
        if len(body) > self._largest:
            raise Unreachable(f"server response exceeded {self._largest} bytes", code="response_too_large")
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)

    @contextmanager
    def stream(self, request: Request, silence: float) -> Iterator[tuple[Answer, Iterator[bytes]]]:
        """One connection of a stream."""
        connection = self._connect(silence)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise Unsent(f"no answer from {self.url}: {error}") from error
            assert connection.sock is not None
            connection.sock.settimeout(self._head_seconds)
            line = connection.sock  # the connection lets go of it once an answer begins that has no length
            target = self._parts.path + request.target
            connection.request(request.method, target, None, request.headers | self._headers)
            answer = connection.getresponse()
            line.settimeout(silence)
            headers = {name.lower(): value for name, value in answer.getheaders()}
            if answer.status == _GOOD:
                yield Answer(answer.status, headers, b""), iter(partial(answer.read1, PIECE), b"")
            else:
                yield Answer(answer.status, headers, answer.read(self._largest)), iter(())
        except (OSError, http.client.HTTPException) as error:
            raise Broken(str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Nothing is kept open."""

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        timeout = min(timeout, self._connect_seconds)
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=timeout)
        trust = ssl.create_default_context(cafile=os.environ.get("HOLDFAST_CA_BUNDLE"))
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=trust)


def check_address(url: str, key: str | None) -> None:
    """A key must not travel where others can read it."""
    careless = os.environ.get("HOLDFAST_ALLOW_INSECURE_HTTP", "").lower() in {"1", "true"}
    looked_at = "https" + url.removeprefix("http") if url.startswith("http://") and (key is None or careless) else url
    problem = url_problem(looked_at)
    if problem is not None:
        raise BadAddress(f"the address {url}: {problem}")
