"""Answers that their callers do not read: they are counted by account, and their connections are closed in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from holdfast.core.errors import Overloaded
from holdfast.transport.http.overload.byte_budget import ByteBudget
from holdfast.transport.http.request import Request, Send

DRAINED = "holdfast.drained"
"""Key of the ASGI scope: waits until the connection has sent most of what was written to it."""
COUNTED_BYTES = 64 * 1024
"""Answers up to this size are not counted: a connection holds about as much in any case."""
WRITE_SECONDS = 30.0
"""A connection must take `LEAST_READ` bytes in this time, or all that is left. Otherwise it is closed."""
LEAST_READ = 64 * 1024


class ReadingWatch:
    """Closes a connection whose peer reads too slowly, or not at all."""

    __slots__ = ("_loop", "_timer", "_transport", "_unsent")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def begin(self) -> None:
        """Watch until everything that was written is sent."""
        if self._timer is None:
            self._unsent = self._transport.get_write_buffer_size()
            self._timer = self._loop.call_later(WRITE_SECONDS, self._check)

    def stop(self) -> None:
        """Stop watching: the connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        unsent = self._transport.get_write_buffer_size()
        if unsent == 0:
            return
        if unsent > self._unsent - LEAST_READ:
            self._transport.abort()
        else:
            self.begin()


class UnreadAnswers:
    """Counts the bytes of large answers from when they are rendered until they are sent."""

    def __init__(self, total: int) -> None:
        self._budget = ByteBudget(total)

    @property
    def size(self) -> int:
        """How many bytes are counted now."""
        return self._budget.used

    def check(self, request: Request, size: int) -> None:
        """Refuse to answer a read with one more answer of this size, if the caller or all callers have too many."""
        is_read = request.scope["method"] == "GET"  # after a write, a refusal would hide that it was done
        if is_read and not self._budget.fits(_owner(request), size):
            raise Overloaded("too many bytes of earlier answers are unread: read them, then send this request again")

    async def send(self, request: Request, message: MutableMapping[str, Any], send: Send) -> None:
        """Send a part of an answer; a large one is counted until the connection has taken it."""
        size = len(message.get("body", b""))
        if size <= COUNTED_BYTES:
            await send(message)
            return
        owner = _owner(request)
        self._budget.add(owner, size)
        try:
            await send(message)
            del message  # the connection has what it still needs
            drained: Callable[[], Awaitable[None]] = request.scope.get(DRAINED, _is_drained)
            await drained()
        finally:
            self._budget.give_back(owner, size)


def _owner(request: Request) -> str:
    return request.principal.account if request.principal else ""


async def _is_drained() -> None:
    """A caller in this process takes everything at once."""
