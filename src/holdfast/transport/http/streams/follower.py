"""A follower: the buffer between a feed and one open stream.

A reader that is too slow is disconnected; events are never skipped.
"""

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
"""The most that is handed out at once. A reader far behind gets slice after slice, with one of them in memory."""
LAST_BYTES_SECONDS = 1.0
"""How long an ended stream may take to read its last bytes."""


class RenderedEvent:
    """An event and its frame, which is rendered once for all followers."""

    __slots__ = ("event", "frame")

    def __init__(self, event: Event, frame: bytes) -> None:
        self.event = event
        self.frame = frame


class Batch:
    """Consecutive events that match a filter; all followers with that filter share it."""

    __slots__ = ("_chunk", "cursor", "events", "size")

    def __init__(self, events: list[RenderedEvent], cursor: int) -> None:
        self.events = events
        self.cursor = cursor
        """Up to here no other event matches."""
        self.size = sum(len(each.frame) for each in events)
        self._chunk: bytes | None = None

    @property
    def chunk(self) -> bytes:
        """All frames, joined at the first use."""
        if self._chunk is None:
            self._chunk = b"".join(each.frame for each in self.events)
        return self._chunk

    def after(self, cursor: int) -> Batch:
        """The part that comes after a cursor."""
        if not self.events or self.events[0].event.seq > cursor:
            return self
        return Batch([each for each in self.events if each.event.seq > cursor], self.cursor)


class Follower:
    """The buffer between a feed, which never waits, and a connection, which may be slow.

    What a reader does not read fills the network's buffers first, then this one. A batch that finds this buffer full
    ends the stream; the reader reconnects and continues after the last frame it saw. A reader that is still catching
    up with the log has nothing in this buffer.
    """

    def __init__(self, event_filter: EventFilter, abort: Callable[[], None], *, max_events: int = MAX_EVENTS) -> None:
        self.event_filter = event_filter
        self.cursor = 0
        """Up to here every matching event was handed over."""
        self.sent_at = time.monotonic()
        self._abort = abort
        self._max_events = max_events
        self._buffered: list[Batch] = []
        self._events = self._bytes = 0
        self._wake: asyncio.Future[None] | None = None
        self.is_over = False
        """Whether it gets nothing beyond what is buffered."""
        self._error: Exception | None = None

    def offer(self, batch: Batch) -> None:
        """Add the next batch to the buffer, or end a stream whose buffer is full."""
        if self.is_over:
            return
        if self._events >= self._max_events or self._bytes >= MAX_BYTES:
            self.is_over = True
            self._abort()
            return
        batch = batch.after(self.cursor)
        self.cursor = max(self.cursor, batch.cursor)
        if batch.events:
            self._events += len(batch.events)
            self._bytes += batch.size
            self._append(batch)

    def heartbeat(self, cursor: int) -> None:
        """Send a batch without events: up to the cursor there are none."""
        self.cursor = max(self.cursor, cursor)
        if not self.is_over and not self._buffered:
            self._append(Batch([], self.cursor))

    def end(self, error: Exception | None = None) -> None:
        """End the stream. A connection that does not read its last bytes is closed after a second."""
        if self.is_over:
            return
        self.is_over, self._error = True, error
        asyncio.get_running_loop().call_later(LAST_BYTES_SECONDS, self._abort)
        self._notify()

    async def take(self) -> list[Batch] | None:
        """The buffered batches, as soon as there is one; None at the end of the stream."""
        if not self._buffered and not self.is_over:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        self.sent_at = time.monotonic()
        if self._buffered:
            return self._take_slice()
        if self._error is not None:
            raise self._error
        return None

    def _take_slice(self) -> list[Batch]:
        count = size = 0
        while count < len(self._buffered) and size < SLICE_BYTES:
            size += self._buffered[count].size
            count += 1
        batches, self._buffered = self._buffered[:count], self._buffered[count:]
        self._events -= sum(len(batch.events) for batch in batches)
        self._bytes -= size
        return batches

    def _append(self, batch: Batch) -> None:
        self._buffered.append(batch)
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
