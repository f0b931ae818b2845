"""The clock of a SQLite file: wall-clock steps neither end nor extend a lease; after a reboot the later time counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.row import SECOND
from holdfast.store.sqlite.clock import Mark, Reading, advance, read
from tests.support import START

HOUR = 3600 * SECOND
MARK = Mark(START, "boot-1", 1000 * SECOND)


def reading(elapsed, wall_ahead, boot_id="boot-1"):
    return Reading(boot_id, MARK.boot_at + elapsed, START + elapsed + wall_ahead)


def test_time_passes_with_the_boot_clock():
    assert advance(MARK, reading(5 * SECOND, 0)) == START + 5 * SECOND


@pytest.mark.parametrize("step", [-30 * 365 * 24 * HOUR, -HOUR, -SECOND, SECOND, HOUR, 30 * 365 * 24 * HOUR])
def test_a_step_of_the_wall_clock_moves_time_by_at_most_500_parts_in_a_million(step):
    difference = advance(MARK, reading(100 * SECOND, step)) - (START + 100 * SECOND)
    assert difference == (50_000 if step > 0 else -50_000)


def test_a_small_clock_error_is_corrected_without_overshoot():
    assert advance(MARK, reading(100 * SECOND, 49_999)) == START + 100 * SECOND + 49_999
    assert advance(MARK, reading(100 * SECOND, -49_999)) == START + 100 * SECOND - 49_999


@given(elapsed=st.integers(0, 30 * 24 * HOUR), wall_offset=st.integers(-(10**16), 10**16))
def test_time_never_goes_back_and_stays_within_the_slew_of_the_boot_clock(elapsed, wall_offset):
    now = advance(MARK, reading(elapsed, wall_offset))
    assert now >= MARK.now
    assert abs(now - MARK.now - elapsed) <= elapsed * 500 // 1_000_000


@given(st.lists(st.tuples(st.integers(0, HOUR), st.integers(-(10**13), 10**13)), min_size=1, max_size=8))
def test_over_many_commits_a_wandering_wall_clock_stays_within_the_slew(steps):
    mark, elapsed = MARK, 0
    for passed, wall_offset in steps:
        elapsed += passed
        seen = reading(elapsed, wall_offset)
        now = advance(mark, seen)
        assert now >= mark.now
        mark = Mark(now, seen.boot_id, seen.boot_at)
    assert abs(mark.now - START - elapsed) <= elapsed * 500 // 1_000_000


@pytest.mark.parametrize(("wall_ahead", "expected"), [(HOUR, HOUR), (0, 0), (-HOUR, 0)])
def test_a_new_boot_starts_at_the_later_of_the_wall_clock_and_the_last_commit(wall_ahead, expected):
    assert advance(MARK, Reading("boot-2", 3, START + wall_ahead)) == START + expected


def test_time_stops_while_the_boot_clock_is_behind():
    assert advance(MARK, reading(-HOUR, HOUR)) == START


def test_the_clocks_of_this_machine_can_be_read():
    first, second = read(), read()
    assert first.boot_id == second.boot_id != ""
    assert second.boot_at >= first.boot_at > 0
    assert abs(second.wall - first.wall) < HOUR
