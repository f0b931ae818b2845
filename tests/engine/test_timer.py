"""The timer: actions run at their moments, in order, and a failing one stops no other."""

from __future__ import annotations

import time

import pytest

from holdfast.engine.timer import Timer
from tests.support import wait_until


@pytest.fixture
def timer():
    timer = Timer()
    yield timer
    timer.close()


def test_actions_run_at_their_moments_in_order_although_one_fails(timer, caplog):
    done, now = [], time.monotonic()
    timer.at(now + 0.06, lambda: done.append("late"))
    timer.at(now + 0.02, lambda: 1 / 0)
    timer.at(now + 0.04, lambda: done.append("early"))
    wait_until(lambda: len(done) == 2)
    assert done == ["early", "late"]
    assert time.monotonic() >= now + 0.06
    assert "a timed action failed" in caplog.text


def test_a_cancelled_action_does_not_run_and_is_not_referenced(timer):
    done, now = [], time.monotonic()
    cancelled = timer.at(now + 0.02, lambda: done.append("never"))
    timer.at(now + 0.04, lambda: done.append("done"))
    cancelled.cancel()
    assert cancelled.action is None
    wait_until(lambda: done)
    assert done == ["done"]


def test_actions_that_are_not_due_at_close_never_run():
    timer, done = Timer(), []
    timer.at(time.monotonic() + 0.05, lambda: done.append("never"))
    timer.close()
    time.sleep(0.08)
    assert done == []
