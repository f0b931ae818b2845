"""The cleanup thread delays neither the sweep nor holders of leases."""

from __future__ import annotations

import threading

import pytest

from holdfast.engine import cleanup as retention
from holdfast.engine.cleanup import Cleanup
from tests.support import wait_until
from tests.task_commands import create, take


@pytest.fixture
def stuck(monkeypatch):
    """A round of cleanup that takes until the engine is stopped."""
    begun = threading.Event()

    def run(self):
        begun.set()
        return not self._stopped.wait(20)

    monkeypatch.setattr(retention, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(Cleanup, "run", run)
    return begun


def test_expired_rows_are_ended_while_the_cleanup_runs(stuck, opened, started):
    engine = started(opened("memory"))
    assert stuck.wait(5)
    engine.call(create("t1", lease_duration=200_000))
    engine.call(take("work"))
    wait_until(lambda: engine.read(lambda reader: reader.task_counts("default")) == [("work", "pending", 1)])
