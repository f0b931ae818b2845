"""pytest plugin: an engine in memory for tests of workers and other programs that use a client. No server is needed.

Enable it in `conftest.py` or in a test file:

    pytest_plugins = ["holdfast.testing"]

    def test_resize(holdfast_client):
        task = holdfast_client.create_task("resize", {"width": 640})
        worker.run_until_idle(holdfast_client)
        assert holdfast_client.check_task_status(task["id"])["status"] == "completed"
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.client.client import Client
from holdfast.client.embedded import EmbeddedTransport
from holdfast.clock import boot_nanoseconds
from holdfast.core.row import SECOND, Instant
from holdfast.engine.sweep import MAX_DUE, expiry_command

START: Instant = 1_767_225_600 * SECOND
"""The time of the engine when it starts: 2026-01-01T00:00:00Z."""


class MemoryClient(Client):
    """Client of an engine in memory of its own. The time of the engine runs, and `advance` moves it ahead."""

    def __init__(self) -> None:
        self._memory = _MemoryTransport()
        super().__init__(transport=self._memory)

    def advance(self, seconds: float) -> None:
        """Let this time pass at once: when it returns, leases have expired, and delayed tasks are ready."""
        self._memory.advance(seconds)


class _MemoryTransport(EmbeddedTransport):
    def __init__(self) -> None:
        self._offset = START - boot_nanoseconds() // 1000
        super().__init__("memory:", lambda: boot_nanoseconds() // 1000 + self._offset)

    def advance(self, seconds: float) -> None:
        """Move the clock, and do what the sweep would do a moment later."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self._offset += int(seconds * SECOND)
        while due := self._engine.read(lambda reader: reader.due(MAX_DUE)):
            for key in due:
                self._engine.call(expiry_command(key))


@pytest.fixture
def holdfast_client() -> Iterator[MemoryClient]:
    """A client of an engine in memory, empty at the start of every test."""
    with MemoryClient() as client:
        yield client
