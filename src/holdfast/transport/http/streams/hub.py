"""The hub: all streams of this process, with one feed for each account that is followed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from holdfast.core.errors import CursorTooOld, Draining
from holdfast.core.event import Event
from holdfast.core.event_filter import is_election_event
from holdfast.core.log_gap import is_next
from holdfast.core.page import is_full
from holdfast.engine.change_signal import ChangeSignal
from holdfast.store.contract import Reader
from holdfast.telemetry import metric_names
from holdfast.telemetry.registry import Registry
from holdfast.transport.http.streams import frames
from holdfast.transport.http.streams.feed import PART, PART_BYTES, Feed
from holdfast.transport.http.streams.follower import SLICE_BYTES, SLICE_EVENTS, Batch, Follower, RenderedEvent

HEARTBEAT_SECONDS = 15.0
TICK_SECONDS = 1.0
BUFFER_BYTES = 16 * 1024 * 1024
"""Memory for the buffers of all feeds together."""
CATCHING_UP = 2
"""How many followers read the store at once to catch up."""

T = TypeVar("T")
Query = Callable[[Callable[[Reader], Any]], Awaitable[Any]]


class Hub:
    """Opens a feed with its first follower and closes it with its last."""

    def __init__(
        self, change_signal: ChangeSignal, query: Query, query_recent: Query, source: str, registry: Registry
    ) -> None:
        self._change_signal = change_signal
        self._query = query
        self._query_recent = query_recent
        self._source = source
        """The `source` of events: the same for every server of one address."""
        self._feeds: dict[str, asyncio.Task[Feed]] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._heartbeats: asyncio.Task[Any] | None = None
        self._catching_up = asyncio.Semaphore(CATCHING_UP)
        self._registry = registry

    def size(self) -> int:
        """How many streams are open."""
        return sum(feed.users for feed in self._open_feeds())

    async def follow(self, account: str, after: int, follower: Follower) -> AsyncGenerator[list[Batch], None]:
        """Every event after a cursor that matches the follower's filter, in batches, until the stream ends.

        A batch without events carries the follower's cursor. Raises CursorTooOld if the next event was removed.
        """
        feed = await self._get_feed(account)
        feed.enter(follower)
        self._registry.add(metric_names.STREAMS)
        try:
            has_joined = False
            while not (has_joined or follower.is_over):
                if after + 1 < feed.first:
                    batch = await self._read_slice(account, after, follower)
                else:
                    batch = feed.slice(after, follower.event_filter)
                    if has_joined := batch.cursor >= feed.last:
                        feed.join(follower, batch.cursor)  # no await may come between the slice and this line
                after = batch.cursor
                if batch.events or not has_joined:
                    yield [batch]
            while (batches := await follower.take()) is not None:
                yield batches
        finally:
            feed.leave(follower)
            self._registry.add(metric_names.STREAMS, by=-1)
            if not feed.users:
                feed.wake()

    async def _read_slice(self, account: str, after: int, follower: Follower) -> Batch:
        """A slice of the store for a follower that is catching up."""
        event_filter = follower.event_filter

        def read(reader: Reader) -> Batch:
            events, _ = read_page(reader, account, after, SLICE_EVENTS, SLICE_BYTES)
            if not events:
                raise CursorTooOld("the event log was removed", oldest=after + 1)
            return Batch([self._render(event) for event in events if event_filter.matches(event)], events[-1].seq)

        async with self._catching_up:
            return Batch([], after) if follower.is_over else await self._query(read)

    async def _get_feed(self, account: str) -> Feed:
        """The account's feed; the first caller opens it, and the others wait for that."""
        while not self._change_signal.draining:
            opening = self._feeds.get(account)
            if opening is None:
                opening = self._feeds[account] = self._start(self._open_feed(account))
            feed = await asyncio.shield(opening)
            if not feed.is_over:
                return feed
        raise Draining("this server is stopping and opens no new streams")

    async def _open_feed(self, account: str) -> Feed:
        try:
            _, last = await self._query(lambda reader: reader.log_bounds(account))
        except BaseException:
            del self._feeds[account]
            raise
        feed = Feed(account, last, self._change_signal, partial(self._read, account), self._buffer_share)
        self._start(self._run(feed))
        self._heartbeats = self._heartbeats or self._start(self._send_heartbeats())
        return feed

    async def _run(self, feed: Feed) -> None:
        try:
            await feed.run()
        finally:
            del self._feeds[feed.account]

    async def _read(self, account: str, after: int) -> tuple[list[RenderedEvent], bool]:
        """A rendered part of a page for a feed; and whether there may be more."""

        def read(reader: Reader) -> tuple[list[RenderedEvent], bool]:
            events, more = read_page(reader, account, after, PART, PART_BYTES)
            return [self._render(event) for event in events], more

        part: tuple[list[RenderedEvent], bool] = await self._query_recent(read)
        return part

    def _render(self, event: Event) -> RenderedEvent:
        return RenderedEvent(event, b"" if is_election_event(event) else frames.frame(event, self._source))

    async def _send_heartbeats(self) -> None:
        """Once a second, send a heartbeat to every stream that was silent for long."""
        while self._feeds:
            await asyncio.sleep(TICK_SECONDS)
            silent = time.monotonic() - HEARTBEAT_SECONDS
            for feed in self._open_feeds():
                if self._change_signal.draining or not feed.users:
                    feed.wake()
                for follower in feed.followers():
                    if follower.sent_at <= silent:
                        follower.heartbeat(feed.settled)
        self._heartbeats = None

    def _open_feeds(self) -> list[Feed]:
        return [feed.result() for feed in self._feeds.values() if feed.done() and feed.exception() is None]

    def _buffer_share(self) -> int:
        return BUFFER_BYTES // max(len(self._feeds), 1)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task and keep a reference: the event loop itself holds tasks only weakly."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def close(self) -> None:
        """Cancel all tasks."""
        for task in self._running:
            task.cancel()


def read_page(reader: Reader, account: str, after: int, limit: int, max_bytes: int) -> tuple[list[Event], bool]:
    """(Events right after a cursor, without a gap; whether there may be more).

    A page never crosses a gap that a restore left in the log.
    """
    page = reader.events(account, after, limit, max_bytes)
    if not page:
        floor, _ = reader.log_bounds(account)
        if after < floor:
            raise CursorTooOld(f"events up to {floor} were removed", oldest=floor + 1)
        return page, False
    if not is_next(page[0], after):
        raise CursorTooOld(f"events up to {page[0].seq - 1} were removed", oldest=page[0].seq)
    dense = [event for event in page if event.seq < page[0].seq + limit]
    return dense, len(dense) < len(page) or is_full(page, limit, max_bytes)
