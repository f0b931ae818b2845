"""Waiting for tasks: a new task arrives promptly, also from another server, and none is lost or claimed twice."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter

import pytest

from holdfast.core.errors import Draining, InvalidTransition, Refused
from holdfast.core.event import Event
from holdfast.core.row import SECOND
from holdfast.core.task import CLAIMED, PENDING, Task
from holdfast.engine.engine import Engine
from holdfast.engine.verbs.batch import Batch
from holdfast.engine.verbs.tasks.claiming import Claimed, Empty
from holdfast.store.postgres import watcher
from tests.support import Futures, Keep, check_log, every, promptly, results, run, stop_in_time, wait_until
from tests.task_commands import BASE, cancel, complete, create, fail, release_task, requeue, take, take_this, undeliver

PROMPT, ACROSS = 0.1, 0.5


def waiting(engine, sink, *types, count=1, wait_seconds=20.0, seed="w", **more):
    """Start `count` waiting callers, in order."""
    sent = []
    for number in range(count):
        before = count_waiters(engine)
        sent.append(sink.send(engine, take(*types, seed=f"{seed}{number}", **more), wait_seconds))
        wait_until(lambda before=before: count_waiters(engine) == before + 1)
    return sent


def count_waiters(engine):
    """How many callers wait."""
    return len(engine.task_waiters._positions)


def ids(futures, seconds=5):
    return [taken.task.id for outcome in results(futures, seconds) for taken in outcome.taken]


def now_of(engine):
    return engine.read(lambda reader: reader.now)


@pytest.fixture(params=["memory alone", "sqlite alone", "postgres alone", "two on sqlite", "two on postgres"])
def pair(request, opened, started, lasting):
    """(the engine that creates tasks, the engine with the waiters)."""
    if request.param.endswith("alone"):
        return (lasting(request.param.split()[0]),) * 2
    kind = request.param.split()[-1]
    return started(opened(kind)), started(opened(kind))


def test_a_waiter_gets_a_task_soon_after_its_creation(pair):
    maker, waiters = pair
    turns = itertools.count()

    def after_creation():
        late = []
        for turn in itertools.islice(turns, 4):
            sink = Futures()
            ((_, future),) = waiting(waiters, sink, "work", seed=f"w{turn}-")
            made = time.monotonic()
            maker.call(create(f"t{turn}"))
            assert ids([future]) == [f"t{turn}"]
            late.append(time.monotonic() - made)
        return late

    promptly(after_creation, PROMPT if maker is waiters else ACROSS / 2)
    check_log(maker.store)


def test_n_tasks_wake_exactly_n_waiters(engine):
    sent = waiting(engine, Futures(), "work", count=5)
    for number in range(3):
        engine.call(create(f"t{number}"))
    wait_until(lambda: sum(future.done() for _, future in sent) == 3)
    assert sorted(ids([future for _, future in sent if future.done()])) == ["t0", "t1", "t2"]
    wait_until(lambda: count_waiters(engine) == 2)
    for ticket, _ in sent:
        engine.leave(ticket)


def test_waiters_of_one_server_are_served_in_order_of_arrival(opened, started):
    engine = started(opened("memory"))
    sent = waiting(engine, Futures(), "work", count=5)
    for number in range(5):
        engine.call(create(f"t{number}"))
    assert ids([future for _, future in sent]) == [f"t{number}" for number in range(5)]


def test_tasks_of_one_batch_wake_as_many_waiters(engine):
    sent = waiting(engine, Futures(), "work", count=4)
    engine.call(Batch(**BASE, items=tuple(create(f"t{number}") for number in range(4))))
    assert sorted(ids([future for _, future in sent])) == ["t0", "t1", "t2", "t3"]


def test_a_waiter_claims_a_new_task_in_the_transaction_that_creates_it(engine, monkeypatch):
    monkeypatch.setattr(watcher, "LOST_SECONDS", 60.0)  # nobody tries because a change is assumed
    sent = waiting(engine, Futures(), "work", count=2)
    wait_until(lambda: not any(ticket.is_submitted for ticket, _ in sent))  # the first one tries once more
    engine.call(Batch(**BASE, items=(create("t1"), create("t2", type="other"), create("t3"))))
    assert ids([future for _, future in sent]) == ["t1", "t3"]
    moments = {(event.subject, event.kind): event.at for event in every(engine.store, Event)}
    for task in ("task:t1", "task:t3"):
        assert moments[task, "task.claimed"] == moments[task, "task.created"]


def test_a_waiter_that_finds_nothing_in_that_transaction_goes_on_waiting(engine):
    engine.call(create("t1", unique_key="k"))
    engine.call(take("work", seed="holder"))
    ((_, future),) = waiting(engine, Futures(), "work")
    assert engine.call(create("t2", unique_key="k")).deduplicated
    assert not future.done()
    engine.call(create("t3"))
    assert ids([future]) == ["t3"]


def test_a_waiter_for_several_types_or_any_gets_the_first_task(engine):
    sink = Futures()
    ((stays, other),) = waiting(engine, sink, "c", seed="c")
    ((_, several),) = waiting(engine, sink, "a", "b", seed="s")
    engine.call(create("t1", type="b"))
    assert ids([several]) == ["t1"]
    ((_, anything),) = waiting(engine, sink, seed="a")
    engine.call(create("t2", type="d"))
    assert ids([anything]) == ["t2"]
    assert not other.done()
    engine.leave(stays)
    wait_until(lambda: count_waiters(engine) == 0)


@pytest.mark.parametrize("back", ["fail", "release", "undeliver", "requeue"])
def test_a_waiter_gets_a_returned_task(engine, back):
    engine.call(create("t1", max_attempts=1 if back == "requeue" else 3))
    engine.call(take("work", seed="first"))
    ((_, future),) = waiting(engine, Futures(), "work")
    if back == "requeue":
        engine.call(fail("t1", "first"))
        engine.call(requeue("t1"))
    else:
        engine.call({"fail": fail, "release": release_task, "undeliver": undeliver}[back]("t1", "first"))
    assert ids([future]) == ["t1"]


def test_a_waiter_gets_a_lapsed_task_soon_after_its_deadline_and_never_before(pair):
    holder, waiters = pair
    lease = 0.3
    holder.call(create("t1", lease_duration=int(lease * SECOND)))
    sent = time.monotonic()
    holder.call(take("work", seed="first"))
    ((_, future),) = waiting(waiters, Futures(), "work")
    assert ids([future]) == ["t1"]
    assert lease <= time.monotonic() - sent < lease + ACROSS


def test_a_scheduled_task_wakes_a_waiter_when_it_is_due(pair):
    maker, waiters = pair
    ((_, future),) = waiting(waiters, Futures(), "work")
    sent, ahead = time.monotonic(), 0.4
    maker.call(create("t1", scheduled_at=now_of(maker) + int(ahead * SECOND)))
    assert ids([future]) == ["t1"]
    assert ahead - 0.05 <= time.monotonic() - sent < ahead + ACROSS


def test_a_wait_that_times_out_is_answered_empty(engine):
    began = time.monotonic()
    assert isinstance(engine.call(take("work"), wait_seconds=0.2), Empty)
    assert 0.2 <= time.monotonic() - began < 1.0
    assert count_waiters(engine) == 0


def test_without_a_wait_the_answer_comes_at_once(engine):
    assert isinstance(engine.call(take("work")), Empty)
    assert count_waiters(engine) == 0


def test_a_caller_that_left_gets_no_task_and_the_next_waiter_does(engine):
    (gone, nothing), (_, future) = waiting(engine, Futures(), "work", count=2)
    engine.leave(gone)
    engine.call(create("t1"))
    assert ids([future]) == ["t1"]
    assert not nothing.done()
    assert [task.attempt for task in every(engine.store, Task)] == [1]


def test_an_undelivered_task_reaches_the_next_waiter(engine):
    """The caller disconnected while its claim was written: the HTTP handler undelivers it."""
    sent = waiting(engine, Futures(), "work", count=2)
    engine.call(create("t1"))
    wait_until(lambda: any(future.done() for _, future in sent))
    served = next(number for number, (_, future) in enumerate(sent) if future.done())
    engine.leave(sent[served][0])
    engine.call(undeliver("t1", f"w{served}"))
    assert ids([sent[1 - served][1]]) == ["t1"]
    (task,) = every(engine.store, Task)
    assert (task.attempt, task.attempt_count) == (2, 1)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_a_server_that_stops_answers_its_waiters(opened, started, kind):
    engine, sink = started(opened(kind)), Futures()
    sent = waiting(engine, sink, "work", count=3)
    stop_in_time(engine)
    assert [type(outcome) for outcome in results((future for _, future in sent), 1)] == [Draining] * 3


def test_waiters_that_time_out_as_tasks_are_created_are_each_answered_once(engine):
    for turn in range(6):
        sink = Keep()
        for number in range(20):
            engine.submit(take("work", seed=f"{turn}-{number}"), sink, number, 0.15)
        time.sleep(0.14 + turn * 0.002)
        for number in range(10):
            engine.call(create(f"t{turn}-{number}"))
        wait_until(lambda sink=sink: len(sink.replies) >= 20)
        time.sleep(0.02)
        assert sorted(ticket.slot for ticket, _ in sink.replies) == list(range(20))
        got = [each.task.id for _, outcome in sink.replies if isinstance(outcome, Claimed) for each in outcome.taken]
        assert len(got) == len(set(got))
        held = [task.id for task in every(engine.store, Task) if task.state == CLAIMED]
        assert sorted(got) == sorted(name for name in held if name.startswith(f"t{turn}-"))
        engine.call(take("work", seed=f"rest-{turn}", limit=100))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_waiters_on_two_servers_share_all_tasks_without_loss_or_duplicates(opened, started, kind):
    engines = [started(opened(kind)), started(opened(kind))]
    tasks, stop = 60, threading.Event()
    got: Counter[str] = Counter()

    def work(number):
        turn = 0
        while not stop.is_set():
            turn += 1
            outcome = engines[number % 2].call(take("work", seed=f"{number}-{turn}"), wait_seconds=0.4)
            for taken in outcome.taken if isinstance(outcome, Claimed) else ():
                got[taken.task.id] += 1
                engines[(number + 1) % 2].call(complete(taken.task.id, f"{number}-{turn}"))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for number in range(tasks):
        engines[number % 2].call(create(f"t{number:02}"))
    wait_until(lambda: sum(got.values()) >= tasks, 20)
    stop.set()
    for worker in workers:
        worker.join(10)
    assert got == Counter({f"t{number:02}": 1 for number in range(tasks)})
    assert {(task.state, task.attempt) for task in every(engines[0].store, Task)} == {("completed", 1)}
    check_log(engines[0].store)


def test_a_cancelled_task_wakes_no_waiter_and_a_claim_by_id_never_waits(engine):
    ((stays, future),) = waiting(engine, Futures(), "work")
    engine.call(create("t1", scheduled_at=now_of(engine) + 60 * SECOND))
    engine.call(cancel("t1"))
    with pytest.raises(InvalidTransition):
        engine.call(take_this("t1"), wait_seconds=5)
    assert not future.done()
    engine.leave(stays)


@pytest.mark.parametrize(
    "kind", ["memory", "sqlite"]
)  # on PostgreSQL a worker that looks for tasks of others may find it
def test_a_task_that_failed_goes_to_another_waiting_worker_before_its_own(lasting, kind):
    engine, sink = lasting(kind), Futures()
    engine.call(create("t1"))
    engine.call(take("work", worker="ann"))
    ((_, own),) = waiting(engine, sink, "work", seed="a", worker="ann")
    ((_, other),) = waiting(engine, sink, "work", seed="b", worker="bob")
    engine.call(fail("t1", after=0))
    assert ids([other]) == ["t1"]
    assert not own.done()


def test_a_caller_that_left_before_its_claim_ran_is_granted_nothing(store):
    """It may have asked again, and have been told that there is nothing: then nobody would know of the grant."""
    engine, sink = Engine(store), Futures()
    run(store, create("t1"))
    ticket, waits = sink.send(engine, take("work"), 20)
    engine.leave(ticket)
    engine.start()
    assert isinstance(waits.exception(timeout=10), Refused)
    engine.stop()
    assert [(task.state, task.attempt) for task in every(store, Task)] == [(PENDING, 0)]
