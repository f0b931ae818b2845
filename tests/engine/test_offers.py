"""Offers of jobs: the taker becomes the owner in one transaction, and nothing else can end or shorten the lease."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from holdfast.core import offer as offers
from holdfast.core.errors import LeaseLost, OfferRefused, OfferRestricted
from holdfast.core.event import Event
from holdfast.core.lease import EXPIRED, HANDED_OVER, RELEASED, SESSION_ENDED, Lease, last_ending
from holdfast.core.row import SECOND
from holdfast.engine.clock_repair import MoveDeadline
from holdfast.engine.command import Held
from holdfast.engine.expiry import ExpireSession, GiveGrace
from holdfast.engine.verbs.job_claims import Claimed
from tests.support import (
    ACCOUNT,
    BOB,
    CAUSE,
    START,
    acquire,
    check_log,
    claim,
    every,
    heartbeat,
    in_background,
    in_time,
    offer,
    once,
    release,
    run,
    transact,
    wait_until,
    withdraw,
)  # fmt: skip
from tests.task_commands import begin, close_session, heartbeat_session, sweep

END = START + 600 * SECOND
"""The end of an offer that is made at the start."""


def row(store, name="job"):
    with store.read() as reader:
        return reader.row(Lease, ACCOUNT, name)


def kinds(store, subject="lease:job"):
    return [event.kind for event in every(store, Event) if event.subject == subject]


def refused(store, command, reason):
    """The claim is refused for this reason and changes nothing."""
    before = row(store)
    with pytest.raises(OfferRefused) as caught:
        run(store, command)
    assert caught.value.facts["reason"] == reason
    assert row(store) == before


@pytest.fixture
def held(store):
    """A store with a held job."""
    run(store, claim("job", "l1", owner="giver"))
    return store


@pytest.fixture
def held_in_session(store):
    """A store with a job that a named session holds."""
    run(store, begin(ttl=60 * SECOND))
    run(store, claim("job", "l1", owner="giver", session_id="s1"))
    return store


def test_a_taker_owns_an_offered_job_at_once_with_what_the_giver_left(held, clock):
    token = row(held).token
    run(held, offer(note="half way", checkpoint='{"step":3}'))
    clock.advance(300)
    taken = run(held, claim("job", "l2", owner="taker", by=BOB, offer="code-1"))
    assert isinstance(taken, Claimed)
    assert (taken.lease.owner, taken.lease.principal, taken.lease.offer) == ("taker", BOB.id, None)
    assert taken.lease.token > token
    assert taken.lease.expires_at == clock.now + 60 * SECOND
    assert (taken.previous.how, taken.previous.owner, taken.previous.note) == (HANDED_OVER, "giver", "half way")
    assert taken.previous_checkpoint == '{"step":3}'
    assert kinds(held) == ["lease.claimed", "lease.offered", "lease.handed_over", "lease.claimed"]
    check_log(held)


def test_the_giver_learns_who_took_its_job_over(held):
    transact(held, offer(), claim("job", "l2", owner="taker", offer="code-1"))
    for command in (heartbeat(), release(), offer(code="code-2"), withdraw()):
        with pytest.raises(LeaseLost, match="taker accepted your offer") as caught:
            run(held, command)
        facts = caught.value.facts
        assert (facts["ended"], facts["ended_by"], facts["held_by"]) == (HANDED_OVER, "taker", "taker")


def test_an_offer_extends_the_lease_and_never_shortens_it(held, clock):
    assert run(held, offer()).lease.expires_at == END
    assert run(held, offer(code="code-2", lasts=SECOND)).lease.expires_at == END
    clock.now = END - 10 * SECOND
    assert run(held, heartbeat()).lease.expires_at == END + 50 * SECOND


def test_a_heartbeat_never_shortens_an_offered_lease(held):
    run(held, offer())
    renewed = run(held, heartbeat(ttl=5 * SECOND)).lease
    assert (renewed.expires_at, renewed.ttl) == (END, 5 * SECOND)


def test_only_a_hash_of_the_code_is_stored(held):
    run(held, offer(code="the-secret-code"))
    stored = [*map(asdict, every(held, Lease)), *map(asdict, every(held, Event))]
    assert "the-secret-code" not in repr(stored)


def test_a_code_that_accepts_no_open_offer_is_refused_and_changes_nothing(held, clock):
    refused(held, claim("job", "l2", offer="code-1"), "no_offer")
    run(held, offer())
    refused(held, claim("job", "l2", offer="code-x"), "wrong_code")
    run(held, offer(code="code-2"))
    refused(held, claim("job", "l2", offer="code-1"), "wrong_code")
    run(held, withdraw())
    refused(held, claim("job", "l2", offer="code-2"), "no_offer")
    run(held, offer(code="code-3"))
    clock.now = END - 30 * SECOND
    run(held, heartbeat())
    clock.now = END
    refused(held, claim("job", "l2", offer="code-3"), "expired")
    refused(held, claim("other", "l2", offer="code-3"), "no_offer")
    check_log(held)


def test_a_lock_cannot_be_offered(store):
    lease_id = run(store, acquire("job")).lease_id
    with pytest.raises(OfferRefused, match="held as a lock"):
        run(store, offer("job", lease_id))
    assert row(store).offer is None


def test_an_accepted_code_works_once(held):
    run(held, offer())
    run(held, claim("job", "l2", offer="code-1"))
    refused(held, claim("job", "l3", offer="code-1"), "no_offer")


def test_an_offer_to_a_session_is_for_that_session_alone(store):
    run(store, claim("job", "l1"))
    run(store, offer(to="builder"))
    run(store, begin("other", name="other"))
    for more in ({}, {"session_id": "other"}):
        with pytest.raises(OfferRestricted) as caught:
            run(store, claim("job", "l2", offer="code-1", **more))
        assert caught.value.facts == {"to": "builder"}
    run(store, begin("s-builder", name="builder", seed="life-2"))
    taken = run(store, claim("job", "l2", offer="code-1", session_id="s-builder"))
    assert (taken.lease.session, taken.lease.ephemeral) == ("s-builder", True)


def test_a_lease_that_nobody_takes_expires_at_the_end_of_the_offer(held, clock):
    run(held, offer())
    clock.now = END - 1
    sweep(held)
    assert row(held).proof is not None
    clock.now = END
    sweep(held)
    assert (row(held).offer, last_ending(row(held)).how) == (None, EXPIRED)
    check_log(held)


def test_a_release_by_the_giver_ends_the_offer(held):
    run(held, offer())
    run(held, release())
    assert (row(held).offer, last_ending(row(held)).how) == (None, RELEASED)
    refused(held, claim("job", "l2", offer="code-1"), "no_offer")
    assert isinstance(run(held, claim("job", "l2")), Claimed)


def test_a_withdrawn_offer_leaves_the_ordinary_deadline(held, clock):
    run(held, offer())
    clock.advance(100)
    assert run(held, withdraw()).lease.expires_at == clock.now + 60 * SECOND
    assert kinds(held)[-1] == "lease.offer_withdrawn"
    run(held, withdraw())
    assert kinds(held)[-1] == "lease.offer_withdrawn", "withdrawing it again changes nothing"
    check_log(held)


@pytest.mark.parametrize("how", ["closed", "expired", "resumed", "renewed"])
def test_the_session_does_not_touch_a_job_while_it_is_offered(held_in_session, clock, how):
    store = held_in_session
    run(store, offer())
    before = row(store)
    assert before.session is None
    if how == "closed":
        run(store, close_session())
    elif how == "expired":
        clock.advance(61)
        assert run(store, ExpireSession(account=ACCOUNT, cause=CAUSE, session_id="s1"))
    elif how == "resumed":
        assert run(store, begin(seed="life-2", secret="secret-life-1")).jobs == ()
    else:
        run(store, heartbeat_session())
    assert row(store) == before
    assert isinstance(run(store, claim("job", "l2", owner="taker", offer="code-1")), Claimed)
    check_log(store)


def test_a_withdrawn_offer_puts_the_job_back_into_its_session(held_in_session):
    run(held_in_session, offer())
    run(held_in_session, offer(code="code-2"))
    assert run(held_in_session, withdraw()).lease.session == "s1"
    run(held_in_session, close_session())
    assert last_ending(row(held_in_session)).how == SESSION_ENDED


def test_a_withdrawn_offer_ends_the_lease_if_its_session_is_over(held_in_session):
    transact(held_in_session, offer(), close_session())
    assert run(held_in_session, withdraw()).lease.proof is None
    assert last_ending(row(held_in_session)).how == SESSION_ENDED
    check_log(held_in_session)


def test_after_the_end_of_the_offer_a_job_belongs_to_its_session_again(held_in_session, clock):
    store = held_in_session
    run(store, offer(lasts=30 * SECOND))
    clock.advance(30)
    run(store, heartbeat())
    assert (row(store).session, row(store).offer) == ("s1", None)
    run(store, offer(lasts=30 * SECOND))
    run(store, close_session())
    clock.advance(30)
    with pytest.raises(LeaseLost, match="session"):
        run(store, heartbeat())


def test_a_claim_with_an_offer_under_an_idempotency_key_is_replayed(held):
    run(held, offer())
    first = run(held, claim("job", "l2", offer="code-1", once=once()))
    again = run(held, claim("job", "l3", offer="code-1", once=once()))
    assert (again.replayed, again.lease_id, again.lease.token) == (True, "l2", first.lease.token)
    run(held, release("job", "l2"))
    with pytest.raises(LeaseLost):
        run(held, claim("job", "l3", offer="code-1", once=once()))


def test_a_claim_with_an_offer_overtakes_those_that_wait(engine):
    engine.call(claim("job", "l1"))
    waiting = in_background(lambda: engine.call(claim("job", "l2", owner="waiter"), 30))
    wait_until(lambda: engine.name_waiters.length(("leases", ACCOUNT, "job")) == 1)
    engine.call(offer())
    taken = in_time(lambda: engine.call(claim("job", "l3", owner="taker", offer="code-1"), 60))
    assert (type(taken), taken.lease.owner) == (Claimed, "taker")
    assert isinstance(engine.call(claim("job", "l4")), Held)
    engine.call(release("job", "l3"))
    assert waiting.result(10).lease.owner == "waiter"


def test_grace_after_an_outage_keeps_the_offer_open(held, clock):
    run(held, offer(lasts=60 * SECOND))
    key = ("leases", ACCOUNT, "job")
    clock.advance(3600)
    assert run(held, GiveGrace(account=ACCOUNT, cause=CAUSE, key=key, last_beat=START + SECOND))
    assert row(held).expires_at == offers.offer_of(row(held)).until == clock.now + 60 * SECOND
    assert isinstance(run(held, claim("job", "l2", offer="code-1")), Claimed)


def test_an_offer_follows_the_clock_when_it_is_set(held, clock):
    run(held, offer())
    key = ("leases", ACCOUNT, "job")
    clock.advance(100)
    assert run(held, MoveDeadline(account=ACCOUNT, cause=CAUSE, key=key, step=SECOND))
    assert row(held).expires_at == offers.offer_of(row(held)).until == END + SECOND
    before = row(held)
    assert not run(held, MoveDeadline(account=ACCOUNT, cause=CAUSE, key=key, step=-SECOND))
    assert row(held) == before, "a step back does not shorten it to its TTL"
