"""One thread for everything that is to be done later, and bells for those who watch a row."""

from __future__ import annotations

import time

import pytest

from holdfast.engine.change_signal import ChangeSignal, log_of
from holdfast.engine.timer import Timer
from tests.support import ACCOUNT, wait_until

ROW, OTHER, ABROAD = ("tasks", ACCOUNT, "t1"), ("tasks", ACCOUNT, "t2"), ("tasks", "other", "t1")


@pytest.fixture
def timer():
    timer = Timer()
    yield timer
    timer.close()


def test_each_is_done_at_its_moment_in_order_although_one_fails(timer, caplog):
    done, now = [], time.monotonic()
    timer.at(now + 0.06, lambda: done.append("late"))
    timer.at(now + 0.02, lambda: 1 / 0)
    timer.at(now + 0.04, lambda: done.append("early"))
    wait_until(lambda: len(done) == 2)
    assert done == ["early", "late"]
    assert time.monotonic() >= now + 0.06
    assert "could not be done" in caplog.text


def test_what_was_cancelled_is_not_done_and_holds_nothing(timer):
    done, now = [], time.monotonic()
    cancelled = timer.at(now + 0.02, lambda: done.append("never"))
    timer.at(now + 0.04, lambda: done.append("done"))
    cancelled.cancel()
    assert cancelled.action is None
    wait_until(lambda: done)
    assert done == ["done"]


def test_closing_forgets_the_rest():
    timer, done = Timer(), []
    timer.at(time.monotonic() + 0.05, lambda: done.append("never"))
    timer.close()
    time.sleep(0.08)
    assert done == []


class Tower:
    """Bells, and what was heard of them."""

    def __init__(self):
        self.attended = []
        self.heard = []
        self.change_signal = ChangeSignal(self.attended.append)

    def listen(self, key):
        self.change_signal.listen(key, ring := lambda: self.heard.append(key))
        return ring


def test_a_bell_rings_for_its_row_and_the_log_s_bell_for_all_of_its_account():
    tower = Tower()
    for key in (ROW, OTHER, ABROAD, log_of(ACCOUNT)):
        tower.listen(key)
    tower.change_signal.ring({ROW})
    assert sorted(tower.heard) == [("events", ACCOUNT, ""), ROW]
    tower.heard.clear()
    tower.change_signal.ring_all()
    assert len(tower.heard) == 4


def test_whoever_stops_listening_hears_nothing_and_the_last_lets_the_watcher_rest():
    tower = Tower()
    one, other = tower.listen(ROW), tower.listen(ROW)
    tower.change_signal.forget(ROW, one)
    tower.change_signal.ring([ROW])
    assert tower.heard == [ROW]
    assert tower.attended[-1] is True
    tower.change_signal.forget(ROW, other)
    tower.change_signal.ring([ROW])
    assert (tower.heard, tower.attended[-1]) == ([ROW], False)


def test_a_drain_rings_every_bell_so_that_nobody_waits_on():
    tower = Tower()
    tower.listen(ROW)
    tower.change_signal.drain()
    assert (tower.heard, tower.change_signal.draining) == ([ROW], True)
