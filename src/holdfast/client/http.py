"""Sends requests over HTTP and keeps its connections. What to make of answers is decided elsewhere."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import httpx2

from holdfast.client.request import Answer, Request
from holdfast.client.retry import Broken, Unsent

HOME = "http://127.0.0.1:7700"
CONNECT_SECONDS = 5.0
IDLE_SECONDS = 60.0
"""Shorter than the server keeps a connection, so that we rarely write into one that it has just closed."""

_GOOD = 200
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


def address(url: str | None) -> str:
    """Where the server is: as told, or as the environment says, or on this machine."""
    found = (url or os.environ.get("HOLDFAST_URL") or HOME).rstrip("/")
    if not found.startswith(("http://", "https://")):
        raise ValueError(f"a server's address begins with http:// or https://, but this is {found!r}")
    return found


def credentials(key: str | None) -> dict[str, str]:
    """Who we are: as told, or as the environment says; elections need nobody."""
    found = key or os.environ.get("HOLDFAST_API_KEY")
    return {"authorization": f"Bearer {found}"} if found else {}


def _settings(url: str | None, key: str | None) -> dict[str, Any]:
    """What both kinds of client are made with.

    Reading every certificate authority takes longer than most calls; over plain HTTP nobody would ask them.
    """
    home = address(url)
    limits = httpx2.Limits(max_connections=None, keepalive_expiry=IDLE_SECONDS)
    return {"base_url": home, "headers": credentials(key), "limits": limits, "verify": not home.startswith("http://")}


def _patience(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))


def _answer(response: httpx2.Response) -> Answer:
    return Answer(
        response.status_code, {name.lower(): value for name, value in response.headers.items()}, response.content
    )


class HttpTransport:
    """For plain programs and threads."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self._http = httpx2.Client(**_settings(url, key))
        self._streams: set[socket.socket] = set()

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt."""
        with _told():
            return _answer(
                self._http.request(
                    request.method,
                    request.target,
                    headers=request.headers,
                    content=request.body,
                    timeout=_patience(timeout),
                )
            )

    @contextmanager
    def stream(self, request: Request, silence: float) -> Iterator[tuple[Answer, Iterator[bytes]]]:
        """One connection of a stream."""
        with (
            _told(),
            self._http.stream(
                request.method, request.target, headers=request.headers, timeout=_patience(silence)
            ) as response,
        ):
            if response.status_code != _GOOD:
                response.read()
                yield _answer(response), iter(())
                return
            line: socket.socket = response.extensions["network_stream"].get_extra_info("socket")
            self._streams.add(line)
            try:
                yield _head(response), response.iter_raw()
            finally:
                self._streams.discard(line)

    def close(self) -> None:
        """Let the connections go. A thread that reads from a socket wakes only when the socket is shut down."""
        for line in list(self._streams):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self._http.close()


class AsyncHttpTransport:
    """The same for programs with an event loop."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self._http = httpx2.AsyncClient(**_settings(url, key))

    async def send(self, request: Request, timeout: float) -> Answer:  # noqa: ASYNC109 - httpx2 does the timing
        """One attempt."""
        with _told():
            return _answer(
                await self._http.request(
                    request.method,
                    request.target,
                    headers=request.headers,
                    content=request.body,
                    timeout=_patience(timeout),
                )
            )

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """One connection of a stream."""
        with _told():
            async with self._http.stream(
                request.method, request.target, headers=request.headers, timeout=_patience(silence)
            ) as response:
                if response.status_code != _GOOD:
                    await response.aread()
                    yield _answer(response), _nothing()
                else:
                    yield _head(response), response.aiter_raw()

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()


def _head(response: httpx2.Response) -> Answer:
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, b"")


async def _nothing() -> AsyncIterator[bytes]:
    no_pieces: tuple[bytes, ...] = ()
    for piece in no_pieces:
        yield piece


@contextmanager
def _told() -> Iterator[None]:
    """Tell what went wrong on the way in our own words."""
    try:
        yield
    except _UNSENT as error:
        raise Unsent(_said(error)) from error
    except (httpx2.TransportError, httpx2.StreamError, OSError) as error:
        raise Broken(_said(error)) from error


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
