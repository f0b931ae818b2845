"""The hub: everybody in this process who follows a log, on one feed for each account."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from holdfast.core.errors import CursorTooOld, Draining
from holdfast.core.event import Event
from holdfast.core.event_filter import is_election_event
from holdfast.core.event_page import is_full
from holdfast.core.log_gap import is_next
from holdfast.engine.change_signal import ChangeSignal
from holdfast.store.contract import Reader
from holdfast.telemetry import metric_names
from holdfast.telemetry.registry import Registry
from holdfast.transport.http.streams import frames
from holdfast.transport.http.streams.feed import PAGE, PAGE_BYTES, Feed
from holdfast.transport.http.streams.follower import SLICE_BYTES, SLICE_EVENTS, Batch, Follower, Told

BEAT_SECONDS = 15.0
TICK_SECONDS = 1.0
RING_BYTES = 16 * 1024 * 1024
"""What all rings together may hold."""
CATCHING_UP = 2
"""How many read the store at once on their way to the ring."""

T = TypeVar("T")
Look = Callable[[Callable[[Reader], Any]], Awaitable[Any]]


class Hub:
    """Feeds come with their first follower and go with their last."""

    def __init__(self, change_signal: ChangeSignal, look: Look, source: str, board: Registry) -> None:
        self._change_signal = change_signal
        self._look = look
        self._source = source
        """What events name as theirs: the same for every server of one address."""
        self._feeds: dict[str, asyncio.Task[Feed]] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self._ticking: asyncio.Task[Any] | None = None
        self._catching_up = asyncio.Semaphore(CATCHING_UP)
        self._board = board

    def size(self) -> int:
        """How many streams are open."""
        return sum(feed.users for feed in self._open())

    async def follow(self, account: str, after: int, follower: Follower) -> AsyncGenerator[list[Batch], None]:
        """Everything after a cursor that the follower wants, batch by batch, until one of both ends it.

        A batch without events says how far the follower has come. CursorTooOld is raised where retention was faster.
        """
        feed = await self._feed(account)
        feed.enter(follower)
        self._board.add(metric_names.STREAMS)
        try:
            has_joined = False
            while not (has_joined or follower.over):
                if after + 1 < feed.first:
                    batch = await self._page(account, after, follower)
                else:
                    batch = feed.slice(after, follower.wants)
                    if has_joined := batch.cursor >= feed.last:
                        feed.join(follower, batch.cursor)  # nothing may happen between the slice and this line
                after = batch.cursor
                if batch.told or not has_joined:
                    yield [batch]
            while (batches := await follower.take()) is not None:
                yield batches
        finally:
            feed.leave(follower)
            self._board.add(metric_names.STREAMS, by=-1)
            if not feed.users:
                feed.wake()

    async def _page(self, account: str, after: int, follower: Follower) -> Batch:
        """A slice of the store for somebody on the way to the ring."""
        wants = follower.wants

        def look(reader: Reader) -> Batch:
            events, _ = read_page(reader, account, after, SLICE_EVENTS, SLICE_BYTES)
            if not events:
                raise CursorTooOld("the log has been removed", oldest=after + 1)
            return Batch([self._told(event) for event in events if wants.matches(event)], events[-1].seq)

        async with self._catching_up:
            return Batch([], after) if follower.over else await self._look(look)

    async def _feed(self, account: str) -> Feed:
        """The account's feed; whoever comes first opens it, and all others wait for that."""
        while not self._change_signal.draining:
            opening = self._feeds.get(account)
            if opening is None:
                opening = self._feeds[account] = self._keep(self._opened(account))
            feed = await asyncio.shield(opening)
            if not feed.over:
                return feed
        raise Draining("no new streams")

    async def _opened(self, account: str) -> Feed:
        try:
            _, last = await self._look(lambda reader: reader.log_bounds(account))
        except BaseException:
            del self._feeds[account]
            raise
        feed = Feed(account, last, self._change_signal, partial(self._read, account), self._ring_share)
        self._keep(self._run(feed))
        self._ticking = self._ticking or self._keep(self._tick())
        return feed

    async def _run(self, feed: Feed) -> None:
        try:
            await feed.run()
        finally:
            del self._feeds[feed.account]

    async def _read(self, account: str, after: int) -> tuple[list[Told], bool]:
        """A page for a feed, decoded and rendered in a reader's thread; and whether there may be more."""

        def look(reader: Reader) -> tuple[list[Told], bool]:
            events, more = read_page(reader, account, after, PAGE, PAGE_BYTES)
            return [self._told(event) for event in events], more

        page: tuple[list[Told], bool] = await self._look(look)
        return page

    def _told(self, event: Event) -> Told:
        return Told(event, b"" if is_election_event(event) else frames.frame(event, self._source))

    async def _tick(self) -> None:
        """Once a second: who has heard nothing for long is told that all is well."""
        while self._feeds:
            await asyncio.sleep(TICK_SECONDS)
            silent = time.monotonic() - BEAT_SECONDS
            for feed in self._open():
                if self._change_signal.draining or not feed.users:
                    feed.wake()
                for follower in feed.followers():
                    if follower.spoke_at <= silent:
                        follower.beat(feed.settled)
        self._ticking = None

    def _open(self) -> list[Feed]:
        return [feed.result() for feed in self._feeds.values() if feed.done() and feed.exception() is None]

    def _ring_share(self) -> int:
        return RING_BYTES // max(len(self._feeds), 1)

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """The loop itself holds its tasks only weakly."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def close(self) -> None:
        """End what still runs."""
        for task in self._running:
            task.cancel()


def read_page(reader: Reader, account: str, after: int, limit: int, most: int) -> tuple[list[Event], bool]:
    """What follows a cursor, right after it and without a gap; and whether there may be more.

    Where a restore has cut the log, a page begins.
    """
    page = reader.events(account, after, limit, most)
    if not page:
        floor, _ = reader.log_bounds(account)
        if after < floor:
            raise CursorTooOld(f"events up to {floor} are gone", oldest=floor + 1)
        return page, False
    if not is_next(page[0], after):
        raise CursorTooOld(f"events up to {page[0].seq - 1} are gone", oldest=page[0].seq)
    dense = [event for event in page if event.seq < page[0].seq + limit]
    return dense, len(dense) < len(page) or is_full(page, limit, most)
