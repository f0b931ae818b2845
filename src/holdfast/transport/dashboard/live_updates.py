"""`/ui/live`: a stream that says only that something changed. What it is, the page asks for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from holdfast.core.errors import RateLimited
from holdfast.core.plan import READ
from holdfast.engine.change_signal import log_of
from holdfast.transport.dashboard.page import Visit
from holdfast.transport.dashboard.sign_in import SignIn
from holdfast.transport.http.context import wall_clock
from holdfast.transport.http.request import Response
from holdfast.transport.http.streams.limits import STREAM_RETRY, Places, share_of
from holdfast.transport.http.streams.sending import begin

AT_MOST_EVERY = 0.25
PART, HOUR_SECONDS = 4, 3600
"""Each ring costs a read: a page that is watched may use a quarter of what its plan allows, agents have the rest."""
HEARTBEAT_SECONDS = 15.0
CHECK_SECONDS = 5.0
"""A key that was revoked stops its visits within that and a heartbeat; what pages show stops at once."""
MOST_STREAMS = 1_000
MOST_FOR_ONE = 100
"""Of one key: several people may have signed in with it, in several browsers each."""

_CHANGED = b"event: changed\ndata: \n\n"
_STILL_HERE = b": still here\n\n"
_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"), (b"x-accel-buffering", b"no"))


class Live:
    """Everybody who watches."""

    def __init__(self, gate: SignIn) -> None:
        self._gate = gate
        self._of_key = Places(MOST_FOR_ONE, MOST_STREAMS, _full)
        self._of_account = Places(share_of(MOST_STREAMS), None, _full)

    async def answer(self, visit: Visit) -> Response:
        """A stream, unless there are too many."""
        allowance = await visit.ctx.allowance(visit.account)
        reads = allowance.in_force(wall_clock()).per_hour(READ)
        rest = AT_MOST_EVERY if not reads else max(AT_MOST_EVERY, PART * HOUR_SECONDS / reads)
        return Response(200, b"", _HEADERS, b"text/event-stream", await begin(self._place(visit, rest)))

    async def _place(self, visit: Visit, rest: float) -> AsyncGenerator[bytes, None]:
        """Counted by key and account: signing in again gives nobody more."""
        with self._of_key.taken(visit.by.id), self._of_account.taken(visit.account):
            async with aclosing(self._tell(visit, rest)) as parts:
                async for part in parts:
                    yield part

    async def _tell(self, visit: Visit, rest: float) -> AsyncGenerator[bytes, None]:
        """Ring after ring, a few a second at most, until the visit or this server is over."""
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        change_signal, key = visit.ctx.engine.change_signal, log_of(visit.account)

        def ring() -> None:
            with suppress(RuntimeError):  # the loop has ended before its listeners were told
                loop.call_soon_threadsafe(bell.set)

        change_signal.listen(key, ring)
        try:
            yield b"retry: 1000\n\n" + _CHANGED
            checked = loop.time()
            while not change_signal.draining:
                rung = await _within(bell, HEARTBEAT_SECONDS)
                if loop.time() - checked >= CHECK_SECONDS:
                    if await self._gate.find(visit.request) is None:
                        return
                    checked = loop.time()
                bell.clear()
                yield _CHANGED if rung else _STILL_HERE
                await asyncio.sleep(rest)
        finally:
            change_signal.forget(key, ring)


def _full() -> RateLimited:
    return RateLimited("too many pages are being watched", retry_after=STREAM_RETRY)


async def _within(bell: asyncio.Event, seconds: float) -> bool:
    """Whether it rang in time."""
    try:
        await asyncio.wait_for(bell.wait(), seconds)
    except TimeoutError:
        return False
    return True
