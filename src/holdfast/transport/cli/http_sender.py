"""HTTP transport of the command line, over the standard library: an HTTP library takes too long to import."""

from __future__ import annotations

import http.client
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

from holdfast import __version__
from holdfast.client.errors import Unreachable
from holdfast.client.request import Answer, Request
from holdfast.client.retry import AnswerLost, NotSent

ANSWER_SECONDS = 10.0
"""Limit for an answer, beyond the time that the request itself asks the server to wait."""
CONNECT_SECONDS = 5.0
MAX_ANSWER_BYTES = 16 * 2**20
CHUNK_BYTES = 64 * 1024


class HttpSender:
    """One connection for each request. Redirects are not followed, because they would send the key elsewhere."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        head_seconds: float = ANSWER_SECONDS,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.url = url
        self._max_bytes = max_bytes
        self._parts = urlsplit(url)
        self._connect_seconds = connect_seconds
        self._head_seconds = head_seconds
        """Limit for the head of a stream."""
        self._headers = {"user-agent": f"holdfast-cli/{__version__}"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt."""
        connection = self._connection(timeout)
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
            body = answer.read(self._max_bytes + 1)
        except (OSError, http.client.HTTPException) as error:
            raise AnswerLost(str(error) or type(error).__name__) from error
        finally:
            connection.close()
        if len(body) > self._max_bytes:
            raise Unreachable(f"server response exceeded {self._max_bytes} bytes", code="response_too_large")
        return Answer(answer.status, _headers(answer), body)

    @contextmanager
    def stream(self, request: Request, silence: float) -> Iterator[tuple[Answer, Iterator[bytes]]]:
        """One connection of a stream."""
        connection = self._connection(silence)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise NotSent(f"no answer from {self.url}: {error}") from error
            assert connection.sock is not None
            connection.sock.settimeout(self._head_seconds)
            sock = connection.sock  # kept: the connection drops its own reference when an answer has no length
            target = self._parts.path + request.target
            connection.request(request.method, target, None, request.headers | self._headers)
            answer = connection.getresponse()
            sock.settimeout(silence)
            if answer.status == HTTPStatus.OK:
                yield Answer(answer.status, _headers(answer), b""), iter(partial(answer.read1, CHUNK_BYTES), b"")
            else:
                yield Answer(answer.status, _headers(answer), answer.read(self._max_bytes)), iter(())
        except (OSError, http.client.HTTPException) as error:
            raise AnswerLost(str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Do nothing: no connection outlives its request."""

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        timeout = min(timeout, self._connect_seconds)
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=timeout)
        trust = ssl.create_default_context(cafile=os.environ.get("HOLDFAST_CA_BUNDLE"))
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=trust)


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}
