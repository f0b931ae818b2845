"""DNS lookups on daemon threads, with limits per webhook and per account.

The system's resolver cannot be interrupted: a lookup that hangs holds its thread for longer than any attempt lasts. So
every lookup has its own thread, a webhook and an account can have only a few of them, and shutdown does not wait.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

from holdfast.core.webhooks.delivery import WebhookKey

PER_HOOK, PER_ACCOUNT, IN_ALL = 2, 16, 256
"""Lookups that run at once: for one webhook, for one account, and in one server."""

CURRENT_WEBHOOK: ContextVar[WebhookKey] = ContextVar("CURRENT_WEBHOOK", default=("", ""))
"""The webhook of the attempt in progress: the HTTP library calls the resolver without it."""


class NoSuchHost(Exception):
    """A host name has no address."""


class Resolver:
    """Resolves host names within the limits."""

    def __init__(self) -> None:
        self._limits: WeakValueDictionary[tuple[str, ...], asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, host: str, port: int) -> list[str]:
        """Every address of a host name, from the system's resolver."""
        account, _ = hook = CURRENT_WEBHOOK.get()
        limits = [self._limit(hook, PER_HOOK), self._limit((account,), PER_ACCOUNT), self._limit((), IN_ALL)]
        acquired: list[asyncio.Semaphore] = []
        try:
            for limit in limits:
                await limit.acquire()
                acquired.append(limit)
            answer = _start_lookup(host, port)
        except BaseException:
            _release(acquired)
            raise
        answer.add_done_callback(lambda _: _release(acquired))
        # An attempt that times out does not end its lookup, which counts against the limits until it is answered.
        found = await asyncio.shield(answer)
        if isinstance(found, OSError):
            raise NoSuchHost
        return found

    def _limit(self, key: tuple[str, ...], size: int) -> asyncio.Semaphore:
        limit = self._limits.get(key)
        if limit is None:
            self._limits[key] = limit = asyncio.Semaphore(size)
        return limit


def _release(limits: list[asyncio.Semaphore]) -> None:
    for limit in limits:
        limit.release()


def _start_lookup(host: str, port: int) -> asyncio.Future[list[str] | OSError]:
    """Start a lookup on a new daemon thread."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str] | OSError] = loop.create_future()

    def look_up() -> None:
        found: list[str] | OSError
        try:
            found = _addresses(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found = error if isinstance(error, OSError) else OSError()
        try:
            loop.call_soon_threadsafe(_set_result, answer, found)
        except RuntimeError:  # the event loop has been closed
            return

    threading.Thread(target=look_up, name="holdfast-webhook-lookup", daemon=True).start()
    return answer


def _set_result(answer: asyncio.Future[list[str] | OSError], found: list[str] | OSError) -> None:
    if not answer.done():
        answer.set_result(found)


def _addresses(found: list[Any]) -> list[str]:
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
