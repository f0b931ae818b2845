"""A session's life: who finds it, until when it acts, and how long its end is remembered."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core import session as sessions
from holdfast.core.errors import SessionExpired, SessionMissing
from holdfast.core.row import SECOND
from holdfast.core.session import DELETED, EXPIRED, MEMORY, Session
from tests.support import ALICE, BOB, START, a_session

END = START + 60 * SECOND
OPEN = replace(a_session(ends=END), version=1)
DELETED_ONE = sessions.end(OPEN, DELETED, START)
SWEPT = sessions.end(OPEN, EXPIRED, END + 1)


@pytest.mark.parametrize(
    ("session", "by", "now", "refusal"),
    [
        (OPEN, ALICE, START, None),
        (OPEN, ALICE, END - 1, None),
        (OPEN, ALICE, END, SessionExpired),
        (SWEPT, ALICE, END + 1, SessionExpired),
        (OPEN, ALICE, END + MEMORY - 1, SessionExpired),
        (OPEN, ALICE, END + MEMORY, SessionMissing),
        (SWEPT, ALICE, END + MEMORY, SessionExpired),
        (SWEPT, ALICE, END + 1 + MEMORY, SessionMissing),
        (DELETED_ONE, ALICE, START, SessionMissing),
        (OPEN, BOB, START, SessionMissing),
        (None, ALICE, START, SessionMissing),
        (Session("default", "s1", principal=ALICE.id, expires_at=END), ALICE, START, SessionMissing),
    ],
    ids=[
        "live", "last moment", "run out", "swept", "still remembered", "forgotten", "swept, still remembered",
        "swept and forgotten", "deleted",
        "foreign", "absent", "never stored",
    ],
)  # fmt: skip
def test_a_session_acts_for_its_owner_until_its_time_runs_out_and_is_then_remembered_five_seconds(
    session, by, now, refusal
):
    if refusal is None:
        assert sessions.check_live(session, by.id, now) is session
        return
    with pytest.raises(refusal) as caught:
        sessions.check_live(session, by.id, now)
    assert type(caught.value) is refusal


def test_a_session_that_has_just_run_out_can_still_be_found():
    assert sessions.find(OPEN, ALICE.id, END + MEMORY - 1) is OPEN


@pytest.mark.parametrize(
    ("session", "now", "live", "due"),
    [
        (OPEN, END - 1, True, False),
        (OPEN, END, False, True),
        (SWEPT, END + 1, False, False),
        (DELETED_ONE, START, False, False),
    ],
)
def test_an_ended_session_is_neither_live_nor_due(session, now, live, due):
    assert (sessions.is_live(session, now), sessions.is_due(session, now)) == (live, due)


def test_keeping_alive_starts_a_full_time_to_live_from_now():
    kept = sessions.keep_alive(OPEN, START + 5)
    assert kept == replace(OPEN, expires_at=START + 5 + OPEN.ttl)


@pytest.mark.parametrize(
    ("asked", "given"), [(None, 60), (0, 10), (-5, 10), (10, 10), (11, 11), (300, 300), (10**9, 300)]
)
def test_a_time_to_live_is_bounded_and_never_refused(asked, given):
    assert sessions.clamp_ttl(asked) == given
