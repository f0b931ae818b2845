"""Badges: how long an invitation waits, how long a visit lasts."""

import pytest

from holdfast.core.browser_session import IDLE, INVITATION, INVITED, LONGEST, VISIT, BrowserSession, is_over, is_stale
from holdfast.core.row import SECOND
from tests.support import START


def browser_session(kind=VISIT, made_at=START, seen_at=START):
    return BrowserSession("id", kind, "a", "p", "k", made_at=made_at, seen_at=seen_at)


def test_the_numbers_are_the_promised_ones():
    assert (INVITED, IDLE, LONGEST) == (600 * SECOND, 1800 * SECOND, 43_200 * SECOND)


@pytest.mark.parametrize(
    ("worn", "ends"),
    [
        (browser_session(INVITATION), START + INVITED),
        (
            browser_session(INVITATION, seen_at=START + INVITED),
            START + INVITED,
        ),  # an invitation is not prolonged by a look
        (browser_session(), START + IDLE),
        (browser_session(seen_at=START + SECOND), START + SECOND + IDLE),
        (browser_session(seen_at=START + LONGEST - SECOND), START + LONGEST),
    ],
)
def test_a_badge_is_over_at_its_moment_and_not_a_microsecond_before(worn, ends):
    assert not is_over(worn, ends - 1)
    assert is_over(worn, ends)


def test_being_seen_is_written_down_once_a_minute():
    assert not is_stale(browser_session(), START + 60 * SECOND - 1)
    assert is_stale(browser_session(), START + 60 * SECOND)
