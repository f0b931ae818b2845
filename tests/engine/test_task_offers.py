"""Offers of tasks: the taker continues the attempt of the giver in one transaction."""

from __future__ import annotations

import pytest

from holdfast.core.errors import (
    LeaseSuperseded,
    OfferRefused,
    OfferRestricted,
    SessionBusy,
)
from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.core.task import (
    CANCELLED,
    CLAIMED,
    COMPLETED,
    HANDED_OVER,
    PENDING,
    SESSION_ENDED,
    Handover,
    last_attempt,
)
from holdfast.core.task.attempts import list_attempts
from tests.support import START, check_log, every, run, transact
from tests.task_commands import (
    LEASE,
    beat,
    begin,
    cancel,
    close_session,
    complete,
    create,
    event_kinds,
    fail,
    offer_task,
    release_task,
    sweep,
    take,
    take_this,
    the_task,
    withdraw_task,
)

END = START + 600 * SECOND


def refused(store, command, reason):
    """The claim is refused for this reason and changes nothing."""
    before = the_task(store)
    with pytest.raises(OfferRefused) as caught:
        run(store, command)
    assert caught.value.facts["reason"] == reason
    assert the_task(store) == before


def test_a_taker_continues_the_attempt_with_what_the_giver_left(claimed_store, clock):
    before = the_task(claimed_store)
    run(claimed_store, offer_task(handover=Handover(note="half way", checkpoint='{"step":3}')))
    assert the_task(claimed_store).expires_at == END
    clock.advance(500)
    (taken,) = run(claimed_store, take_this(seed="s2", worker="second", offer="code-1")).taken
    task = taken.task
    assert (task.worker, task.attempt_count, task.attempt) == ("second", before.attempt_count, before.attempt + 1)
    assert task.token > before.token
    assert (task.offer, task.expires_at) == (None, clock.now + LEASE)
    last = last_attempt(task)
    assert (last.outcome, last.worker, last.note) == (HANDED_OVER, "first", "half way")
    assert task.ended_checkpoint == '{"step":3}'
    assert event_kinds(claimed_store) == ["created", "claimed", "offered", "handed_over", "claimed"]
    check_log(claimed_store)
    run(claimed_store, complete(seed="s2"))
    attempts = list_attempts(every(claimed_store, Event))
    assert [(each.worker, each.outcome) for each in attempts] == [("first", HANDED_OVER), ("second", COMPLETED)]


def test_the_last_attempt_can_be_handed_over(store):
    transact(store, create("t1", max_attempts=1), take("work"), offer_task())
    run(store, take_this(seed="s2", offer="code-1"))
    assert (the_task(store).state, the_task(store).attempt_count) == (CLAIMED, 1)


def test_the_giver_of_a_task_learns_who_took_it_over(claimed_store):
    transact(claimed_store, offer_task(), take_this(seed="s2", worker="second", offer="code-1"))
    for command in (beat(), complete(), fail(), release_task(), offer_task(code="code-2"), withdraw_task()):
        with pytest.raises(LeaseSuperseded, match="second accepted your offer") as caught:
            run(claimed_store, command)
        assert caught.value.facts["held_by"] == "second"


def test_a_code_that_accepts_no_open_offer_of_the_task_is_refused(claimed_store, clock):
    refused(claimed_store, take_this(seed="s2", offer="code-1"), "no_offer")
    run(claimed_store, offer_task())
    refused(claimed_store, take_this(seed="s2", offer="code-x"), "wrong_code")
    run(claimed_store, withdraw_task())
    refused(claimed_store, take_this(seed="s2", offer="code-1"), "no_offer")
    run(claimed_store, offer_task())
    clock.now = END - SECOND
    run(claimed_store, beat())
    clock.now = END
    refused(claimed_store, take_this(seed="s2", offer="code-1"), "expired")


def test_an_offered_task_that_nobody_takes_expires_at_the_end_of_the_offer(claimed_store, clock):
    run(claimed_store, offer_task())
    clock.now = END - 1
    sweep(claimed_store)
    assert the_task(claimed_store).state == CLAIMED
    clock.now = END
    sweep(claimed_store)
    assert (the_task(claimed_store).state, the_task(claimed_store).offer) == (PENDING, None)
    check_log(claimed_store)


def test_heartbeats_never_shorten_an_offered_task(claimed_store, clock):
    run(claimed_store, offer_task())
    assert run(claimed_store, beat()).task.expires_at == END
    clock.now = END - SECOND
    assert run(claimed_store, beat()).task.expires_at == clock.now + LEASE


def test_withdrawing_the_offer_of_a_task_leaves_its_ordinary_deadline(claimed_store, clock):
    run(claimed_store, offer_task())
    clock.advance(100)
    assert run(claimed_store, withdraw_task()).task.expires_at == clock.now + LEASE
    run(claimed_store, withdraw_task())
    assert event_kinds(claimed_store)[-2:] == ["offered", "offer_withdrawn"]


@pytest.mark.parametrize("end", [complete, fail, release_task])
def test_the_giver_can_end_a_task_that_it_offered(claimed_store, end):
    run(claimed_store, offer_task())
    run(claimed_store, end())
    assert the_task(claimed_store).offer is None
    with pytest.raises(OfferRefused):
        run(claimed_store, take_this(seed="s2", offer="code-1"))
    check_log(claimed_store)


def test_the_session_does_not_touch_an_offered_task(store):
    transact(store, begin(), create("t1"), take("work", session_id="s1"))
    run(store, offer_task())
    before = the_task(store)
    run(store, close_session())
    assert the_task(store) == before
    assert run(store, withdraw_task()).task.state == PENDING
    assert last_attempt(the_task(store)).outcome == SESSION_ENDED


def test_an_offer_of_a_task_can_name_the_session_that_may_take_it(store):
    transact(store, create("t1"), take("work"), offer_task(to="builder"))
    with pytest.raises(OfferRestricted):
        run(store, take_this(seed="s2", offer="code-1"))
    run(store, begin("s-builder", name="builder"))
    (taken,) = run(store, take_this(seed="s2", offer="code-1", session_id="s-builder")).taken
    assert taken.task.session == "s-builder"


def test_a_session_lane_with_a_task_in_flight_cannot_take_another_over(store):
    transact(store, begin(lane=True), create("t1"), create("t2"), take("work", seed="s2", session_id="s1"))
    transact(store, take_this("t2"), offer_task("t2"))
    with pytest.raises(SessionBusy):
        run(store, take_this("t2", seed="s3", offer="code-1", session_id="s1"))


def test_a_request_to_cancel_reaches_the_taker(claimed_store):
    run(claimed_store, offer_task())
    run(claimed_store, cancel(mode="request"))
    (taken,) = run(claimed_store, take_this(seed="s2", offer="code-1")).taken
    assert taken.task.cancel_requested
    run(claimed_store, release_task(seed="s2"))
    assert the_task(claimed_store).state == CANCELLED
