"""The rules of sessions: who may use one, until when, and how it is resumed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core import session as sessions
from holdfast.core.errors import ContextConflict, LeaseLost, SessionExpired, SessionLive, SessionMissing, SessionTaken
from holdfast.core.row import SECOND
from holdfast.core.session import DELETED, EXPIRED, EXPIRED_REPORT_PERIOD, Context, Session
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
        (OPEN, ALICE, END + EXPIRED_REPORT_PERIOD - 1, SessionExpired),
        (OPEN, ALICE, END + EXPIRED_REPORT_PERIOD, SessionMissing),
        (SWEPT, ALICE, END + EXPIRED_REPORT_PERIOD, SessionExpired),
        (SWEPT, ALICE, END + 1 + EXPIRED_REPORT_PERIOD, SessionMissing),
        (DELETED_ONE, ALICE, START, SessionMissing),
        (OPEN, BOB, START, SessionMissing),
        (None, ALICE, START, SessionMissing),
        (Session("default", "s1", principal=ALICE.id, expires_at=END), ALICE, START, SessionMissing),
    ],
    ids=[
        "live", "last moment", "expired", "swept", "recently expired", "expired long ago", "swept recently",
        "swept and forgotten", "deleted",
        "foreign", "absent", "never stored",
    ],
)  # fmt: skip
def test_a_session_is_live_for_its_owner_until_it_expires_and_reported_as_expired_for_five_seconds(
    session, by, now, refusal
):
    if refusal is None:
        assert sessions.check_live(session, by.id, now) is session
        return
    with pytest.raises(refusal) as caught:
        sessions.check_live(session, by.id, now)
    assert type(caught.value) is refusal


def test_a_session_that_has_just_expired_can_still_be_found():
    assert sessions.find(OPEN, ALICE.id, END + EXPIRED_REPORT_PERIOD - 1) is OPEN


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


def test_keep_alive_starts_a_full_ttl_from_now():
    kept = sessions.keep_alive(OPEN, START + 5)
    assert kept == replace(OPEN, expires_at=START + 5 + OPEN.ttl)


@pytest.mark.parametrize(
    ("asked", "given"), [(None, 60), (0, 10), (-5, 10), (10, 10), (11, 11), (300, 300), (10**9, 300)]
)
def test_a_ttl_is_moved_into_its_bounds_and_never_refused(asked, given):
    assert sessions.clamp_ttl(asked) == given


# -- named sessions, which can be resumed ------------------------------------------------------------------------

NAMED = replace(
    OPEN,
    name="agent",
    secret="hash",
    proof="generation 1",
    token=3,
    generation=1,
    context="{}",
    context_version=2,
    turn=4,
)
ENDED_SESSION = sessions.end(NAMED, DELETED, START)


@pytest.mark.parametrize(
    ("session", "secret", "by", "now", "fine"),
    [
        (Session("default", "s1"), None, ALICE, START, True),
        (NAMED, "hash", ALICE, START, True),
        (NAMED, None, ALICE, START, False),
        (NAMED, "wrong", ALICE, START, False),
        (NAMED, "hash", BOB, START, False),
        (NAMED, None, ALICE, END, True),
        (NAMED, "hash", ALICE, END, True),
        (NAMED, "wrong", ALICE, END, False),
        (NAMED, None, BOB, END, False),
        (ENDED_SESSION, None, ALICE, START, True),
        (ENDED_SESSION, "hash", ALICE, START, True),
        (ENDED_SESSION, None, BOB, START, False),
        (replace(NAMED, secret=None), None, ALICE, START, False),
    ],
    ids=[
        "new", "with its secret", "live, without", "live, wrong one", "another's, with its secret", "expired, without",
        "expired, with it", "expired, wrong one", "another's, expired", "ended, without", "ended, with it",
        "another's, ended", "no secret to know",
    ],
)  # fmt: skip
def test_a_live_named_session_needs_its_secret_and_an_ended_one_only_its_principal(session, secret, by, now, fine):
    if fine:
        sessions.check_name(session, secret, by.id, now)
        return
    with pytest.raises(SessionTaken):
        sessions.check_name(session, secret, by.id, now)


def test_a_live_session_is_not_resumed_by_a_caller_that_does_not_want_to_fence_off_its_former_process():
    with pytest.raises(SessionLive) as caught:
        sessions.check_not_live(NAMED, NAMED.expires_at - 1)
    assert caught.value.facts == {"expires_at": NAMED.expires_at, "generation": NAMED.generation}
    sessions.check_not_live(NAMED, NAMED.expires_at)
    sessions.check_not_live(ENDED_SESSION, START)


def test_a_new_generation_fences_off_the_previous_one_and_keeps_the_context():
    begun = sessions.begin(ENDED_SESSION, token=9, now=START + 5)
    assert begun == replace(
        NAMED, opened_at=START + 5, expires_at=START + 5 + NAMED.ttl, proof=None, token=9, generation=2
    )
    begun = replace(begun, proof="generation 2")
    sessions.check_generation(begun, "generation 2", START + 5)
    with pytest.raises(LeaseLost) as caught:
        sessions.check_generation(begun, "generation 1", START + 5)
    assert caught.value.facts == {"held_since": START + 5}


@pytest.mark.parametrize("proof", ["generation 1", None])
def test_a_generation_may_not_act_after_the_session_expired(proof):
    sessions.check_generation(NAMED, proof, END - 1)
    with pytest.raises(SessionExpired):
        sessions.check_generation(NAMED, proof, END)


def test_omitted_context_fields_stay_unchanged_and_each_write_has_a_version():
    written = sessions.write_context(NAMED, Context(next_action="rest", context='{"a":1}'), 2)
    assert written == replace(NAMED, next_action="rest", context='{"a":1}', context_version=3)
    assert sessions.write_context(NAMED, Context(), 2) == NAMED
    assert sessions.write_context(NAMED, Context(turn=0), None).turn == 0


@pytest.mark.parametrize("seen", [1, 3])
def test_a_write_with_another_context_version_is_refused_with_the_current_one(seen):
    with pytest.raises(ContextConflict) as caught:
        sessions.write_context(NAMED, Context(turn=5), seen)
    assert caught.value.facts == {"version": 2}
