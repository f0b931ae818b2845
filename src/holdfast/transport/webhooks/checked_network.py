"""Connections to receivers: only to addresses that were checked, each time anew.

A name is resolved once for a connection, all its addresses are checked, and the connection goes to one of those very
addresses: nobody can answer the check with one address and the connection with another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpcore2

from holdfast.core.webhooks.destination import is_public
from holdfast.transport.webhooks.dns import NoSuchHost

Resolve = Callable[[str, int], Awaitable[list[str]]]


class NotPublic(Exception):
    """A name leads, or also leads, to where webhooks may not go."""


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """What httpcore connects through. Everything above it (TLS, Host) still goes by the name."""

    def __init__(self, resolve: Resolve, *, private: bool) -> None:
        self._resolve = resolve
        self._private = private
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as httpcore has it
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve, check every address, then connect to the first that takes us."""
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
        return await self._inner.connect_tcp(address, port, *more)

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        """Never: this leads to this machine."""
        raise NotPublic

    async def sleep(self, seconds: float) -> None:
        """Wait; httpcore asks for it between tries of its own, of which it makes none here."""
        await asyncio.sleep(seconds)
