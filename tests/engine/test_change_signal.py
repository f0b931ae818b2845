"""Change notification: who is notified of which change, and what a drain does."""

from __future__ import annotations

import threading

import pytest

from holdfast.engine.change_signal import ChangeSignal, account_log_key
from tests.support import ACCOUNT, claim

ROW, OTHER, ABROAD = ("leases", ACCOUNT, "a"), ("leases", ACCOUNT, "b"), ("leases", "other", "a")


class Listeners:
    """A change signal, and the notifications it sent."""

    def __init__(self):
        self.attended = []
        self.notified = []
        self.change_signal = ChangeSignal(self.set_waiting)

    def set_waiting(self, *, waiting):
        self.attended.append(waiting)

    def listen(self, key):
        self.change_signal.listen(key, callback := lambda: self.notified.append(key))
        return callback


def test_a_change_notifies_the_row_and_the_log_of_its_account():
    listeners = Listeners()
    for key in (ROW, OTHER, ABROAD, account_log_key(ACCOUNT)):
        listeners.listen(key)
    listeners.change_signal.notify({ROW})
    assert sorted(listeners.notified) == [("events", ACCOUNT, ""), ROW]
    listeners.notified.clear()
    listeners.change_signal.notify_all()
    assert len(listeners.notified) == 4


def test_changes_in_several_accounts_notify_the_log_of_each():
    listeners = Listeners()
    logs = [account_log_key(account) for account in (ACCOUNT, "other")]
    for key in logs:
        listeners.listen(key)
    listeners.change_signal.notify([ROW, ABROAD])
    assert sorted(listeners.notified) == sorted(logs)


def test_a_removed_callback_is_not_called_and_the_last_one_ends_the_watch():
    listeners = Listeners()
    one, other = listeners.listen(ROW), listeners.listen(ROW)
    listeners.change_signal.forget(ROW, one)
    listeners.change_signal.notify([ROW])
    assert listeners.notified == [ROW]
    assert listeners.attended[-1] is True
    listeners.change_signal.forget(ROW, other)
    listeners.change_signal.notify([ROW])
    assert (listeners.notified, listeners.attended[-1]) == ([ROW], False)


def test_a_drain_notifies_every_listener():
    listeners = Listeners()
    listeners.listen(ROW)
    listeners.change_signal.drain()
    assert (listeners.notified, listeners.change_signal.draining) == ([ROW], True)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_commit_of_another_server_notifies_the_listeners_of_this_one(opened, started, kind):
    here, there = started(opened(kind)), started(opened(kind))
    notified = threading.Event()
    there.change_signal.listen(account_log_key(ACCOUNT), notified.set)
    here.call(claim("job", "l1"))
    assert notified.wait(10)
