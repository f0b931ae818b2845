"""Limits of open streams, and the check that ends a stream whose key stopped working."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager

from holdfast.core.errors import HoldfastError, Overloaded, RateLimited, TooManyElections, Unauthenticated
from holdfast.settings import Settings
from holdfast.transport.http.request import Request
from holdfast.transport.http.streams.follower import Follower

KEY_CHECK_SECONDS = 1.0
STREAMS_PER_KEY = 100
STREAM_RETRY = 5
"""Seconds after which a refused stream may be tried again."""
MAX_WATCHED_NAMES = 16_384
LOCK_LISTS_PER_ACCOUNT, MAX_LOCK_LISTS = 10, 100
"""Lists of locks, longer than a page, that are being sent."""

log = logging.getLogger("holdfast.http")

Refusal = Callable[[], HoldfastError]


class StreamLimits:
    """The limits of this server, from its settings and from OctoStore's API."""

    def __init__(self, settings: Settings) -> None:
        share = account_share(settings.max_streams)
        self.per_key = StreamLimit(
            STREAMS_PER_KEY,
            settings.max_streams,
            lambda: RateLimited(f"a key has at most {STREAMS_PER_KEY} streams at once", retry_after=STREAM_RETRY),
            lambda: Overloaded("as many streams are open as this server allows"),
        )
        self.per_account = StreamLimit(
            share,
            None,
            lambda: RateLimited(
                f"an account has at most {share} streams and watches at once", retry_after=STREAM_RETRY
            ),
        )
        self.election_watches = StreamLimit(
            settings.public_election_watch_streams_per_client,
            settings.public_election_watch_streams_global,
            lambda: RateLimited("too many watches from this address; try again in 30 seconds", retry_after=30),
            lambda: RateLimited("too many watches; try again in 1 seconds", retry_after=1),
        )
        self.lock_lists = StreamLimit(
            LOCK_LISTS_PER_ACCOUNT,
            MAX_LOCK_LISTS,
            lambda: RateLimited(f"an account reads at most {LOCK_LISTS_PER_ACCOUNT} long lists at once", retry_after=1),
            lambda: Overloaded("too many long lists are being read"),
        )
        self.watched_names = WatchedNames(
            MAX_WATCHED_NAMES, lambda: TooManyElections("too many names are watched", retry_after=1)
        )


def account_share(max_streams: int) -> int:
    """How many streams one account may open: half, so that others keep theirs, but at least as many as one key."""
    return max(max_streams // 2, STREAMS_PER_KEY)


class StreamLimit:
    """A limit of open streams for each client, and in total."""

    def __init__(self, each: int, total: int | None, each_full: Refusal, all_full: Refusal | None = None) -> None:
        self._max_each, self._max_total = each, total
        self._each_full, self._all_full = each_full, all_full or each_full
        self._open: Counter[Hashable] = Counter()
        self.total = 0

    @contextmanager
    def acquire(self, client: Hashable) -> Iterator[None]:
        """Count one stream until the block ends, or refuse it."""
        if self._open[client] >= self._max_each:
            raise self._each_full()
        if self._max_total is not None and self.total >= self._max_total:
            raise self._all_full()
        self._open[client] += 1
        self.total += 1
        try:
            yield
        finally:
            self.total -= 1
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]


class WatchedNames:
    """A limit of different names watched at once; any number of streams may watch one name."""

    def __init__(self, limit: int, full: Refusal) -> None:
        self._limit, self._full = limit, full
        self._watched: Counter[Hashable] = Counter()

    @contextmanager
    def acquire(self, name: Hashable) -> Iterator[None]:
        """Watch a name until the block ends, or refuse it."""
        if name not in self._watched and len(self._watched) >= self._limit:
            raise self._full()
        self._watched[name] += 1
        try:
            yield
        finally:
            self._watched[name] -= 1
            if not self._watched[name]:
                del self._watched[name]


class StreamKeyMonitor:
    """Checks the keys of open streams every second, and ends the streams of a key that stopped working."""

    def __init__(self, check: Callable[[Request], Awaitable[None]]) -> None:
        self._check = check
        self._followers: dict[bytes, dict[Follower, Request]] = {}
        self._loop: asyncio.Task[None] | None = None

    @contextmanager
    def monitor(self, request: Request, follower: Follower) -> Iterator[None]:
        """Check the request's key until the block ends."""
        self._followers.setdefault(request.secret, {})[follower] = request
        if self._loop is None:
            self._loop = asyncio.ensure_future(self._run())
        try:
            yield
        finally:
            same_key = self._followers[request.secret]
            del same_key[follower]
            if not same_key:
                del self._followers[request.secret]

    async def _run(self) -> None:
        while self._followers:
            await asyncio.sleep(KEY_CHECK_SECONDS)
            # Copied before the first check: while that waits, the last stream of another key may end.
            for followers in [dict(same_key) for same_key in self._followers.values()]:
                try:
                    await self._check_key(followers)
                except HoldfastError:
                    continue  # an unreachable store has not revoked anything
                except Exception:
                    log.exception("the key of open streams could not be checked")
        self._loop = None

    async def _check_key(self, followers: dict[Follower, Request]) -> None:
        try:
            await self._check(next(iter(followers.values())))
        except Unauthenticated:
            for follower in followers:
                follower.end()

    def close(self) -> None:
        """Stop checking."""
        if self._loop is not None:
            self._loop.cancel()
