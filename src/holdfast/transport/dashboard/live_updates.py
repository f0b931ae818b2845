"""`/ui/live`: an event stream that says only that something has changed; the page then fetches itself again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from holdfast.core.errors import RateLimited
from holdfast.core.plan import READ
from holdfast.engine.change_signal import account_log_key
from holdfast.transport.dashboard.access.sign_in import SignIn
from holdfast.transport.dashboard.page import PageRequest
from holdfast.transport.http.request import Response
from holdfast.transport.http.streams.limits import STREAM_RETRY, StreamLimit, account_share
from holdfast.transport.http.streams.sending import begin
from holdfast.transport.times import wall_clock

MIN_INTERVAL = 0.25
READ_SHARE, HOUR_SECONDS = 4, 3600
"""Each update costs a read: an open page may use a quarter of the plan's reads, agents have the rest."""
HEARTBEAT_SECONDS = 15.0
CHECK_SECONDS = 5.0
"""The stream of a revoked key ends within this time and a heartbeat; pages are refused at once."""
MAX_STREAMS = 1_000
MAX_STREAMS_PER_KEY = 100
"""Several people may have signed in with one key, in several browsers each."""

_CHANGED = b"event: changed\ndata: \n\n"
_HEARTBEAT = b": still here\n\n"
_HEADERS = ((b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))


class LiveUpdates:
    """The open streams, limited by key and by account."""

    def __init__(self, sign_in: SignIn) -> None:
        self._sign_in = sign_in
        self._per_key = StreamLimit(MAX_STREAMS_PER_KEY, MAX_STREAMS, _too_many)
        self._per_account = StreamLimit(account_share(MAX_STREAMS), None, _too_many)

    async def answer(self, request: PageRequest) -> Response:
        """A stream, unless too many are open."""
        allowance = await request.ctx.allowance(request.account)
        reads = allowance.in_force(wall_clock()).per_hour(READ)
        interval = MIN_INTERVAL if not reads else max(MIN_INTERVAL, READ_SHARE * HOUR_SECONDS / reads)
        stream = await begin(self._limited_stream(request, interval))
        return Response(200, b"", _HEADERS, b"text/event-stream", stream)

    async def _limited_stream(self, request: PageRequest, interval: float) -> AsyncGenerator[bytes, None]:
        """Counted by key and account: signing in again gives no more streams."""
        with self._per_key.acquire(request.by.id), self._per_account.acquire(request.account):
            async with aclosing(self._stream(request, interval)) as parts:
                async for part in parts:
                    yield part

    async def _stream(self, request: PageRequest, interval: float) -> AsyncGenerator[bytes, None]:
        """One message per change, at most one per interval, until the browser session or this server ends."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        change_signal, key = request.ctx.engine.change_signal, account_log_key(request.account)

        def notify() -> None:
            with suppress(RuntimeError):  # the event loop has been closed before its listeners were removed
                loop.call_soon_threadsafe(changed.set)

        change_signal.listen(key, notify)
        try:
            yield b"retry: 1000\n\n" + _CHANGED
            checked = loop.time()
            while not change_signal.draining:
                has_changed = await _wait(changed, HEARTBEAT_SECONDS)
                if loop.time() - checked >= CHECK_SECONDS:
                    if await self._sign_in.authenticate(request.http) is None:
                        return
                    checked = loop.time()
                changed.clear()
                yield _CHANGED if has_changed else _HEARTBEAT
                await asyncio.sleep(interval)
        finally:
            change_signal.forget(key, notify)


def _too_many() -> RateLimited:
    return RateLimited("too many dashboard pages are open", retry_after=STREAM_RETRY)


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event was set in time."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
