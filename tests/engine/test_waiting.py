"""Waiting for a job: in order, served within 100 ms of release and expiry, also across servers, with a timeout."""

from __future__ import annotations

import time

import pytest

from holdfast.core.errors import Draining, TooManyWaiters
from holdfast.core.row import SECOND
from holdfast.engine.command import Held
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.engine.verbs.jobs import Changed
from holdfast.engine.verbs.locks import ReleaseLock
from holdfast.engine.waiting import names as waiting
from holdfast.store.postgres import watcher
from tests.support import (
    ACCOUNT,
    ALICE,
    CAUSE,
    STORES,
    Futures,
    Keep,
    acquire,
    claim,
    once,
    promptly,
    release,
    results,
    stop_in_time,
    wait_until,
)

pytestmark = pytest.mark.waits(6)

KEY = ("leases", ACCOUNT, "job")
PROMPT = 0.1


@pytest.fixture(params=["memory alone", "sqlite alone", "postgres alone", "two on sqlite", "two on postgres"])
def pair(request, opened, started, lasting):
    """(the engine of the holder, the engine of the waiters)."""
    if request.param.endswith("alone"):
        return (lasting(request.param.split()[0]),) * 2
    kind = request.param.split()[-1]
    return started(opened(kind)), started(opened(kind))


def start_waiters(engine, sink, *lease_ids, wait_seconds=20.0, **more):
    """Start waiting callers, in order."""
    sent = []
    for place, lease_id in enumerate(lease_ids, 1 + engine.name_waiters.length(KEY)):
        ticket, future = sink.send(engine, claim("job", lease_id, **more), wait_seconds)
        sent.append((ticket, future))
        wait_until(lambda place=place, future=future: engine.name_waiters.length(KEY) == place or future.done())
    return sent


def test_waiters_are_served_in_order_of_arrival(engine):
    sink, names = Futures(), [f"w{number:02}" for number in range(20)]
    engine.call(claim("job", "l0"))
    futures = [future for _, future in start_waiters(engine, sink, *names)]
    previous, tokens = "l0", []
    for name, future in zip(names, futures, strict=True):
        assert not future.done()
        engine.call(release("job", previous))
        tokens.append(future.result(5).lease.token)
        previous = name
    assert sink.order == names
    assert tokens == sorted(set(tokens))


def test_a_waiter_gets_the_job_soon_after_its_release(pair):
    holder, waiters = pair

    def after_release():
        late, previous = [], "l0"
        holder.call(claim("job", "l0"))
        for turn in range(5):
            sink = Futures()
            ((_, future),) = start_waiters(waiters, sink, f"w{turn}")
            holder.call(release("job", previous))
            freed = time.monotonic()
            assert isinstance(future.result(5), Claimed)
            late.append(sink.at[f"w{turn}"] - freed)
            previous = f"w{turn}"
        holder.call(release("job", previous))
        return late

    promptly(after_release, PROMPT)


def test_a_waiter_gets_the_job_soon_after_the_lease_expires_and_never_before(pair):
    holder, waiters = pair

    def after_expiry():
        late = []
        for turn in range(3):
            ttl = 0.25
            sent = time.monotonic()
            holder.call(claim("job", f"l{turn}", ttl=int(ttl * SECOND)))
            sink = Futures()
            ((_, future),) = start_waiters(waiters, sink, f"w{turn}")
            assert isinstance(future.result(5), Claimed)
            late.append(sink.at[f"w{turn}"] - sent - ttl)
            assert late[-1] >= 0
            holder.call(release("job", f"w{turn}"))
        return late

    promptly(after_expiry, PROMPT)


def test_a_release_between_the_answer_and_the_queue_is_not_missed(opened, started, monkeypatch):
    """One lane has found the job held; before its caller has joined the queue, another lane releases the job."""
    monkeypatch.setattr(watcher, "LOST_SECONDS", 60.0)  # no change is assumed that nobody has reported
    engine = started(opened("postgres"))
    engine.call(claim("job", "l0"))
    handle_not_granted, pending = engine.name_waiters.handle_not_granted, [release("job", "l0")]

    def release_first(ticket, outcome):
        while pending:
            engine.call(pending.pop())
        handle_not_granted(ticket, outcome)

    monkeypatch.setattr(engine.name_waiters, "handle_not_granted", release_first)
    _, future = Futures().send(engine, claim("job", "w1"), 20.0)
    assert isinstance(future.result(10), Claimed)


def test_waiters_on_two_servers_get_the_job_one_after_the_other(opened, started):
    here, there = started(opened("postgres")), started(opened("postgres"))
    here.call(claim("job", "l0"))
    sink = Futures()
    sent = [*start_waiters(here, sink, "h1", "h2"), *start_waiters(there, sink, "t1", "t2")]
    here.call(release("job", "l0"))
    for served in range(4):
        wait_until(lambda served=served: len(sink.order) == served + 1)
        here.call(release("job", sink.order[-1]))
    assert all(isinstance(outcome, Claimed) for outcome in results(future for _, future in sent))
    assert [name for name in sink.order if name[0] == "h"] == ["h1", "h2"]
    assert [name for name in sink.order if name[0] == "t"] == ["t1", "t2"]


def test_a_wait_that_times_out_is_answered_with_the_holder(engine):
    engine.call(claim("job", "l0", owner="the holder"))
    began = time.monotonic()
    outcome = engine.call(claim("job", "w1"), wait_seconds=0.2)
    waited = time.monotonic() - began
    assert isinstance(outcome, Held)
    assert outcome.lease.owner == "the holder"
    assert 0.2 <= waited < 1.0
    assert engine.name_waiters.length(KEY) == 0


def test_without_a_wait_the_answer_comes_at_once(engine):
    engine.call(claim("job", "l0"))
    assert isinstance(engine.call(claim("job", "w1")), Held)
    assert engine.name_waiters.length(KEY) == 0


def test_a_waiter_that_left_is_skipped(engine):
    sink = Futures()
    engine.call(claim("job", "l0"))
    (gone, nothing), (_, future) = start_waiters(engine, sink, "w1", "w2")
    engine.name_waiters.leave(gone)
    engine.call(release("job", "l0"))
    assert future.result(5).lease_id == "w2"
    assert not nothing.done()


def test_a_waiter_gets_the_name_when_its_delay_ends(engine):
    """The name of a lock may be delayed after its release; a claimer of a job waits for that too."""
    lock = engine.call(acquire("job", delay=SECOND * 3 // 10))
    engine.call(ReleaseLock(account=ACCOUNT, cause=CAUSE, by=ALICE, name="job", lease_id=lock.lease_id))
    began = time.monotonic()
    assert isinstance(engine.call(claim("job", "w1"), wait_seconds=2.0), Claimed)
    assert 0.2 < time.monotonic() - began < 1.0


def test_who_waits_already_when_a_delay_begins_gets_the_name_when_it_ends(engine, monkeypatch):
    monkeypatch.setattr(watcher, "LOST_SECONDS", 60.0)  # no change is assumed that nobody has reported
    lock = engine.call(acquire("job", delay=SECOND // 10))
    ((_, future),) = start_waiters(engine, Futures(), "w1")
    engine.call(ReleaseLock(account=ACCOUNT, cause=CAUSE, by=ALICE, name="job", lease_id=lock.lease_id))
    assert isinstance(future.result(3), Claimed)


def test_a_claim_with_an_idempotency_key_that_came_behind_others_is_granted_in_its_turn(engine):
    """Its first try gives way to those who wait; once it waits itself, it must not any more."""
    engine.call(claim("job", "l0"))
    ((_, first),) = start_waiters(engine, Futures(), "w1")
    ((_, second),) = start_waiters(engine, Futures(), "w2", once=once())
    for lease_id, future in (("l0", first), ("w1", second)):
        engine.call(release("job", lease_id))
        assert isinstance(future.result(3), Claimed)


def test_waiting_requests_with_one_idempotency_key_get_one_lease(engine):
    sink = Futures()
    engine.call(claim("job", "l0"))
    sent = start_waiters(engine, sink, "w1", "w2", once=once())
    engine.call(release("job", "l0"))
    assert [outcome.lease_id for outcome in results(future for _, future in sent)] == ["w1", "w1"]


def test_a_full_queue_refuses_more_waiters(opened, started, monkeypatch):
    monkeypatch.setattr(waiting, "MAX_OF_NAME", 2)
    engine = started(opened("memory"))
    engine.call(claim("job", "l0"))
    start_waiters(engine, Futures(), "w1", "w2")
    with pytest.raises(TooManyWaiters):
        engine.call(claim("job", "w3"), wait_seconds=5)


@pytest.mark.parametrize("kind", STORES)
def test_a_server_that_stops_answers_its_waiters(opened, started, kind):
    engine, sink = started(opened(kind)), Futures()
    engine.call(claim("job", "l0"))
    sent = start_waiters(engine, sink, "w1", "w2")
    stop_in_time(engine)
    assert [type(outcome) for outcome in results((future for _, future in sent), 1)] == [Draining, Draining]


def test_waiters_that_time_out_as_the_job_is_freed_are_each_answered_once(engine):
    """A last try from the middle of the queue must not be submitted again when its ticket becomes the head."""
    for turn in range(12):
        name, sink = f"job-{turn}", Keep()
        engine.call(claim(name, "l0"))
        for number in range(30):
            engine.submit(claim(name, f"w{number}"), sink, number, 0.15)
        time.sleep(0.14 + turn * 0.001)
        engine.call(release(name, "l0"))
        wait_until(lambda sink=sink: len(sink.replies) >= 30)
        time.sleep(0.02)
        assert sorted(ticket.slot for ticket, _ in sink.replies) == list(range(30))
        assert sum(isinstance(outcome, Claimed) for _, outcome in sink.replies) <= 1


def test_the_last_try_of_a_waiter_overtakes_nobody(opened):
    """Its time is over after the job was released, and before the claim of the first waiter runs."""
    engine, sink = Engine(opened("memory")), Keep()
    engine.watch()
    lane = engine.lanes.all[0]
    engine.submit(claim("job", "l0"), sink)
    for lease_id in ("w1", "w2"):
        lane.run(engine._backlog.take(0))
        ticket = engine.submit(claim("job", lease_id), sink, wait_seconds=30.0)
    lane.run(engine._backlog.take(0))
    engine.submit(release("job", "l0"), sink)
    engine.name_waiters._time_out(ticket)
    while batch := engine._backlog.take(0):
        lane.run(batch)
    outcomes = [(each.command.lease_id, type(outcome)) for each, outcome in sink.replies]
    assert sorted(outcomes, key=str) == [("l0", Claimed), ("l0", Changed), ("w1", Claimed), ("w2", Held)]
