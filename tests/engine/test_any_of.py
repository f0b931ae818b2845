"""Claims of any of several jobs: the first free one, and a place in every queue."""

from __future__ import annotations

import random
import threading
import time

import pytest

from holdfast.core.acl import normalise
from holdfast.core.errors import Forbidden
from holdfast.core.lease import DONE
from holdfast.core.plan import DAY
from holdfast.core.row import SECOND
from holdfast.engine.verbs.job_claims import Claimed, Done, HeldAny
from holdfast.engine.waiting.names import FAR_SECONDS
from tests.support import ACCOUNT, a_lease, claim, claim_any, once, put, release, run, transact, wait_until


def key(name):
    return ("leases", ACCOUNT, name)


def test_the_first_free_job_is_claimed(store):
    assert run(store, claim_any("a", "b", lease_id="l1")).lease.id == "a"
    assert run(store, claim_any("a", "b", lease_id="l2")).lease.id == "b"
    assert run(store, claim_any("b", "c", "a", lease_id="l3")).lease.id == "c"


def test_a_free_name_that_others_wait_for_is_passed_over(store):
    command = claim_any("a", "b", lease_id="l1").yield_to_waiters(frozenset({key("a")}))
    assert run(store, command).lease.id == "b"


def test_if_all_are_held_the_answer_names_the_one_that_ends_first(store):
    transact(store, claim("a", "l1", ttl=60 * SECOND), claim("b", "l2", ttl=30 * SECOND, owner="soon"))
    outcome = run(store, claim_any("a", "b", lease_id="l3"))
    assert type(outcome) is HeldAny
    assert outcome.lease.owner == "soon"
    assert [lease.id for lease in outcome.leases] == ["a", "b"]


def test_an_expired_job_is_free(store, clock):
    run(store, claim("a", "l1", ttl=SECOND))
    clock.advance(1)
    assert run(store, claim_any("a", "b", lease_id="l2")).lease.id == "a"


def test_done_jobs_are_passed_over_and_if_all_are_done_the_first_is_the_answer(store):
    for name in "ab":
        run(store, claim(name, f"l-{name}"))
        run(store, release(name, f"l-{name}", how=DONE, result=f'"{name}"', done_for=DAY))
    assert run(store, claim_any("a", "b", "c", lease_id="l1")).lease.id == "c"
    outcome = run(store, claim_any("a", "b", lease_id="l2"))
    assert (type(outcome), outcome.lease.result) == (Done, '"a"')
    run(store, claim("d", "l-d"))
    assert type(run(store, claim_any("a", "d", lease_id="l3"))) is HeldAny
    assert run(store, claim_any("a", "b", lease_id="l4", again=True)).lease.id == "a"


def test_one_name_that_is_forbidden_refuses_the_claim(memory):
    put(memory, a_lease("a", acl=normalise(["user:bob"])))
    with pytest.raises(Forbidden):
        run(memory, claim_any("a", "b"))


def test_a_repeated_claim_gets_the_same_job(store):
    first = run(store, claim_any("a", "b", lease_id="l1", once=once()))
    again = run(store, claim_any("b", "a", lease_id="l2", once=once()))
    assert (again.lease.id, again.lease_id, again.replayed) == (first.lease.id, "l1", True)


class Waiter:
    """A caller that waits; it gets its outcome in any thread."""

    def __init__(self, engine, command, seconds=30.0):
        self.outcome = None
        self.ticket = engine.submit(command, self, None, seconds)

    def deliver(self, replies):
        ((_, self.outcome),) = replies


@pytest.fixture
def engine(opened, started):
    engine = started(opened("memory"))
    for name in "abc":
        engine.call(claim(name, f"l-{name}"))
    return engine


def queued(engine, *lengths):
    wait_until(lambda: tuple(engine.name_waiters.length(key(name)) for name in "abc") == lengths, 5)


@pytest.mark.parametrize("freed", "abc")
def test_a_waiter_gets_whichever_is_free_first_and_leaves_the_other_queues(engine, freed):
    waiter = Waiter(engine, claim_any("a", "b", "c", lease_id="w"))
    queued(engine, 1, 1, 1)
    engine.call(release(freed, f"l-{freed}"))
    wait_until(lambda: waiter.outcome is not None, 5)
    assert waiter.outcome.lease.id == freed
    queued(engine, 0, 0, 0)


def test_a_waiter_that_came_later_is_not_served_before_one_that_waits_for_the_same_name(engine):
    first = Waiter(engine, claim("b", "w1"))
    queued(engine, 0, 1, 0)
    second = Waiter(engine, claim_any("a", "b", lease_id="w2"))
    queued(engine, 1, 2, 0)
    engine.call(release("b", "l-b"))
    wait_until(lambda: first.outcome is not None, 5)
    assert (first.outcome.lease.id, second.outcome) == ("b", None)
    engine.call(release("a", "l-a"))
    wait_until(lambda: second.outcome is not None, 5)
    assert second.outcome.lease.id == "a"


def test_a_claim_that_does_not_wait_passes_over_names_that_others_wait_for(engine):
    waiter = Waiter(engine, claim("a", "w1"))
    queued(engine, 1, 0, 0)
    engine.call(release("c", "l-c"))
    assert engine.call(claim_any("a", "c", lease_id="l2")).lease.id == "c"
    assert waiter.outcome is None


def test_a_waiter_that_leaves_lets_the_next_one_try(engine):
    gone = Waiter(engine, claim_any("a", "b", lease_id="w1"))
    stays = Waiter(engine, claim("b", "w2"))
    queued(engine, 1, 2, 0)
    engine.leave(gone.ticket)
    queued(engine, 0, 1, 0)
    engine.call(release("b", "l-b"))
    wait_until(lambda: stays.outcome is not None, 5)
    assert isinstance(stays.outcome, Claimed)


def test_a_waiter_whose_time_is_over_gets_the_holders_and_keeps_its_place(engine):
    waiter = Waiter(engine, claim_any("a", "b", lease_id="w1"), 0.05)
    wait_until(lambda: waiter.outcome is not None, 5)
    assert isinstance(waiter.outcome, HeldAny)
    Waiter(engine, claim("a", "w2"))
    again = Waiter(engine, claim_any("a", "b", lease_id="w3", waiting_id=waiter.outcome.waiting_id))
    queued(engine, 2, 1, 0)
    engine.call(release("a", "l-a"))
    wait_until(lambda: again.outcome is not None, 5)
    assert again.outcome.lease.id == "a"


def test_a_waiter_gets_a_done_job_when_its_time_is_over(engine):
    engine.call(release("b", "l-b", how=DONE, done_for=SECOND // 2))
    waiter = Waiter(engine, claim_any("a", "b", lease_id="w1"))
    queued(engine, 1, 1, 0)
    wait_until(lambda: waiter.outcome is not None, 5)
    assert waiter.outcome.lease.id == "b"


def test_a_job_that_is_done_for_long_keeps_no_alarm(engine):
    """Each claim that waits would leave one for days."""
    engine.call(release("b", "l-b", how=DONE, done_for=DAY))
    waiter = Waiter(engine, claim_any("a", "b", lease_id="w1"), 0.05)
    wait_until(lambda: waiter.outcome is not None, 5)
    assert all(moment < time.monotonic() + FAR_SECONDS for moment, *_ in engine._timer._heap)


def test_when_all_are_done_the_waiters_learn_it(engine):
    waiter = Waiter(engine, claim_any("a", "b", lease_id="w1"))
    queued(engine, 1, 1, 0)
    engine.call(release("a", "l-a", how=DONE, done_for=DAY))
    queued(engine, 1, 1, 0)
    assert waiter.outcome is None
    engine.call(release("b", "l-b", how=DONE, done_for=DAY))
    wait_until(lambda: waiter.outcome is not None, 5)
    assert isinstance(waiter.outcome, Done)
    queued(engine, 0, 0, 0)


def test_of_64_claimers_on_5_names_no_two_hold_the_same_and_all_are_served(opened, started):
    engine = started(opened("sqlite"))
    names = [f"slot-{number}" for number in range(5)]
    holding, served, lock, all_held = set(), [], threading.Lock(), threading.Event()

    def work(number):
        rng = random.Random(number)
        chosen = rng.sample(names, rng.randint(2, 5))
        claimed = engine.call(claim_any(*chosen, lease_id=f"w{number}", ttl=60 * SECOND), 60.0)
        name = claimed.lease.id
        with lock:
            assert name not in holding
            holding.add(name)
            if len(holding) == len(names):
                all_held.set()
        assert all_held.wait(60)
        threading.Event().wait(rng.uniform(0, 0.005))
        with lock:
            holding.remove(name)
            served.append(number)
        engine.call(release(name, f"w{number}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(served) == list(range(64))
    assert engine.name_waiters.size() == 0
