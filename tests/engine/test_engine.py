"""The engine: many callers share transactions, and each is answered exactly once."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress

import pytest
from msgspec.structs import replace

from holdfast.core.errors import Draining, LeaseLost, LockLimit, Overloaded
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.engine.command import Command, Held, LeaseOutcome
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.store.needs import Needs
from tests.engine.callback_locks import LockWithCallback
from tests.support import (
    ACCOUNT,
    ALICE,
    CAUSE,
    Futures,
    Keep,
    acquire,
    check_log,
    claim,
    every,
    once,
    release,
    results,
    stop_in_time,
    wait_until,
)

KEY = ("leases", ACCOUNT, "job")


class Pause(Command[None], frozen=True):
    """A command that blocks its lane until it is released."""

    reached: threading.Event
    go_on: threading.Event

    def needs(self):
        return Needs()

    def decide(self, view):
        self.reached.set()
        assert self.go_on.wait(10)


@pytest.fixture
def paused():
    """Factory that blocks the lane of an engine; calling its result releases the lane."""
    events = []

    def paused(engine):
        pause = Pause(account=ACCOUNT, cause=CAUSE, reached=threading.Event(), go_on=threading.Event())
        events.append(pause.go_on)
        engine.submit(pause, Keep())
        assert pause.reached.wait(5)
        return pause.go_on.set

    yield paused
    for barrier in events:
        barrier.set()


def test_a_script_can_call_the_engine_directly(engine):
    claimed = engine.call(claim("job", "l1"))
    assert isinstance(claimed, Claimed)
    assert isinstance(engine.call(claim("job", "l2")), Held)
    assert engine.read(lambda reader: reader.row(Lease, ACCOUNT, "job")) == claimed.lease
    with pytest.raises(LeaseLost):
        engine.call(release("job", "l2"))
    engine.call(release("job", "l1"))
    assert engine.call(claim("job", "l3")).lease.token > claimed.lease.token
    check_log(engine.store)


def test_queued_commands_share_a_transaction(opened, started, paused):
    engine = started(opened("memory"))
    sink, go_on = Futures(), paused(engine)
    sent = [sink.send(engine, claim(f"job-{number}", f"l{number}"))[1] for number in range(100)]
    transactions = []
    engine.lanes.all[0]._store = counted = engine.store
    original = counted.transaction
    counted.transaction = lambda lane=0: transactions.append(lane) or original(lane)
    go_on()
    assert all(isinstance(outcome, Claimed) for outcome in results(sent))
    assert len(transactions) == 1


def test_max_batch_limits_a_transaction(opened, started, paused):
    engine = started(opened("memory"), max_batch=1)
    sink, go_on = Futures(), paused(engine)
    sent = [sink.send(engine, claim(f"job-{number}", f"l{number}"))[1] for number in range(5)]
    transactions = []
    original = engine.store.transaction
    engine.store.transaction = lambda lane=0: transactions.append(lane) or original(lane)
    go_on()
    results(sent)
    assert len(transactions) == 5


def test_a_full_backlog_is_refused_at_once(opened, started, paused):
    engine = started(opened("memory"), max_queued=2)
    go_on = paused(engine)
    sink = Futures()
    sent = [sink.send(engine, claim(name, name))[1] for name in "ab"]
    with pytest.raises(Overloaded):
        engine.call(claim("c", "c"))
    go_on()
    assert all(isinstance(outcome, Claimed) for outcome in results(sent))


@pytest.mark.parametrize("size", [1, 3])
def test_stopping_finishes_accepted_commands(opened, size):
    engine = Engine(opened("memory"))
    engine.start()
    sink = Futures()
    sent = [sink.send(engine, claim(f"job-{number}", f"l{number}"))[1] for number in range(size)]
    stop_in_time(engine)
    assert all(isinstance(outcome, Claimed) for outcome in results(sent, 1))
    with pytest.raises(Draining):
        engine.submit(claim("late"), sink)


def test_every_command_that_races_a_stop_is_answered(opened):
    for _ in range(20):
        engine = Engine(opened("memory"))
        engine.start()
        barrier, answers = threading.Barrier(3), []

        def call(name, engine=engine, barrier=barrier, answers=answers):
            sink = Futures()
            barrier.wait()
            for number in range(20):
                try:
                    answers.append(sink.send(engine, claim(f"{name}-{number}", f"{name}{number}"))[1])
                except Draining:
                    return

        callers = [threading.Thread(target=call, args=(name,), daemon=True) for name in "ab"]
        for caller in callers:
            caller.start()
        barrier.wait()
        stop_in_time(engine)
        for caller in callers:
            caller.join(5)
        results(answers, 1)


def test_a_sink_that_fails_does_not_stop_its_lane(opened, started):
    class Broken:
        def deliver(self, replies):
            raise RuntimeError("the loop of this caller is closed")

    engine = started(opened("memory"))
    engine.submit(claim("a"), Broken())
    _, future = Futures().send(engine, claim("b", "l2"))
    assert isinstance(future.result(2), Claimed)


@pytest.mark.parametrize("freed", [False, True], ids=["still held", "free"])
def test_a_waiter_is_answered_once_although_the_server_drains_during_its_try(opened, started, paused, freed):
    engine = started(opened("memory"))
    engine.call(claim("job", "l0"))
    sink = Keep()
    engine.submit(claim("job", "w1"), sink, None, 20)
    wait_until(lambda: engine.name_waiters.length(KEY) == 1)
    go_on = paused(engine)
    if freed:
        engine.submit(release("job", "l0"), Keep())
    engine.name_waiters.wake([KEY])
    engine.name_waiters.drain()
    go_on()
    engine.call(claim("something else", "x"))
    outcomes = [outcome for _, outcome in sink.replies]
    assert len(outcomes) == 1
    holder = engine.read(lambda reader: reader.row(Lease, ACCOUNT, "job")).owner
    if isinstance(outcomes[0], Draining):
        assert holder == (None if freed else "worker"), "a caller whose claim was not applied must not hold the job"


def test_a_long_queue_of_waiters_survives_a_full_backlog(opened, started, paused):
    engine = started(opened("memory"), max_queued=600)
    engine.call(claim("job", "l0"))
    waiters, others = Keep(), Keep()
    for number in range(500):
        engine.submit(claim("job", f"w{number}"), waiters, None, 20)
    wait_until(lambda: engine.name_waiters.length(KEY) == 500)
    go_on = paused(engine)
    fits = 0
    with suppress(Overloaded):
        while fits < 700:
            engine.submit(claim(f"other-{fits}", f"o{fits}"), others)
            fits += 1
    assert fits == 600
    engine.name_waiters.wake([KEY])
    go_on()
    wait_until(lambda: len(others.replies) == fits)
    engine.call(release("job", "l0"))
    wait_until(lambda: any(isinstance(outcome, Claimed) for _, outcome in waiters.replies))
    assert engine.name_waiters.length(KEY) + len(waiters.replies) == 500


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_exactly_one_of_racing_claimers_on_two_servers_wins(opened, started, kind):
    engines, sink = [started(opened(kind)), started(opened(kind))], Futures()
    tokens = []

    def race(lease_id, number):
        return sink.send(engines[number % 2], claim("job", lease_id))[1].result(20)

    with ThreadPoolExecutor(8) as pool:
        for turn in range(10):
            outcomes = pool.map(race, [f"l{turn}-{number}" for number in range(8)], range(8))
            winners = [outcome for outcome in outcomes if isinstance(outcome, Claimed)]
            assert len(winners) == 1
            tokens.append(winners[0].lease.token)
            engines[turn % 2].call(release("job", winners[0].lease_id))
    assert tokens == sorted(set(tokens))
    assert len(every(engines[0].store, Event)) == 20
    check_log(engines[0].store)


def test_a_newcomer_does_not_overtake_a_waiter(opened, started, paused):
    """Its claim is in the batch that frees the job, before the waiter has tried again."""
    engine, sink = started(opened("memory")), Futures()
    engine.call(claim("job", "l0"))
    _, waiter = sink.send(engine, claim("job", "w1"), 20.0)
    wait_until(lambda: engine.name_waiters.length(KEY) == 1)
    go_on = paused(engine)
    sink.send(engine, release("job", "l0"))
    _, newcomer = sink.send(engine, claim("job", "n1"))
    go_on()
    assert isinstance(newcomer.result(10), Held)
    assert isinstance(waiter.result(10), Claimed)


def test_a_newcomer_that_may_wait_and_has_an_idempotency_key_does_not_overtake_a_waiter(opened, started, paused):
    """Unlike other claims that may wait it runs first, because there may be a stored answer under its key."""
    engine, sink = started(opened("memory")), Futures()
    engine.call(claim("job", "l0"))
    _, waiter = sink.send(engine, claim("job", "w1"), 20.0)
    wait_until(lambda: engine.name_waiters.length(KEY) == 1)
    go_on = paused(engine)
    sink.send(engine, release("job", "l0"))
    _, newcomer = sink.send(engine, claim("job", "n1", once=once()), 20.0)
    go_on()
    wait([waiter, newcomer], 10, FIRST_COMPLETED)
    assert (waiter.done(), newcomer.done()) == (True, False)
    assert isinstance(waiter.result(), Claimed)


def test_commits_elsewhere_are_watched_if_one_begins_to_wait_as_the_last_of_another_kind_leaves(opened, started):
    engine, watched = started(opened("memory")), []
    engine.call(claim("job", "l0"))
    ticket, _ = Futures().send(engine, claim("job", "w1"), 20.0)
    wait_until(lambda: engine.name_waiters.length(KEY) == 1)
    engine._watcher.set_waiting = lambda *, waiting: watched.append(waiting)
    engine._waiting_lock = LockWithCallback(
        engine._waiting_lock, lambda: engine.change_signal.listen(KEY, lambda: None)
    )
    engine.leave(ticket)
    assert watched == [False, True]


def test_a_limit_holds_for_locks_that_two_servers_grant_at_once(opened, started):
    """Both count one below the limit, unless one of them waits for the other."""
    engines = [started(opened("postgres")), started(opened("postgres"))]
    for turn in range(20):
        sink, by = Futures(), replace(ALICE, id=f"id-{turn}")
        sent = [sink.send(engines[n % 2], acquire(f"lock-{turn}-{n}", limit=5, by=by))[1] for n in range(40)]
        outcomes = results(sent)
        assert sum(isinstance(outcome, LeaseOutcome) for outcome in outcomes) == 5
        assert sum(isinstance(outcome, LockLimit) for outcome in outcomes) == 35


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_new_names_claimed_on_two_servers_at_once_have_one_owner_each(opened, started, kind):
    """Rows that do not exist cannot be locked: both servers find nothing, and one of them must run again."""
    engines = [started(opened(kind)), started(opened(kind))]
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(
            pool.map(lambda number: engines[number % 2].call(claim(f"job-{number // 4}", f"l{number}")), range(160))
        )
    winners = [outcome.lease.id for outcome in outcomes if isinstance(outcome, Claimed)]
    assert sorted(winners) == sorted(f"job-{number}" for number in range(40))
    assert {row.version for row in every(engines[0].store, Lease)} == {1}
    check_log(engines[0].store)
