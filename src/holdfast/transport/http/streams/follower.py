"""A follower: one who reads along, and what waits for them. They are cut if they read too slowly, never skipped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from holdfast.core.event import Event
from holdfast.core.event_filter import EventFilter

MAX_EVENTS = 256
MAX_BYTES = 1024 * 1024
SLICE_EVENTS = 256
SLICE_BYTES = 256 * 1024
"""What is handed out at once. A reader who has far to go takes slice after slice, and only one of them is in memory."""
LAST_SECONDS = 1.0
"""How long a stream that has ended may take over its last bytes."""


class Told:
    """An event that was read once, and its frame that was made once, for everybody."""

    __slots__ = ("event", "frame")

    def __init__(self, event: Event, frame: bytes) -> None:
        self.event = event
        self.frame = frame


class Batch:
    """Consecutive events that fit a filter. Everybody with that filter gets the very same one."""

    __slots__ = ("_chunk", "cursor", "size", "told")

    def __init__(self, told: list[Told], cursor: int) -> None:
        self.told = told
        self.cursor = cursor
        """Up to here nothing else fits."""
        self.size = sum(len(each.frame) for each in told)
        self._chunk: bytes | None = None

    @property
    def chunk(self) -> bytes:
        """All frames, joined when first asked for."""
        if self._chunk is None:
            self._chunk = b"".join(each.frame for each in self.told)
        return self._chunk

    def after(self, cursor: int) -> Batch:
        """The part that comes after a cursor."""
        if not self.told or self.told[0].event.seq > cursor:
            return self
        return Batch([each for each in self.told if each.event.seq > cursor], self.cursor)


class Follower:
    """Between the hub, which never waits, and a connection, which may.

    What is written to a connection that nobody reads fills the network's buffers first, then this one. A batch that
    finds too much still waiting ends the stream: the reader comes back and goes on from the last frame it saw. Nothing
    waits here for one who is still on the way to the end of the log.
    """

    def __init__(self, wants: EventFilter, abort: Callable[[], None], *, most: int = MAX_EVENTS) -> None:
        self.wants = wants
        self.cursor = 0
        """Up to here everything that fits was handed over."""
        self.spoke_at = time.monotonic()
        self._abort = abort
        self._most = most
        self._waiting: list[Batch] = []
        self._events = self._bytes = 0
        self._wake: asyncio.Future[None] | None = None
        self.over = False
        """Whether it gets no more than what waits for it."""
        self._error: Exception | None = None

    def offer(self, batch: Batch) -> None:
        """Hand over what comes next."""
        if self.over:
            return
        if self._events >= self._most or self._bytes >= MAX_BYTES:
            self.over = True
            self._abort()
            return
        batch = batch.after(self.cursor)
        self.cursor = max(self.cursor, batch.cursor)
        if batch.told:
            self._events += len(batch.told)
            self._bytes += batch.size
            self._put(batch)

    def beat(self, cursor: int) -> None:
        """Nothing has come for a while; up to there nothing will."""
        self.cursor = max(self.cursor, cursor)
        if not self.over and not self._waiting:
            self._put(Batch([], self.cursor))

    def end(self, error: Exception | None = None) -> None:
        """No more. A connection that does not take its last bytes is closed all the same."""
        if self.over:
            return
        self.over, self._error = True, error
        asyncio.get_running_loop().call_later(LAST_SECONDS, self._abort)
        self._rouse()

    async def take(self) -> list[Batch] | None:
        """What has come since, as soon as there is something; None when there will be no more."""
        if not self._waiting and not self.over:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        self.spoke_at = time.monotonic()
        if self._waiting:
            return self._slice()
        if self._error is not None:
            raise self._error
        return None

    def _slice(self) -> list[Batch]:
        count = size = 0
        while count < len(self._waiting) and size < SLICE_BYTES:
            size += self._waiting[count].size
            count += 1
        batches, self._waiting = self._waiting[:count], self._waiting[count:]
        self._events -= sum(len(batch.told) for batch in batches)
        self._bytes -= size
        return batches

    def _put(self, batch: Batch) -> None:
        self._waiting.append(batch)
        self._rouse()

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
