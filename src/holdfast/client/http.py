"""HTTP transports of both clients, over a pool of connections."""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from typing import Any

import httpx2

from holdfast.client.forks import call_after_fork
from holdfast.client.request import Answer, Request
from holdfast.client.retry import AnswerLost, NotSent
from holdfast.server_keys import FoundKey, address_of, configured_key, environment_key

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 60.0
"""Shorter than the server keeps an idle connection, so that we rarely use one that it has just closed."""

_CONNECT_ERRORS = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


def server_url(url: str | None) -> str:
    """Address of the server: as given, else HOLDFAST_URL, else the default on this machine."""
    address = address_of(url)
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"the server's address must begin with http:// or https://, not {address!r}")
    return address


def find_key(url: str | None) -> FoundKey | None:
    """The key where none is given: HOLDFAST_API_KEY, else the user's configuration.

    Unlike the command line, a library opens no keyring, which may ask a person.
    """
    return environment_key() or configured_key(server_url(url), is_named=url is not None)


def auth_headers(key: str | None, url: str | None = None) -> dict[str, str]:
    """The Authorization header: the key as given or found; empty without one, as elections need none."""
    found = FoundKey(key, "argument") if key else find_key(url)
    return {} if found is None else {"authorization": f"Bearer {found.key}"}


def _settings(url: str | None, key: str | None) -> dict[str, Any]:
    """Settings of both HTTP clients.

    Certificates are loaded once, also if a fork needs new connections, and not for plain HTTP: loading them takes
    longer than most calls.
    """
    base_url = server_url(url)
    limits = httpx2.Limits(max_connections=None, keepalive_expiry=IDLE_SECONDS)
    return {
        "base_url": base_url,
        "headers": auth_headers(key, url),
        "limits": limits,
        "verify": False if base_url.startswith("http://") else httpx2.create_ssl_context(),
    }


def _timeout(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))


def _answer(response: httpx2.Response) -> Answer:
    return Answer(
        response.status_code, {name.lower(): value for name, value in response.headers.items()}, response.content
    )


class HttpTransport:
    """Transport of `Client`."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self._begin(_settings(url, key))

    def _begin(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.after_fork()
        call_after_fork(self)

    def after_fork(self) -> None:
        """Begin without connections and requests: those of the parent stay the parent's."""
        self._http = httpx2.Client(**self._settings)
        self._streams: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._sending = 0
        """Requests under way."""
        self._is_closed = False

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt."""
        with self._lock:
            if self._is_closed:
                raise NotSent("the connections were closed")
            self._sending += 1
        try:
            with _translate_errors():
                return _answer(
                    self._http.request(
                        request.method,
                        request.target,
                        headers=request.headers,
                        content=request.body,
                        timeout=_timeout(timeout),
                        extensions=self._extensions(),
                    )
                )
        finally:
            with self._lock:
                self._sending -= 1
            self._close_if_idle()

    def _extensions(self) -> dict[str, Any] | None:
        """Extensions of the HTTP library that every request gets."""
        return None

    @contextmanager
    def stream(self, request: Request, silence: float) -> Iterator[tuple[Answer, Iterator[bytes]]]:
        """One connection of a stream."""
        with (
            _translate_errors(),
            self._http.stream(
                request.method, request.target, headers=request.headers, timeout=_timeout(silence)
            ) as response,
        ):
            if response.status_code != HTTPStatus.OK:
                response.read()
                yield _answer(response), iter(())
                return
            sock: socket.socket = response.extensions["network_stream"].get_extra_info("socket")
            self._streams.add(sock)
            try:
                yield _head(response), _own_chunks(response, os.getpid())
            finally:
                self._streams.discard(sock)

    def separate(self) -> SeparateHttpTransport:
        """A transport to the same server with connections of its own."""
        return SeparateHttpTransport(self._settings)

    def close(self) -> None:
        """End streams and close all connections, after the requests under way.

        Stream sockets are shut down first: that alone wakes a thread that reads from one. The last request closes the
        connections, because one that is being opened would stay open.
        """
        with self._lock:
            self._is_closed = True
        _shut_down(self._streams)
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        with self._lock:
            is_idle = self._is_closed and self._sending == 0
        if is_idle:
            self._http.close()


class SeparateHttpTransport(HttpTransport):
    """Transport whose `close` ends all its requests at once, because it knows the sockets that they wait for."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._begin(settings)

    def after_fork(self) -> None:
        """Begin without connections and requests."""
        super().after_fork()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def close(self) -> None:
        """End all requests and close all connections."""
        with self._lock:
            self._is_closed = True
            _shut_down(self._sockets)
        self._close_if_idle()

    def _extensions(self) -> dict[str, Any]:
        return {"trace": self._record_socket}

    def _record_socket(self, event: str, info: dict[str, Any]) -> None:
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            sock = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._sockets.add(sock)
                if self._is_closed:
                    _shut_down([sock])


class AsyncHttpTransport:
    """Transport of `AsyncClient`."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self._settings = _settings(url, key)
        self._http = httpx2.AsyncClient(**self._settings)
        call_after_fork(self)

    def after_fork(self) -> None:
        """Leave the connections to the parent: this child makes its own."""
        self._http = httpx2.AsyncClient(**self._settings)

    async def send(self, request: Request, timeout: float) -> Answer:
        """One attempt."""
        with _translate_errors():
            return _answer(
                await self._http.request(
                    request.method,
                    request.target,
                    headers=request.headers,
                    content=request.body,
                    timeout=_timeout(timeout),
                )
            )

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """One connection of a stream."""
        with _translate_errors():
            async with self._http.stream(
                request.method, request.target, headers=request.headers, timeout=_timeout(silence)
            ) as response:
                if response.status_code != HTTPStatus.OK:
                    await response.aread()
                    yield _answer(response), _no_chunks()
                else:
                    yield _head(response), _own_async_chunks(response, os.getpid())

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


def _shut_down(sockets: Iterable[socket.socket]) -> None:
    for sock in list(sockets):
        with suppress(OSError):
            # `SSLSocket.shutdown` ends the encryption first: a thread that sends meanwhile would send in clear text.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _own_chunks(response: httpx2.Response, owner: int) -> Iterator[bytes]:
    """The body, for the process that opened the stream: a child that read on would take data from its parent."""
    chunks = response.iter_raw()
    while os.getpid() == owner:
        chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk
    raise AnswerLost("this stream was opened by the parent process")


async def _own_async_chunks(response: httpx2.Response, owner: int) -> AsyncIterator[bytes]:
    """The same for asyncio."""
    chunks = response.aiter_raw()
    while os.getpid() == owner:
        chunk = await anext(chunks, None)
        if chunk is None:
            return
        yield chunk
    raise AnswerLost("this stream was opened by the parent process")


def _head(response: httpx2.Response) -> Answer:
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, b"")


async def _no_chunks() -> AsyncIterator[bytes]:
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise errors of the HTTP library as NotSent or AnswerLost."""
    try:
        yield
    except _CONNECT_ERRORS as error:
        raise NotSent(_message(error)) from error
    except (httpx2.TransportError, httpx2.StreamError, OSError) as error:
        raise AnswerLost(_message(error)) from error


def _message(error: Exception) -> str:
    return str(error) or type(error).__name__
