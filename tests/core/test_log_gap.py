"""The gap that a restore leaves in the log: wide enough, marked, and crossed only by readers that missed nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.log_gap import (
    MIN_JUMP,
    RESTORED,
    counter_jump,
    is_log_subject,
    is_next,
    last_kept_seq,
    restore_event,
)
from holdfast.core.row import SECOND

TAKEN = 1_800_000_000 * SECOND
CENTURY = 100 * 366 * 86_400 * SECOND


def mark(last=100, later=0, used=0):
    return restore_event("a", last, TAKEN, TAKEN + later, used=used)


def test_only_a_cursor_at_the_last_kept_event_or_just_before_the_mark_continues():
    event = mark(last=100)
    cursors = [0, 99, 100, 101, 5_000, event.seq - 2, event.seq - 1, event.seq]
    assert [cursor for cursor in cursors if is_next(event, cursor)] == [100, event.seq - 1]


def test_an_ordinary_event_follows_only_the_previous_number():
    event = mark(last=100)
    plain = type(event)("a", "lease:x", 1, "lease.claimed", 0, "me", "", "{}", seq=7)
    assert [cursor for cursor in range(10) if is_next(plain, cursor)] == [6]


@given(last=st.integers(0, 10**12), later=st.integers(-SECOND, CENTURY))
def test_the_mark_is_beyond_every_number_that_can_have_been_used(last, later):
    event = mark(last, later)
    assert event.seq > last + MIN_JUMP
    assert last_kept_seq(event) == last
    assert event.seq < 2**53
    assert event.kind == RESTORED
    assert is_log_subject(event.subject)


@given(first=st.integers(0, CENTURY), lived=st.integers(1, 365 * 86_400 * SECOND))
def test_restoring_a_backup_twice_uses_no_number_twice(first, lived):
    """Between two restores less than one token per microsecond is granted."""
    granted_until = counter_jump(TAKEN, TAKEN + first) + lived
    assert counter_jump(TAKEN, TAKEN + first + lived) >= granted_until


@pytest.mark.parametrize(("used", "beyond"), [(0, 100), (10**10, 10**10)])
def test_the_mark_is_beyond_the_highest_number_known_to_be_used(used, beyond):
    assert mark(last=100, used=used).seq > beyond + MIN_JUMP
