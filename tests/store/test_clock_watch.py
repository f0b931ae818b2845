"""Steps of a database's clock: only certain ones are found, and no holder loses time by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.deadlines import after_clock_step
from holdfast.core.row import SECOND
from holdfast.store.contract import ClockStepped
from holdfast.store.postgres.clock_watch import MIN_STEP, ClockReading, ClockWatch, find_step

NOW = 1_700_000_000 * SECOND
delays = st.integers(0, 5 * SECOND)
spans = st.integers(0, 3600 * SECOND)


@pytest.fixture
def watch():
    return ClockWatch(lanes=2)


def readings(offset, passed, delays, step=0):
    """Two readings of a clock that is ahead of ours by `offset`, each asked and answered with these delays."""
    second = passed + delays[0] + delays[1]
    return (
        ClockReading(offset + delays[0], 0, delays[0] + delays[1]),
        ClockReading(offset + second + delays[2] + step, second, second + delays[2] + delays[3]),
    )


@given(st.integers(0, NOW), spans, st.tuples(delays, delays, delays, delays))
def test_slow_answers_are_never_taken_for_a_step(offset, passed, delays):
    assert find_step(*readings(offset, passed, delays)) == 0


@given(st.integers(-NOW, NOW), st.integers(0, 60 * SECOND), st.tuples(delays, delays, delays, delays))
def test_a_step_is_never_found_larger_than_it_is_or_with_the_wrong_sign(step, passed, delays):
    found = find_step(*readings(NOW, passed, delays, step))
    assert abs(found) <= abs(step)
    assert found * step >= 0


@given(st.integers(MIN_STEP + SECOND // 10, NOW), st.sampled_from([1, -1]))
def test_a_step_between_two_quick_readings_is_found(size, sign):
    found = find_step(*readings(NOW, SECOND, (10, 10, 10, 10), sign * size))
    assert abs(found - sign * size) < SECOND // 100


@given(st.integers(0, NOW), st.integers(0, 60 * SECOND), st.tuples(delays, delays, delays, delays))
def test_a_step_forward_is_reported_no_smaller_than_it_is(step, passed, delays):
    """Who was live before the step would look expired if a wait for locks counted as time that has passed."""
    earlier, later = readings(NOW, passed, delays, step)
    watch = ClockWatch(lanes=1)
    watch.check(0, earlier)
    if find_step(earlier, later) == 0:
        watch.check(0, later)
        return
    with pytest.raises(ClockStepped) as found:
        watch.check(0, later)
    assert step <= found.value.steps[0] <= step + sum(delays) + SECOND // 10


def test_a_step_forward_is_found_by_a_reading_that_took_long(watch):
    """A batch that waits for locks has asked long before it reads the clock; a short reading comes between."""
    watch.read(ClockReading(NOW + 9 * SECOND, 9 * SECOND, 9 * SECOND + 10))
    with pytest.raises(ClockStepped) as found:
        watch.check(0, ClockReading(NOW + 15 * SECOND, 5 * SECOND, 10 * SECOND))
    assert 5 * SECOND <= found.value.steps[0] <= 6 * SECOND + SECOND // 10


def test_a_reading_that_may_be_older_than_the_last_one_is_no_step_back(watch):
    watch.read(ClockReading(NOW + 9 * SECOND, 9 * SECOND, 9 * SECOND + 10))
    watch.check(0, ClockReading(NOW + 6 * SECOND, 5 * SECOND, 10 * SECOND))
    watch.check(0, ClockReading(NOW + 11 * SECOND, 11 * SECOND, 11 * SECOND + 10))


def test_each_lane_is_told_of_each_step_once(watch):
    for second, step in ((1, 0), (2, -120), (3, -115)):
        watch.read(ClockReading(NOW + (second + step) * SECOND, second * SECOND, second * SECOND + 10))
    last = ClockReading(NOW + (4 - 115) * SECOND, 4 * SECOND, 4 * SECOND + 10)
    for lane in (0, 1):
        with pytest.raises(ClockStepped) as found:
            watch.check(lane, last)
        assert [round(step / SECOND) for step in found.value.steps] == [-120, 5]
        watch.check(lane, last)


@given(st.integers(1, 3600), st.integers(1, 3600), st.integers(-7200, 7200))
def test_a_holder_keeps_the_time_it_had_left_up_to_its_ttl(left, ttl, step):
    left, ttl, step = min(left, ttl) * SECOND, ttl * SECOND, step * SECOND
    now = NOW + step
    moved = after_clock_step(NOW + left, ttl, step, now)
    assert left <= moved - now <= ttl
    again = after_clock_step(moved, ttl, step, now)
    assert left <= again - now <= ttl, "two servers that both move it do no harm"
