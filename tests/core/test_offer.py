"""Rules of offers, the same for every row that has a lease."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import offer as offers
from holdfast.core.errors import OfferRefused, OfferRestricted
from tests.support import START, a_lease
from tests.task_commands import a_claimed

ROWS = [a_lease(session="s1", ephemeral=True), a_claimed(session="s1")]
moments = st.integers(START, START + 10_000)


def made(row, *, code="hash", to=None, lasts=1_000, now=START):
    return offers.make(row, proof=code, to=to, lasts=lasts, now=now)


@pytest.mark.parametrize("row", ROWS, ids=["job", "task"])
@given(lasts=st.lists(st.integers(1, 10_000), min_size=1, max_size=4), until=moments, now=moments)
def test_an_offer_and_a_renewal_of_it_never_shorten_the_lease(row, lasts, until, now):
    deadline = row.expires_at
    for each in lasts:
        row = made(row, lasts=each)
        assert row.expires_at >= max(deadline, START + each)
        assert offers.renewed_until(row, until, now) >= until
        if now < START + each:
            assert offers.renewed_until(row, until, now) >= row.expires_at
        deadline = row.expires_at


@pytest.mark.parametrize("row", ROWS, ids=["job", "task"])
def test_an_offered_row_has_no_session_until_the_offer_is_withdrawn_or_over(row):
    offered = made(made(row), code="newer")
    assert (offered.session, offers.claimed_for(offered)) == (None, "s1")
    assert (offers.withdraw(offered).session, offers.withdraw(offered).offer) == ("s1", None)
    assert offers.without_past_offer(offered, START + 999) is offered
    assert offers.without_past_offer(offered, START + 1_000).session == "s1"


@pytest.mark.parametrize("row", ROWS, ids=["job", "task"])
def test_only_the_code_of_the_open_offer_is_accepted(row):
    def reason(offered, code, now=START):
        with pytest.raises(OfferRefused) as caught:
            offers.check_code(offered, code, None, now)
        return caught.value.facts["reason"]

    offers.check_code(made(row), "hash", None, START + 999)
    assert reason(row, "hash") == "no_offer"
    assert reason(made(row), "other") == "wrong_code"
    assert reason(made(row), "hash", START + 1_000) == "expired"
    named = made(row, to="builder")
    offers.check_code(named, "hash", "builder", START)
    for session in (None, "other"):
        with pytest.raises(OfferRestricted):
            offers.check_code(named, "hash", session, START)
