"""A connection that takes nothing: it is closed after a while, and whatever its stream held is let go."""

import asyncio

from holdfast.transport.http.request import Request
from holdfast.transport.http.streams import sending


def test_a_connection_that_takes_nothing_is_closed(monkeypatch):
    monkeypatch.setattr(sending, "WRITE_SECONDS", 0.05)
    told, closed = [], []

    async def scenario():
        gone = asyncio.Event()

        async def parts():
            try:
                while True:
                    yield b"x"
            finally:
                closed.append(True)

        async def send(message):
            told.append(message)
            if len(told) == 3:
                await asyncio.Event().wait()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "headers": [], sending.ABORT: gone.set}
        await asyncio.wait_for(sending.send_parts(Request(scope, receive), parts(), send), 10)

    asyncio.run(scenario())
    assert (len(told), closed) == (3, [True])
