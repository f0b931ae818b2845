"""Steps of a database's clock: only certain ones are found, and no holder loses time by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.deadlines import after_clock_step
from holdfast.core.row import SECOND
from holdfast.store.postgres.clock_watch import MIN_STEP, ClockReading, find_step

NOW = 1_700_000_000 * SECOND
delays = st.integers(0, 5 * SECOND)
spans = st.integers(0, 3600 * SECOND)


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


@given(st.integers(1, 3600), st.integers(1, 3600), st.integers(-7200, 7200))
def test_a_holder_keeps_the_time_it_had_left_up_to_its_ttl(left, ttl, step):
    left, ttl, step = min(left, ttl) * SECOND, ttl * SECOND, step * SECOND
    now = NOW + step
    moved = after_clock_step(NOW + left, ttl, step, now)
    assert left <= moved - now <= ttl
    again = after_clock_step(moved, ttl, step, now)
    assert left <= again - now <= ttl, "two servers that both move it do no harm"
