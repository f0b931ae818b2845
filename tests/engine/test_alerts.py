"""Alerts: counts since the start and in the last hour, and one warning per hour above the threshold."""

from __future__ import annotations

import pytest

from holdfast.engine.alerts import CONFLICTS, LAPSES, WINDOW_SECONDS, Alerts
from holdfast.telemetry.metric_names import ALERT_KINDS


class FakeClock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def fake_clock():
    return FakeClock()


def test_every_kind_is_counted_from_the_start_and_in_the_last_hour(fake_clock):
    alerts = Alerts({}, fake_clock)
    alerts.note(LAPSES, 3)
    fake_clock.now += WINDOW_SECONDS - 1
    alerts.note(LAPSES)
    assert alerts.report()[LAPSES] == {"total": 4, "last_hour": 4, "alert": False}
    fake_clock.now += 2
    assert alerts.report()[LAPSES] == {"total": 4, "last_hour": 1, "alert": False}
    fake_clock.now += WINDOW_SECONDS
    assert alerts.report()[LAPSES] == {"total": 4, "last_hour": 0, "alert": False}
    assert set(alerts.report()) == set(ALERT_KINDS)
    assert alerts.report()[CONFLICTS]["total"] == 0


def test_passing_the_threshold_logs_one_warning_per_window(fake_clock, caplog):
    alerts = Alerts({LAPSES: 2}, fake_clock)
    alerts.note(LAPSES, 2)
    assert alerts.report()[LAPSES]["alert"] is False
    assert caplog.records == []
    for _ in range(3):
        alerts.note(LAPSES)
    assert alerts.report()[LAPSES]["alert"] is True
    assert len(caplog.records) == 1
    assert "3 lapses in the last hour, more than 2" in caplog.text
    fake_clock.now += WINDOW_SECONDS + 1
    alerts.note(LAPSES, 3)
    assert len(caplog.records) == 2


def test_a_kind_without_a_threshold_never_warns(fake_clock, caplog):
    alerts = Alerts({LAPSES: 1}, fake_clock)
    alerts.note(CONFLICTS, 10_000)
    alerts.note(LAPSES, 0)
    assert caplog.records == []
    assert alerts.report()[CONFLICTS]["alert"] is False


def test_many_occurrences_are_counted_in_one_entry_per_second(fake_clock):
    alerts = Alerts({}, fake_clock)
    for _ in range(5_000):
        alerts.note(CONFLICTS)
        fake_clock.now += 0.001
    assert alerts.report()[CONFLICTS]["last_hour"] == 5_000
    assert len(alerts._recent[CONFLICTS]) < 1_000
