"""A connection that accepts no data is closed after a timeout, and its stream is released."""

import asyncio

from holdfast.transport.http.request import Request
from holdfast.transport.http.streams import sending


def test_a_connection_that_accepts_no_data_is_closed(monkeypatch):
    monkeypatch.setattr(sending, "WRITE_SECONDS", 0.05)
    error, closed = [], []

    async def scenario():
        gone = asyncio.Event()

        async def parts():
            try:
                while True:
                    yield b"x"
            finally:
                closed.append(True)

        async def send(message):
            error.append(message)
            if len(error) == 3:
                await asyncio.Event().wait()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "headers": [], sending.ABORT: gone.set}
        await asyncio.wait_for(sending.send_parts(Request(scope, receive), parts(), send), 10)

    asyncio.run(scenario())
    assert (len(error), closed) == (3, [True])
