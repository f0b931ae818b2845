"""Forwarding: long answers pass completely, and a connection to the engine is used again for another caller."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.transport.fronts import forwarding
from holdfast.transport.fronts.forwarding import IDLE_SECONDS, MAX_BUFFERED, EngineConnection, Forwarder
from holdfast.transport.http.overload import open_connections

SCOPE = {
    "method": "GET",
    "raw_path": b"/v1/jobs",
    "query_string": b"",
    "headers": [(b"host", b"x")],
    "client": ("127.0.0.1", 50_000),
    "scheme": "http",
    "http_version": "1.1",
}
REQUEST = {"type": "http.request", "body": b""}


def answer(body):
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def test_an_answer_that_is_longer_than_what_may_be_buffered_passes_completely(tmp_path):
    path, body = str(tmp_path / "engine"), b"x" * 4 * MAX_BUFFERED
    requests, sent, closed = [REQUEST], [], asyncio.Event()

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(body))
        await reader.read()  # until the connection ends
        writer.close()
        await writer.wait_closed()
        closed.set()

    async def receive():
        return requests.pop() if requests else await asyncio.Future()

    async def send(message):
        sent.append(message)

    async def run():
        forwarder = Forwarder(path, on_caller_left=lambda _: None)
        async with await asyncio.start_unix_server(serve, path):
            await asyncio.wait_for(forwarder.forward(SCOPE, receive, send), 3)
            forwarder.close()
            await asyncio.wait_for(closed.wait(), 3)

    asyncio.run(run())
    assert b"".join(message.get("body", b"") for message in sent) == body


def test_after_a_caller_that_left_the_next_one_on_its_connection_gets_an_answer():
    """The first leaves when its answer has arrived and before it gets any of it."""
    gone, sent = [], []

    async def run():
        connection, forwarder = EngineConnection(), Forwarder("", gone.append)
        forwarder._idle.append(connection)
        for leaves in (True, False):
            requests = [REQUEST]

            async def receive(*, requests=requests, leaves=leaves):
                if requests:
                    return requests.pop()
                connection.data_received(answer(b"{}"))
                return {"type": "http.disconnect"} if leaves else await asyncio.Future()

            async def send(message):
                sent.append(message)

            await asyncio.wait_for(forwarder.forward(SCOPE, receive, send), 3)
            assert forwarder._idle == [connection]
            assert not leaves or sent == []

    asyncio.run(run())
    assert [message.get("status") for message in sent] == [200, None, None]
    assert len(gone) == 1


@pytest.mark.parametrize(("seconds", "connections"), [(30.0, 1), (0.1, 2)])
def test_a_connection_that_the_engine_may_have_given_up_is_not_used_again(tmp_path, monkeypatch, seconds, connections):
    """A request on it would be cut off after some seconds, and its caller told that the outcome is unknown."""
    path, made = str(tmp_path / "engine"), []
    monkeypatch.setattr(forwarding, "IDLE_SECONDS", seconds)

    async def serve(reader, writer):
        made.append(writer)
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer(b"{}"))
        writer.close()

    async def forward(forwarder):
        requests, sent = [REQUEST], []

        async def receive():
            return requests.pop() if requests else await asyncio.Future()

        async def send(message):
            sent.append(message)

        await asyncio.wait_for(forwarder.forward(SCOPE, receive, send), 3)
        assert sent[0]["status"] == 200

    async def run():
        forwarder = Forwarder(path, on_caller_left=lambda _: None)
        async with await asyncio.start_unix_server(serve, path):
            await forward(forwarder)
            await asyncio.sleep(0.2)
            await forward(forwarder)
            forwarder.close()
            for writer in made:
                await asyncio.wait_for(writer.wait_closed(), 3)

    asyncio.run(run())
    assert len(made) == connections
    assert open_connections.IDLE_SECONDS > IDLE_SECONDS
