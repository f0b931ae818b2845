"""A feed: follows the log of one account and hands what it reads to everybody who follows that account here.

Each event is read and rendered once. Followers with the same filter share one batch, and filters on one subject are
found by that subject, so a thousand followers of a hundred subjects cost a hundred batches and a thousand writes.

Why nobody misses an event, or sees one twice:

- `seq` is dense but for where a restore has cut the log, and there a page begins and the ring begins anew. A page that
  does not follow the feed's own end is refused. So the ring holds every event from `first` to `last`, without gaps.
- A page joins the ring, moves `last` and is dealt out to the followers of that moment without a pause in between: the
  event loop runs nothing else meanwhile. A follower who joins sees the ring either without the page, and is then dealt
  to, or with it, and was not.
- A follower comes in slices: from the store while its cursor lies before the ring, then from the ring, each slice right
  after the last and taken only when the one before was sent. A ring that moved on meanwhile sends it back to the store.
- The slice that comes to the ring's end and joining are one go as well: nothing lies between that slice and the first
  batch that is dealt. Who reads the store may overtake the feed, and then drops from the first batches what it knows.
- `settled` follows `last` once every follower has been handed its batch; only that far is a silent follower told that
  it missed nothing.
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
from holdfast.transport.http.streams.follower import SLICE_BYTES, SLICE_EVENTS, Batch, Follower, Told

PAGE, PAGE_BYTES = 500, 1024 * 1024
"""How much of the log is read and dealt out at once."""
RING_EVENTS = 4096
AT_ONCE = 8
"""After so many followers other work gets its turn on the event loop."""
REST_SECONDS = 0.0004
LONGEST_REST = 0.5
"""Between writes the feed rests a little: under load events travel together, at most 2,500 writes a second."""
TROUBLE_SECONDS = 1.0

ReadPage = Callable[[int], Awaitable[tuple[list[Told], bool]]]
"""What follows a cursor, and whether there may be more."""
Group = dict[Follower, None]

log = logging.getLogger("holdfast.http")


class Feed:
    """The newest events of one account, and who follows them."""

    def __init__(
        self, account: str, last: int, change_signal: ChangeSignal, read: ReadPage, ring_bytes: Callable[[], int]
    ) -> None:
        self.account = account
        self.last = self.settled = last
        self.over = False
        self._ring: deque[Told] = deque()
        self._bytes = 0
        self._ring_bytes = ring_bytes
        self._change_signal = change_signal
        self._read = read
        self._users: Group = {}
        self._exact: dict[str, dict[EventFilter, Group]] = {}
        self._broad: dict[EventFilter, Group] = {}
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._rung = self._began = False

    @property
    def first(self) -> int:
        """The oldest event in the ring."""
        return self.last + 1 - len(self._ring)

    @property
    def users(self) -> int:
        """How many streams need it, those still on their way included."""
        return len(self._users)

    def followers(self) -> Iterator[Follower]:
        """Everybody who has joined."""
        for groups in (*self._exact.values(), self._broad):
            for group in groups.values():
                yield from group

    def enter(self, follower: Follower) -> None:
        """It is on its way: from now on it ends with the feed."""
        self._users[follower] = None

    def slice(self, cursor: int, wants: EventFilter) -> Batch:
        """What the ring has after a cursor, as much as is handed out at once. The cursor must meet the ring."""
        assert cursor + 1 >= self.first
        found: list[Told] = []
        size = 0
        for told in islice(self._ring, max(cursor + 1 - self.first, 0), None):
            if len(found) >= SLICE_EVENTS or size >= SLICE_BYTES:
                break
            if wants.matches(told.event):
                found.append(told)
                size += len(told.frame)
            cursor = told.event.seq
        return Batch(found, cursor)

    def join(self, follower: Follower, cursor: int) -> None:
        """From now on it gets everything. The cursor must have come to the ring's end."""
        assert cursor >= self.last
        follower.cursor = cursor
        self._groups(follower.wants).setdefault(follower.wants, {})[follower] = None

    def leave(self, follower: Follower) -> None:
        """It reads no longer, if it ever did."""
        self._users.pop(follower, None)
        groups = self._groups(follower.wants)
        group = groups.get(follower.wants, {})
        group.pop(follower, None)
        if not group:
            groups.pop(follower.wants, None)
        if not groups and follower.wants.exact is not None:
            del self._exact[follower.wants.exact]

    def _groups(self, wants: EventFilter) -> dict[EventFilter, Group]:
        return self._broad if wants.exact is None else self._exact.setdefault(wants.exact, {})

    async def run(self) -> None:
        """Follow the log while anybody is here."""
        key = account_log_key(self.account)
        self._change_signal.listen(key, self._ring_bell)
        error: Exception | None = None
        try:
            while (self._users or not self._began) and not self._change_signal.draining:
                self._began = True
                self._rung = False
                self._bell.clear()
                if not await self._go_on():
                    await self._bell.wait()
        except CursorTooOld as gone:
            error = gone
        except Exception:
            log.exception("the log could not be followed")
        finally:
            self.over = True
            self._change_signal.forget(key, self._ring_bell)
            for follower in list(self._users):
                follower.end(error)

    def wake(self) -> None:
        """Look again: somebody left, or the server is about to."""
        self._bell.set()

    async def _go_on(self) -> bool:
        """Read a page and hand it out; whether there is more."""
        try:
            page, more = await self._read(self.last)
        except CursorTooOld:
            raise
        except HoldfastError as error:  # the store is away; followers stay, and miss nothing once it is back
            log.warning("the log cannot be read just now: %s", error.message)
            await asyncio.sleep(TROUBLE_SECONDS)
            return True
        if page:
            await self._spread(page)
        return more

    async def _spread(self, page: list[Told]) -> None:
        shares = self._deal(page)
        rest = min(REST_SECONDS, LONGEST_REST / len(shares)) if shares else 0.0
        for first in range(0, len(shares), AT_ONCE):
            some = shares[first : first + AT_ONCE]
            for follower, batch in some:
                follower.offer(batch)
            await asyncio.sleep(len(some) * rest)
        self.settled = self.last

    def _deal(self, page: list[Told]) -> list[tuple[Follower, Batch]]:
        """Add a page to the ring, and say who gets what of it."""
        if page[0].event.seq != self.last + 1:  # a restore has cut the log here
            self._ring.clear()
            self._bytes = 0
        self._keep(page)
        found: dict[EventFilter, list[Told]] = {}
        for told in page:
            for wants in chain(self._exact.get(told.event.subject, ()), self._broad):
                if wants.matches(told.event):
                    found.setdefault(wants, []).append(told)
        batches = {wants: Batch(fitting, self.last) for wants, fitting in found.items()}
        return [(follower, batch) for wants, batch in batches.items() for follower in self._groups(wants)[wants]]

    def _keep(self, page: list[Told]) -> None:
        self._ring.extend(page)
        self._bytes += sum(len(told.frame) for told in page)
        self.last = page[-1].event.seq
        most = self._ring_bytes()
        while len(self._ring) > RING_EVENTS or self._bytes > most:
            self._bytes -= len(self._ring.popleft().frame)

    def _ring_bell(self) -> None:
        """Called from the engine's threads; a bell that has rung need not ring again."""
        if not self._rung:
            self._rung = True
            self._loop.call_soon_threadsafe(self._bell.set)
