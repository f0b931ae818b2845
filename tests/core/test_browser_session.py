"""Lifetimes of browser sessions and sign-in links."""

import pytest

from holdfast.core.browser_session import (
    IDLE_TIMEOUT,
    LINK_LIFETIME,
    MAX_LIFETIME,
    SESSION,
    SIGN_IN_LINK,
    BrowserSession,
    is_expired,
    needs_seen_update,
)
from holdfast.core.row import SECOND
from tests.support import START


def browser_session(kind=SESSION, made_at=START, seen_at=START):
    return BrowserSession("id", kind, "a", "p", "k", made_at=made_at, seen_at=seen_at)


def test_the_lifetimes_are_the_documented_ones():
    assert (LINK_LIFETIME, IDLE_TIMEOUT, MAX_LIFETIME) == (600 * SECOND, 1800 * SECOND, 43_200 * SECOND)


@pytest.mark.parametrize(
    ("worn", "ends"),
    [
        (browser_session(SIGN_IN_LINK), START + LINK_LIFETIME),
        (
            browser_session(SIGN_IN_LINK, seen_at=START + LINK_LIFETIME),
            START + LINK_LIFETIME,
        ),  # using a sign-in link does not extend it
        (browser_session(), START + IDLE_TIMEOUT),
        (browser_session(seen_at=START + SECOND), START + SECOND + IDLE_TIMEOUT),
        (browser_session(seen_at=START + MAX_LIFETIME - SECOND), START + MAX_LIFETIME),
    ],
)
def test_a_session_expires_at_its_deadline_and_not_a_microsecond_before(worn, ends):
    assert not is_expired(worn, ends - 1)
    assert is_expired(worn, ends)


def test_seen_at_is_updated_once_a_minute():
    assert not needs_seen_update(browser_session(), START + 60 * SECOND - 1)
    assert needs_seen_update(browser_session(), START + 60 * SECOND)
