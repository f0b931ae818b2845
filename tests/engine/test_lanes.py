"""Which thread runs a batch: the one that submitted it while nothing makes it wait, else the lane's own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.lease import Lease
from holdfast.engine.ticket import run_now
from holdfast.engine.verbs.batch import Batch
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.store.sqlite.fair_lock import FairLock
from holdfast.transport.http.submission import Submission
from tests.support import ACCOUNT, CAUSE, Futures, claim, in_background, in_time, results, wait_until

LOCAL = ["memory", "sqlite"]


class Threads:
    """Records which thread runs each transaction of a store; the next one may be held up."""

    def __init__(self, store):
        self.seen = []
        self.before = lambda: None
        self._transaction = store.transaction
        store.transaction = self.transaction

    def transaction(self, lane=0):
        self.seen.append(threading.current_thread())
        before, self.before = self.before, lambda: None
        before()
        return self._transaction(lane)


def warm(engine):
    """The engine after its first batch, before which it looks whether another server has died."""
    engine.call(claim("first", "l0"))
    return engine


@pytest.fixture(params=LOCAL)
def local(request, opened, started):
    """A running engine on a local store, and the threads that run its transactions."""
    engine = warm(started(opened(request.param)))
    threads = Threads(engine.store)
    run_short_batches(engine, threads)
    return engine, threads


def run_short_batches(engine, threads):
    """Run batches until one runs on the caller's thread: after a long one, as on a busy machine, a lane runs some."""

    def is_on_caller():
        engine.call(claim(f"short-{len(threads.seen)}", "l"))
        return threads.seen[-1] is threading.current_thread()

    wait_until(is_on_caller)
    del threads.seen[:]


def send(engine, name, run_soon=run_now, **more):
    future = Future()
    engine.submit(claim(name, f"lease of {name}", **more), Futures(), future, run_soon=run_soon)
    return future


def test_a_call_runs_on_its_own_thread(local):
    engine, threads = local
    assert isinstance(engine.call(claim("job", "l1")), Claimed)
    assert threads.seen == [threading.current_thread()]


def test_a_caller_is_answered_before_others_learn_what_has_changed(local):
    """On the thread of an event loop the answer is sent between the two."""
    engine, threads = local
    soon, heard = [], []
    engine.change_signal.listen((Lease.table, ACCOUNT, "job"), lambda: heard.append("job"))
    future = send(engine, "job", run_soon=soon.append)
    soon.pop()()
    assert isinstance(future.result(0), Claimed)
    assert threads.seen == [threading.current_thread()]
    assert heard == []
    soon.pop()()
    assert heard == ["job"]


def test_a_call_without_a_thread_to_run_on_runs_on_the_lanes(local):
    engine, threads = local
    assert isinstance(send(engine, "job", run_soon=None).result(10), Claimed)
    assert threads.seen == [engine.lanes.all[0].thread]


def test_a_database_of_other_machines_never_runs_on_the_callers_thread(opened, started):
    engine = started(opened("postgres"))
    threads = Threads(engine.store)
    engine.call(claim("job", "l1"))
    assert threading.current_thread() not in threads.seen


def test_a_ticket_put_while_another_caller_runs_its_batch_is_run(local):
    """Its caller found the lane busy, and that batch was taken already."""
    engine, threads = local
    late = []
    threads.before = lambda: late.append(in_time(lambda: send(engine, "late"), 5))
    assert isinstance(send(engine, "early").result(10), Claimed)
    assert isinstance(late[0].result(10), Claimed)


def test_a_ticket_put_when_a_batch_has_just_ended_is_run(local):
    """Its caller must not rely on that run: it has looked for the last time."""
    engine, _ = local
    lane, late = engine.lanes.all[0], []
    run_here = lane.run_here

    def run_then_put(run_soon):
        lane.run_here = run_here
        ended = run_here(run_soon)
        late.append(in_time(lambda: send(engine, "late"), 5))
        return ended

    lane.run_here = run_then_put
    assert isinstance(send(engine, "early").result(10), Claimed)
    assert isinstance(late[0].result(3), Claimed)


def test_more_tickets_than_one_batch_takes_are_all_run(opened, started):
    engine = warm(started(opened("memory"), max_batch=2))
    scheduled = []
    sent = [send(engine, f"job-{number}", run_soon=scheduled.append) for number in range(9)]
    assert len(scheduled) == 1
    scheduled[0]()
    assert all(isinstance(outcome, Claimed) for outcome in results(sent))


def test_while_batches_take_long_the_lanes_thread_runs_them(local):
    engine, threads = local
    engine.lanes.all[0]._usual_seconds = 1.0
    engine.call(claim("slow", "l1"))
    assert threads.seen == [engine.lanes.all[0].thread]

    run_short_batches(engine, threads)


def test_a_heavy_command_runs_on_the_lanes_thread(local):
    engine, threads = local
    heavy = Batch(account=ACCOUNT, cause=CAUSE, items=tuple(claim(f"job-{n}", f"l{n}") for n in range(100)))
    engine.call(heavy)
    assert threads.seen == [engine.lanes.all[0].thread]


def test_after_an_outage_the_lanes_thread_runs_the_first_batch(local):
    engine, threads = local

    def fail():
        raise StoreUnavailable("the disk is gone")

    threads.before = fail
    with pytest.raises(StoreUnavailable):
        engine.call(claim("job", "l1"))
    del threads.seen[:]
    assert isinstance(engine.call(claim("job", "l2")), Claimed)
    assert set(threads.seen) == {engine.lanes.all[0].thread}

    run_short_batches(engine, threads)


def test_a_caller_does_not_wait_for_another_process_that_writes(opened, started):
    store = opened("sqlite")
    engine = warm(started(store))
    other = FairLock(store.path)  # as another process has it
    with other.take():
        answer = in_time(lambda: send(engine, "job"), 5)
        assert not answer.done()
    assert isinstance(answer.result(10), Claimed)
    other.close()


def test_a_caller_does_not_wait_for_another_thread_that_writes(opened, started):
    store = opened("sqlite")
    engine = warm(started(store))
    inside, go_on = threading.Event(), threading.Event()

    def write():
        with store.write():
            inside.set()
            assert go_on.wait(10)

    writing = in_background(write)
    assert inside.wait(5)
    answer = in_time(lambda: send(engine, "job"), 5)
    assert not answer.done()
    go_on.set()
    writing.result(10)
    assert isinstance(answer.result(10), Claimed)


def test_requests_that_are_ready_at_once_share_a_transaction(local):
    engine, threads = local
    run_short_batches(engine, threads)

    async def submit_all():
        submission = Submission(engine, None)
        submission.open(asyncio.get_running_loop())
        return await asyncio.gather(*(submission.run(claim(f"job-{n}", f"l{n}")) for n in range(50)))

    outcomes = asyncio.run(submit_all())
    assert all(isinstance(outcome, Claimed) for outcome in outcomes)
    assert threads.seen == [threading.current_thread()]


def send_two_to_the_lane(engine, threads, run_soon=None):
    """The answer to a ticket that is queued while the lane's thread runs a batch, and what callers are asked to run.

    Only then does the thread of callers exist: a lane that is not asleep yet would hand the first batch over too.
    """
    late, asked = [], []

    def send_late():
        engine.lanes.serve(run_soon or asked.append)
        late.append(send(engine, "late", run_soon=None))

    threads.before = send_late
    assert isinstance(send(engine, "early", run_soon=None).result(10), Claimed)
    return late[0], asked


def test_the_lanes_thread_hands_the_next_batch_back_to_the_callers(local):
    engine, threads = local
    answer, asked = send_two_to_the_lane(engine, threads)
    wait_until(lambda: asked)
    assert not answer.done()
    asked[0]()
    assert isinstance(answer.result(0), Claimed)
    assert threads.seen == [engine.lanes.all[0].thread, threading.current_thread()]


def test_the_lanes_thread_runs_what_the_callers_cannot(local):
    engine, threads = local
    answer, asked = send_two_to_the_lane(engine, threads)
    wait_until(lambda: asked)
    with engine.lanes.all[0]._turn:
        asked[0]()
        assert not answer.done()
    assert isinstance(answer.result(10), Claimed)
    assert set(threads.seen) == {engine.lanes.all[0].thread}


def test_the_lanes_thread_goes_on_when_the_event_loop_of_the_callers_has_ended(local):
    engine, threads = local
    loop = asyncio.new_event_loop()
    loop.close()
    answer, _ = send_two_to_the_lane(engine, threads, loop.call_soon_threadsafe)
    assert isinstance(answer.result(10), Claimed)
