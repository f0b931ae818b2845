"""How many streams there may be at once: for each who asks, and in all. And whether their keys still open anything."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager, suppress

from holdfast.core.errors import HoldfastError, Overloaded, RateLimited, TooManyElections, Unauthenticated
from holdfast.settings import Settings
from holdfast.transport.http.request import Request
from holdfast.transport.http.streams.follower import Follower

PATROL_SECONDS = 1.0
STREAMS_PER_KEY = 100
STREAM_RETRY = 5
WATCHED_NAMES = 16_384

Refusal = Callable[[], HoldfastError]


def places_of(settings: Settings) -> tuple[Places, Places, Places, Names]:
    """(streams of keys, of accounts, watches of elections, names that are watched): as settings and OctoStore say."""
    streams = Places(
        STREAMS_PER_KEY,
        settings.max_streams,
        lambda: RateLimited(f"a key has at most {STREAMS_PER_KEY} streams at once", retry_after=STREAM_RETRY),
        lambda: Overloaded("as many streams are open as this server allows"),
    )
    share = share_of(settings.max_streams)
    accounts = Places(
        share,
        None,
        lambda: RateLimited(f"an account has at most {share} streams and watches at once", retry_after=STREAM_RETRY),
    )
    elections = Places(
        settings.public_election_watch_streams_per_client,
        settings.public_election_watch_streams_global,
        lambda: RateLimited("too many watches from this address; try again in 30 seconds", retry_after=30),
        lambda: RateLimited("too many watches; try again in 1 seconds", retry_after=1),
    )
    names = Names(WATCHED_NAMES, lambda: TooManyElections("too many names are watched", retry_after=1))
    return streams, accounts, elections, names


def share_of(places: int) -> int:
    """How many of them one account may take: half, so that the others keep theirs, but as many as one key may."""
    return max(places // 2, STREAMS_PER_KEY)


class Places:
    """Taken when a stream begins, free again when it ends, however it ends."""

    def __init__(self, each: int, everybody: int | None, each_full: Refusal, all_full: Refusal | None = None) -> None:
        self._each, self._everybody = each, everybody
        self._each_full, self._all_full = each_full, all_full or each_full
        self._taken: Counter[Hashable] = Counter()
        self.total = 0

    @contextmanager
    def taken(self, who: Hashable) -> Iterator[None]:
        """One place, or a refusal."""
        if self._taken[who] >= self._each:
            raise self._each_full()
        if self._everybody is not None and self.total >= self._everybody:
            raise self._all_full()
        self._taken[who] += 1
        self.total += 1
        try:
            yield
        finally:
            self.total -= 1
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]


class Names:
    """Which names are watched. How many watch one name is nobody's concern."""

    def __init__(self, most: int, full: Refusal) -> None:
        self._most, self._full = most, full
        self._watched: Counter[Hashable] = Counter()

    @contextmanager
    def watched(self, name: Hashable) -> Iterator[None]:
        """Watch a name, or be refused if too many others are watched already."""
        if name not in self._watched and len(self._watched) >= self._most:
            raise self._full()
        self._watched[name] += 1
        try:
            yield
        finally:
            self._watched[name] -= 1
            if not self._watched[name]:
                del self._watched[name]


class Patrol:
    """Looks at the keys of open streams again and again: one that opens nothing any more ends its streams."""

    def __init__(self, check: Callable[[Request], Awaitable[None]]) -> None:
        self._check = check
        self._followers: dict[bytes, dict[Follower, Request]] = {}
        self._walking: asyncio.Task[None] | None = None

    @contextmanager
    def keeps(self, request: Request, follower: Follower) -> Iterator[None]:
        """Keep an eye on a stream's key while it lasts."""
        self._followers.setdefault(request.secret, {})[follower] = request
        if self._walking is None:
            self._walking = asyncio.ensure_future(self._walk())
        try:
            yield
        finally:
            of_this_key = self._followers[request.secret]
            del of_this_key[follower]
            if not of_this_key:
                del self._followers[request.secret]

    async def _walk(self) -> None:
        while self._followers:
            await asyncio.sleep(PATROL_SECONDS)
            for followers in list(self._followers.values()):
                with suppress(HoldfastError):  # a store that is away has not revoked anything
                    await self._look_at(dict(followers))
        self._walking = None

    async def _look_at(self, followers: dict[Follower, Request]) -> None:
        try:
            await self._check(next(iter(followers.values())))
        except Unauthenticated:
            for follower in followers:
                follower.end()

    def close(self) -> None:
        """Stop looking."""
        if self._walking is not None:
            self._walking.cancel()
