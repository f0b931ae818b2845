"""A feed: follows the event log of one account and passes each event to every follower of that account.

Each event is read and rendered once. Followers with the same filter share one batch, and filters on one subject are
found by that subject, so a thousand followers of a hundred subjects cost a hundred batches and a thousand writes.

Why no follower misses an event or gets one twice:

- `seq` has no gaps except where a restore cut the log; there a page begins and the buffer is cleared. A page that does
  not continue the feed's own end is refused. So the buffer holds every event from `first` to `last`.
- Adding a page to the buffer, moving `last` and choosing the followers of each event happen without an await, so the
  event loop runs nothing in between. A follower joins either before the page, and gets it from the feed, or after it,
  and got it from the buffer.
- A new follower catches up in slices: from the store while its cursor lies before the buffer, then from the buffer,
  each read only when the previous one was sent. If the buffer moved on in the meantime, it reads from the store again.
- Taking the slice that reaches the end of the buffer and joining also happen without an await, so nothing lies between
  that slice and the follower's first batch. A follower that read the store further than the feed drops from its first
  batches what it has.
- `settled` follows `last` once every follower has received its batch; heartbeats announce only that cursor.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, islice

from holdfast.core.errors import CursorTooOld, HoldfastError
from holdfast.core.event_filter import EventFilter
from holdfast.engine.change_signal import ChangeSignal, account_log_key
from holdfast.transport.http.streams.follower import SLICE_BYTES, SLICE_EVENTS, Batch, Follower, RenderedEvent

PAGE, PAGE_BYTES = 500, 1024 * 1024
"""How much of the log is distributed at once."""
PART, PART_BYTES = 32, 128 * 1024
PART_PAUSE = 0.003
"""How much of it is read and rendered at once, and the seconds for other work before the next part."""
BUFFER_EVENTS = 4096
FOLLOWERS_AT_ONCE = 8
"""Followers served before the event loop may run other work."""
PAUSE_SECONDS = 0.0004
MAX_PAUSE = 0.5
"""Pause after each write, and after one page: under load events are sent together, at most 2,500 writes a second."""
RETRY_SECONDS = 1.0

ReadPage = Callable[[int], Awaitable[tuple[list[RenderedEvent], bool]]]
"""Reads what follows a cursor: (events, whether there may be more)."""
Group = dict[Follower, None]

log = logging.getLogger("holdfast.http")


class Feed:
    """The newest events of one account, and its followers."""

    def __init__(
        self, account: str, last: int, change_signal: ChangeSignal, read: ReadPage, buffer_bytes: Callable[[], int]
    ) -> None:
        self.account = account
        self.last = self.settled = last
        self.is_over = False
        self._buffer: deque[RenderedEvent] = deque()
        self._bytes = 0
        self._buffer_bytes = buffer_bytes
        self._change_signal = change_signal
        self._read = read
        self._users: Group = {}
        self._exact: dict[str, dict[EventFilter, Group]] = {}
        self._broad: dict[EventFilter, Group] = {}
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._is_notified = self._has_run = False

    @property
    def first(self) -> int:
        """The number of the oldest event in the buffer."""
        return self.last + 1 - len(self._buffer)

    @property
    def users(self) -> int:
        """How many streams use the feed, including those that are catching up."""
        return len(self._users)

    def followers(self) -> Iterator[Follower]:
        """Every follower that has joined."""
        for groups in (*self._exact.values(), self._broad):
            for group in groups.values():
                yield from group

    def enter(self, follower: Follower) -> None:
        """Register a follower that is catching up; it ends when the feed does."""
        self._users[follower] = None

    def slice(self, cursor: int, event_filter: EventFilter) -> Batch:
        """One slice of the buffer after a cursor, which must not lie before the buffer."""
        assert cursor + 1 >= self.first
        found: list[RenderedEvent] = []
        size = 0
        for rendered in islice(self._buffer, max(cursor + 1 - self.first, 0), None):
            if len(found) >= SLICE_EVENTS or size >= SLICE_BYTES:
                break
            if event_filter.matches(rendered.event):
                found.append(rendered)
                size += len(rendered.frame)
            cursor = rendered.event.seq
        return Batch(found, cursor)

    def join(self, follower: Follower, cursor: int) -> None:
        """Give the follower every event from now on. Its cursor must have reached the end of the buffer."""
        assert cursor >= self.last
        follower.cursor = cursor
        self._groups(follower.event_filter).setdefault(follower.event_filter, {})[follower] = None

    def leave(self, follower: Follower) -> None:
        """Remove a follower, whether it had joined or not."""
        self._users.pop(follower, None)
        groups = self._groups(follower.event_filter)
        group = groups.get(follower.event_filter, {})
        group.pop(follower, None)
        if not group:
            groups.pop(follower.event_filter, None)
        if not groups and follower.event_filter.exact_subject is not None:
            del self._exact[follower.event_filter.exact_subject]

    def _groups(self, event_filter: EventFilter) -> dict[EventFilter, Group]:
        return (
            self._broad
            if event_filter.exact_subject is None
            else self._exact.setdefault(event_filter.exact_subject, {})
        )

    async def run(self) -> None:
        """Follow the log while there are followers."""
        key = account_log_key(self.account)
        self._change_signal.listen(key, self._on_change)
        error: Exception | None = None
        try:
            while (self._users or not self._has_run) and not self._change_signal.draining:
                self._has_run = True
                self._is_notified = False
                self._changed.clear()
                if not await self._read_and_distribute():
                    await self._changed.wait()
        except CursorTooOld as too_old:
            error = too_old
        except Exception:
            log.exception("following the event log failed")
        finally:
            self.is_over = True
            self._change_signal.forget(key, self._on_change)
            for follower in list(self._users):
                follower.end(error)

    def wake(self) -> None:
        """Check again whether to stop: a follower left, or the server drains."""
        self._changed.set()

    async def _read_and_distribute(self) -> bool:
        """Read a page and distribute it; returns whether there is more."""
        try:
            page, more = await self._read_page()
        except CursorTooOld:
            raise
        except HoldfastError as error:  # the store is unreachable; followers stay and miss nothing once it is back
            log.warning("the event log cannot be read: %s", error.message)
            await asyncio.sleep(RETRY_SECONDS)
            return True
        if page:
            await self._distribute(page)
        return more

    async def _read_page(self) -> tuple[list[RenderedEvent], bool]:
        """A page, read part by part; and whether there may be more."""
        page, more = await self._read(self.last)
        while more and len(page) < PAGE and sum(len(rendered.frame) for rendered in page) < PAGE_BYTES:
            last = page[-1].event.seq
            await asyncio.sleep(PART_PAUSE)
            try:
                part, more = await self._read(last)
            except HoldfastError:  # what was read is sent first; the next page meets the error again
                return page, True
            if part and part[0].event.seq != last + 1:  # a restore has cut the log here: a page begins
                return page, True
            page += part
        return page, more

    async def _distribute(self, page: list[RenderedEvent]) -> None:
        shares = self._assign(page)
        pause = min(PAUSE_SECONDS, MAX_PAUSE / len(shares)) if shares else 0.0
        for first in range(0, len(shares), FOLLOWERS_AT_ONCE):
            group = shares[first : first + FOLLOWERS_AT_ONCE]
            for follower, batch in group:
                follower.offer(batch)
            await asyncio.sleep(len(group) * pause)
        self.settled = self.last

    def _assign(self, page: list[RenderedEvent]) -> list[tuple[Follower, Batch]]:
        """Add a page to the buffer; returns which follower gets which batch."""
        if page[0].event.seq != self.last + 1:  # a restore has cut the log here
            self._buffer.clear()
            self._bytes = 0
        self._append(page)
        found: dict[EventFilter, list[RenderedEvent]] = {}
        for rendered in page:
            for event_filter in chain(self._exact.get(rendered.event.subject, ()), self._broad):
                if event_filter.matches(rendered.event):
                    found.setdefault(event_filter, []).append(rendered)
        batches = {event_filter: Batch(matching, self.last) for event_filter, matching in found.items()}
        return [
            (follower, batch)
            for event_filter, batch in batches.items()
            for follower in self._groups(event_filter)[event_filter]
        ]

    def _append(self, page: list[RenderedEvent]) -> None:
        self._buffer.extend(page)
        self._bytes += sum(len(rendered.frame) for rendered in page)
        self.last = page[-1].event.seq
        max_bytes = self._buffer_bytes()
        while len(self._buffer) > BUFFER_EVENTS or self._bytes > max_bytes:
            self._bytes -= len(self._buffer.popleft().frame)

    def _on_change(self) -> None:
        """Called from the engine's threads; one pending notification is enough."""
        if not self._is_notified:
            self._is_notified = True
            self._loop.call_soon_threadsafe(self._changed.set)
