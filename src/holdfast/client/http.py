"""Sends requests over HTTP and keeps its connections. What to make of answers is decided elsewhere."""

from __future__ import annotations

import os
from typing import Any

import httpx2

from holdfast.client.retry import Broken, Unsent
from holdfast.client.wire import Answer, Request

HOME = "http://127.0.0.1:7700"
CONNECT_SECONDS = 5.0
IDLE_SECONDS = 60.0
"""Shorter than the server keeps a connection, so that we rarely write into one that it has just closed."""

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

    def send(self, request: Request, timeout: float) -> Answer:
        """One attempt."""
        try:
            return _answer(
                self._http.request(
                    request.method,
                    request.target,
                    headers=request.headers,
                    content=request.body,
                    timeout=_patience(timeout),
                )
            )
        except _UNSENT as error:
            raise Unsent(_said(error)) from error
        except httpx2.TransportError as error:
            raise Broken(_said(error)) from error

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()


class AsyncHttpTransport:
    """The same for programs with an event loop."""

    def __init__(self, url: str | None, key: str | None) -> None:
        self._http = httpx2.AsyncClient(**_settings(url, key))

    async def send(self, request: Request, timeout: float) -> Answer:  # noqa: ASYNC109 - httpx2 does the timing
        """One attempt."""
        try:
            return _answer(
                await self._http.request(
                    request.method,
                    request.target,
                    headers=request.headers,
                    content=request.body,
                    timeout=_patience(timeout),
                )
            )
        except _UNSENT as error:
            raise Unsent(_said(error)) from error
        except httpx2.TransportError as error:
            raise Broken(_said(error)) from error

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
