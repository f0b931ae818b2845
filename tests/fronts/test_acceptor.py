"""Accepting connections: pauses after errors, and what the engine process asks for meanwhile."""

from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from holdfast.transport.fronts import acceptor
from holdfast.transport.fronts.acceptor import Acceptor


class Listener(socket.socket):
    """A socket that fails to accept a number of times."""

    failures = 0

    def accept(self):
        if self.failures:
            self.failures -= 1
            self.failed.set()
            raise OSError(errno.EMFILE, "too many open files")
        return super().accept()


@pytest.fixture
def listener():
    with Listener() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


async def connects(listener, accepted, seconds):
    """Whether a new connection is accepted within some seconds."""
    before = len(accepted)
    with socket.create_connection(listener.getsockname()):
        for _ in range(int(seconds * 100)):
            if len(accepted) > before:
                return True
            await asyncio.sleep(0.01)
    return False


@pytest.mark.parametrize("asked", [True, False])
def test_after_the_pause_that_follows_an_error_it_does_what_was_asked_last(listener, monkeypatch, asked):
    monkeypatch.setattr(acceptor, "PAUSE_SECONDS", 0.05)

    async def run():
        accepted = []

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport):
                accepted.append(transport)
                transport.close()

        accepting = Acceptor(listener, Protocol, None, None)
        accepting.accept(accept=True)
        listener.failures, listener.failed = 1, asyncio.Event()
        with socket.create_connection(listener.getsockname()):
            await listener.failed.wait()
            accepting.accept(accept=asked)
            for _ in range(500 if asked else 10):  # a busy machine may need longer than the pause
                if not accepted:
                    await asyncio.sleep(0.01)
            assert len(accepted) == int(asked)
        accepting.accept(accept=True)
        assert await connects(listener, accepted, 5.0)
        accepting.stop()
        accepting.accept(accept=True)
        assert not await connects(listener, accepted, 0.1), "it was stopped"

    asyncio.run(run())
