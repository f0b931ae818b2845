"""`/ui/live`: a stream that says only that something changed. What it is, the page asks for itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from holdfast.core.errors import Overloaded
from holdfast.core.plan import READ
from holdfast.engine.bells import log_of
from holdfast.transport.dashboard.gate import Gate
from holdfast.transport.dashboard.page import Visit
from holdfast.transport.http.door import wall_clock
from holdfast.transport.http.message import Response

AT_MOST_EVERY = 0.25
PART, HOUR_SECONDS = 4, 3600
"""Each ring costs a read: a page that is watched may use a quarter of what its plan allows, agents have the rest."""
HEARTBEAT_SECONDS = 15.0
CHECK_SECONDS = 5.0
"""A key that was revoked stops its visits within that and a heartbeat; what pages show stops at once."""
MOST_STREAMS = 1_000
MOST_FOR_ONE = 20

_CHANGED = b"event: changed\ndata: \n\n"
_STILL_HERE = b": still here\n\n"
_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"), (b"x-accel-buffering", b"no"))


class Live:
    """Everybody who watches."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._watching: dict[str, int] = {}

    async def answer(self, visit: Visit) -> Response:
        """A stream, unless there are too many."""
        mine = self._watching.get(visit.badge.id, 0)
        if mine >= MOST_FOR_ONE or sum(self._watching.values()) >= MOST_STREAMS:
            raise Overloaded("too many pages are being watched")
        allowance = await visit.door.allowance(visit.account)
        reads = allowance.in_force(wall_clock()).per_hour(READ)
        rest = AT_MOST_EVERY if not reads else max(AT_MOST_EVERY, PART * HOUR_SECONDS / reads)
        return Response(200, b"", _HEADERS, b"text/event-stream", self._tell(visit, rest))

    async def _tell(self, visit: Visit, rest: float) -> AsyncGenerator[bytes, None]:
        """Ring after ring, a few a second at most, until the visit or this server is over."""
        loop, bell = asyncio.get_running_loop(), asyncio.Event()
        bells, key, who = visit.door.engine.bells, log_of(visit.account), visit.badge.id

        def ring() -> None:
            with suppress(RuntimeError):  # the loop has ended before its listeners were told
                loop.call_soon_threadsafe(bell.set)

        self._watching[who] = self._watching.get(who, 0) + 1
        bells.listen(key, ring)
        try:
            yield b"retry: 1000\n\n" + _CHANGED
            checked = loop.time()
            while not bells.draining:
                rung = await _within(bell, HEARTBEAT_SECONDS)
                if loop.time() - checked >= CHECK_SECONDS:
                    if await self._gate.find(visit.request) is None:
                        return
                    checked = loop.time()
                bell.clear()
                yield _CHANGED if rung else _STILL_HERE
                await asyncio.sleep(rest)
        finally:
            bells.forget(key, ring)
            self._watching[who] -= 1
            if not self._watching[who]:
                del self._watching[who]


async def _within(bell: asyncio.Event, seconds: float) -> bool:
    """Whether it rang in time."""
    try:
        await asyncio.wait_for(bell.wait(), seconds)
    except TimeoutError:
        return False
    return True
