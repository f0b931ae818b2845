"""Fixed windows: counted by client, in bounded memory."""

from types import SimpleNamespace

import pytest

from holdfast.core.errors import RateLimited
from holdfast.transport.http.access import rate_window
from holdfast.transport.http.access.rate_window import FixedWindowLimit


class FakeClock:
    now = 1_000.0


@pytest.fixture
def clock(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(rate_window, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def refused(windows, client):
    try:
        windows.count(client)
    except RateLimited as error:
        return error.retry_after
    return None


def test_a_client_is_refused_until_its_window_is_over(clock):
    windows = FixedWindowLimit(2)
    assert [refused(windows, "a") for _ in range(3)] == [None, None, 60]
    clock.now += 30.5
    assert refused(windows, "a") == 29
    assert refused(windows, "b") is None
    clock.now += 29.4
    assert refused(windows, "a") == 1, "the wait that is told is never 0"
    clock.now += 0.1
    assert [refused(windows, "a") for _ in range(3)] == [None, None, 60]


def test_when_too_many_are_tracked_newcomers_share_one_count(clock, monkeypatch):
    monkeypatch.setattr(rate_window, "TRACKED_CLIENTS", 3)
    windows = FixedWindowLimit(2)
    for client in "abc":
        windows.count(client)
    assert [refused(windows, client) for client in "def"] == [None, None, 60]
    assert refused(windows, "a") is None, "whoever is known keeps a count of their own"
    clock.now += 60
    assert [refused(windows, "d") for _ in range(2)] == [None, None], "the old ones have been forgotten"
    assert len(windows._windows) <= 4
