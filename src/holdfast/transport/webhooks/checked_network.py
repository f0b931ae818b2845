"""Network backend that connects only to checked addresses (protection against SSRF and DNS rebinding).

A name is resolved once per connection, all its addresses are checked, and the connection goes to one of them: a DNS
server cannot give one address to the check and another to the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpcore2

from holdfast.core.webhooks.destination import is_public
from holdfast.transport.webhooks.dns import NoSuchHost

MAX_ANSWER_BYTES = 64 * 1024
"""Bytes read of an answer. Its status and headers must fit; the body is not read."""

Resolve = Callable[[str, int], Awaitable[list[str]]]


class NotPublic(Exception):
    """A host name has an address that webhooks may not connect to."""


class AnswerTooLong(Exception):
    """A receiver sends more than the head of an answer may have."""


class BoundedStream(httpcore2.AsyncNetworkStream):
    """A connection from which only so many bytes are read: a receiver must not keep this server busy with headers."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self._unread = MAX_ANSWER_BYTES

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        """The next bytes. The answer is not read beyond its head, so a long body never comes here twice."""
        if self._unread <= 0:
            raise AnswerTooLong
        data = await self._inner.read(min(max_bytes, self._unread), timeout)
        self._unread -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's signature
        """Send bytes."""
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    async def start_tls(self, *arguments: Any, **more: Any) -> httpcore2.AsyncNetworkStream:
        """Encrypt the connection; the bound is on what is decrypted."""
        return BoundedStream(await self._inner.start_tls(*arguments, **more))

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks about the socket."""
        return self._inner.get_extra_info(info)


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """The network backend of httpcore. TLS and the Host header still use the name."""

    def __init__(self, resolve: Resolve, *, private: bool) -> None:
        self._resolve = resolve
        self._private = private
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve the name, check every address, then connect to the first one that accepts."""
        async with asyncio.timeout(timeout):
            addresses = await self._resolve(host, port)
            if not addresses:
                raise NoSuchHost
            if not self._private and not all(map(is_public, addresses)):
                raise NotPublic
            for address in addresses[:-1]:
                try:
                    return await self._connect(address, port, timeout, local_address, socket_options)
                except httpcore2.ConnectError:
                    continue
            return await self._connect(addresses[-1], port, timeout, local_address, socket_options)

    async def _connect(self, address: str, port: int, *more: Any) -> httpcore2.AsyncNetworkStream:
        return BoundedStream(await self._inner.connect_tcp(address, port, *more))

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        """Refused: a Unix socket leads to this machine."""
        raise NotPublic

    async def sleep(self, seconds: float) -> None:
        """Part of httpcore's interface, for its retries; this pool makes none."""
        await asyncio.sleep(seconds)
