"""Offers of reservations on every store: a taker owns the files in one transaction, and nobody in between."""

from __future__ import annotations

import pytest

from holdfast.core.errors import LeaseLost, OfferRefused, OfferRestricted
from holdfast.core.row import SECOND
from holdfast.engine.verbs.reservation_claims import Reserved, TakeReservation
from holdfast.engine.verbs.reservation_offers import OfferReservation, WithdrawReservationOffer
from holdfast.engine.verbs.reservations import FilesHeld
from holdfast.engine.verbs.sessions import BeginSession, CloseSession
from tests.reservation_commands import release_paths, renew, reserve
from tests.support import ACCOUNT, ALICE, BOB, CAUSE, check_log, run

HOUR = 3600 * SECOND


def offer(name, code="code", lasts=HOUR, **more):
    return OfferReservation(
        account=ACCOUNT, cause=CAUSE, reservation_id=name, lease_id=name, code=code, lasts=lasts, **more
    )


def withdraw(name):
    return WithdrawReservationOffer(account=ACCOUNT, cause=CAUSE, reservation_id=name, lease_id=name)


def take(name, code="code", lease_id="taken", owner="taker", by=BOB, **more):
    return TakeReservation(
        account=ACCOUNT, cause=CAUSE, by=by, reservation_id=name, lease_id=lease_id, code=code, owner=owner,
        ttl=60 * SECOND, **more,
    )  # fmt: skip


def begin(name, by=BOB, **more):
    return BeginSession(
        account=ACCOUNT,
        cause=CAUSE,
        by=by,
        session_id=f"s-{name}",
        name=name,
        ttl=60 * SECOND,
        fresh_secret=name,
        **more,
    )


def test_a_taker_owns_the_same_files_under_a_larger_token(store):
    first = run(store, reserve("a", "src/", "README.md"))
    run(store, offer("a", note="half done", checkpoint='{"step":2}'))
    taken = run(store, take("a"))
    assert type(taken) is Reserved
    assert (taken.row.owner, taken.row.principal, taken.lease_id) == ("taker", BOB.id, "taken")
    assert taken.row.token > first.row.token
    assert (taken.row.note, taken.row.checkpoint) == ("half done", '{"step":2}')
    with pytest.raises(LeaseLost, match="taker accepted your offer"):
        run(store, renew("a"))
    assert type(run(store, reserve("b", "src/x"))) is FilesHeld
    run(store, release_paths("a", lease_id="taken"))
    assert type(run(store, reserve("b", "src/x"))) is Reserved
    check_log(store)


def test_an_offered_reservation_is_held_until_the_end_of_the_offer(store, clock):
    run(store, reserve("a", "x", ttl=60 * SECOND))
    run(store, offer("a", lasts=HOUR))
    clock.advance(3599)
    assert type(run(store, reserve("b", "x"))) is FilesHeld
    clock.advance(1)
    assert type(run(store, reserve("b", "x"))) is Reserved
    with pytest.raises(OfferRefused):
        run(store, take("a"))


def test_a_heartbeat_does_not_shorten_it_and_withdrawing_restores_the_ordinary_deadline(store, clock):
    run(store, reserve("a", "x", ttl=60 * SECOND))
    run(store, offer("a"))
    assert run(store, renew("a")).row.expires_at == clock.now + HOUR
    assert run(store, withdraw("a")).row.expires_at == clock.now + 60 * SECOND
    with pytest.raises(OfferRefused, match="no open offer"):
        run(store, take("a"))
    assert run(store, withdraw("a")).row.expires_at == clock.now + 60 * SECOND
    check_log(store)


def test_a_wrong_or_replaced_code_is_refused_and_changes_nothing(store):
    run(store, reserve("a", "x"))
    run(store, offer("a", code="old"))
    run(store, offer("a", code="new"))
    for code in ("old", "wrong"):
        with pytest.raises(OfferRefused, match="newer offer"):
            run(store, take("a", code=code))
    assert type(run(store, take("a", code="new"))) is Reserved
    with pytest.raises(OfferRefused):
        run(store, take("a", code="new", lease_id="again"))


def test_an_offer_outlives_the_session_of_the_giver(store):
    run(store, begin("giver", by=ALICE))
    run(store, reserve("a", "x", session="s-giver"))
    run(store, offer("a"))
    run(store, CloseSession(account=ACCOUNT, cause=CAUSE, by=ALICE, session_id="s-giver", lease_id=lease_of(store)))
    assert type(run(store, reserve("b", "x"))) is FilesHeld
    assert type(run(store, take("a"))) is Reserved
    check_log(store)


def test_withdrawing_ends_it_if_the_session_is_over(store):
    run(store, begin("giver", by=ALICE))
    run(store, reserve("a", "x", session="s-giver"))
    run(store, offer("a"))
    run(store, CloseSession(account=ACCOUNT, cause=CAUSE, by=ALICE, session_id="s-giver", lease_id=lease_of(store)))
    assert run(store, withdraw("a")).row.ended_how == "session_ended"
    assert type(run(store, reserve("b", "x"))) is Reserved


def test_an_offer_to_a_session_is_accepted_by_that_one_only(store):
    run(store, begin("right"))
    run(store, begin("wrong"))
    run(store, reserve("a", "x"))
    run(store, offer("a", to="right"))
    for more in ({}, {"session_id": "s-wrong"}):
        with pytest.raises(OfferRestricted):
            run(store, take("a", **more))
    assert run(store, take("a", session_id="s-right")).row.session == "s-right"


def lease_of(store):
    """The lease id of the giver's session, which is resumed for that."""
    return run(store, begin("giver", by=ALICE, secret="giver")).lease_id
