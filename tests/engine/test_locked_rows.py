"""A row that another transaction has locked on PostgreSQL delays the commands that need it, and no others."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import psycopg
import pytest

from holdfast.core.errors import Refused, StoreUnavailable
from holdfast.core.lease import Lease
from holdfast.core.task import PENDING, Task
from holdfast.engine.batches import locked_rows
from holdfast.engine.expiry import ExpireLease
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.job_claims import Claimed
from holdfast.engine.verbs.jobs import Changed
from holdfast.engine.verbs.queues import ChangeQueue, OpenQueue
from holdfast.engine.verbs.tasks.claiming import Empty
from holdfast.store.contract import RowsLocked
from holdfast.store.postgres import transaction as postgres_transaction
from tests.support import (
    ACCOUNT,
    CAUSE,
    Futures,
    Keep,
    check_log,
    claim,
    every,
    heartbeat,
    idle_lane,
    once,
    results,
    stop_in_time,
    transact,
    wait_until,
)  # fmt: skip
from tests.task_commands import BASE, create, take

NEIGHBOURS = 28
OLD_TIMEOUT = 5.0
"""Seconds after which a whole batch failed before it was halved."""


@pytest.fixture
def store(opened, clock):
    return opened("postgres", clock)


class WorkedLane:
    """A lane whose batches the test runs, and their replies by the name of the command."""

    def __init__(self, store):
        self.replies = {}
        self.lane = idle_lane(store, self._on_commit)

    def _on_commit(self, committed):
        self.replies.update((ticket.command.name, outcome) for ticket, outcome in committed.replies)

    def work(self, *commands):
        self.lane._work([Ticket(command, Keep()) for command in commands])
        return self.replies

    def retry(self):
        self.lane._retry_locked()
        return self.replies


@contextmanager
def other_transaction(database, statement):
    """A transaction of another server that has run a statement and does not end."""
    with psycopg.connect(database) as connection:
        connection.execute(statement)
        yield
        connection.rollback()


def test_neighbours_of_a_locked_row_are_answered_soon(store, database):
    names = [f"job-{number}" for number in range(NEIGHBOURS)]
    transact(store, *(claim(name, name) for name in [*names, "locked"]))
    lane = WorkedLane(store)
    with other_transaction(database, "SELECT FROM leases WHERE id = 'locked' FOR UPDATE"):
        began = time.monotonic()
        replies = lane.work(*(heartbeat(name, name) for name in [*names[:9], "locked", *names[9:]]))
        assert time.monotonic() - began < OLD_TIMEOUT
        assert sorted(replies) == sorted(names)
        assert {type(outcome) for outcome in replies.values()} == {Changed}
        assert "locked" not in lane.retry(), "it is tried again while it is locked"
    assert isinstance(lane.retry()["locked"], Changed)
    assert lane.lane._outages.count == 0, "the store had no outage"
    check_log(store)


def test_neighbours_of_a_row_that_another_transaction_inserts_are_answered_soon(store, database):
    transact(store, claim("copied", "l0"))
    lane = WorkedLane(store)
    fields = ", ".join(Lease.__struct_fields__).replace("account, id,", "")
    insert = f"INSERT INTO leases (account, id, {fields}) SELECT account, 'new', {fields} FROM leases"
    with other_transaction(database, insert):
        replies = lane.work(claim("a", "l1"), claim("new", "l2"), claim("b", "l3"))
        assert {name: type(outcome) for name, outcome in replies.items()} == {"a": Claimed, "b": Claimed}
    assert isinstance(lane.retry()["new"], Claimed)
    check_log(store)


def test_an_account_whose_counter_is_locked_does_not_fail_others(store, database, monkeypatch):
    monkeypatch.setattr(postgres_transaction, "LOCK_SECONDS", 0.3)
    transact(store, claim("first", "l0", account="busy"))
    lane = WorkedLane(store)
    with other_transaction(database, "SELECT FROM event_counters WHERE account = 'busy' FOR UPDATE"):
        replies = lane.work(claim("a", "l1"), claim("b", "l2", account="busy"), claim("c", "l3"))
        assert {name: type(outcome) for name, outcome in replies.items()} == {"a": Claimed, "c": Claimed}
    assert isinstance(lane.retry()["b"], Claimed)
    check_log(store)


def test_a_caller_whose_row_stays_locked_gets_an_error_and_nothing_is_applied(store, database, monkeypatch):
    monkeypatch.setattr(locked_rows, "LOCK_RETRY_SECONDS", 0.0)
    transact(store, claim("locked", "l0"))
    before = every(store, Lease)
    lane = WorkedLane(store)
    with other_transaction(database, "SELECT FROM leases WHERE id = 'locked' FOR UPDATE"):
        outcome = lane.work(heartbeat("locked", "l0"))["locked"]
    assert isinstance(outcome, StoreUnavailable)
    assert (outcome.applied, lane.lane._outages.count) == ("no", 0)
    assert every(store, Lease) == before


def test_an_expiry_of_a_locked_row_is_left_to_the_next_pass_of_the_sweep(store, database):
    transact(store, claim("locked", "l0"))
    lane = WorkedLane(store)
    with other_transaction(database, "SELECT FROM leases WHERE id = 'locked' FOR UPDATE"):
        replies = lane.work(ExpireLease(account=ACCOUNT, cause=CAUSE, name="locked"))
    assert isinstance(replies["locked"], StoreUnavailable)


def test_a_waiting_claim_that_finds_only_locked_tasks_is_tried_again(store, database):
    """The other transaction changes nothing, so it notifies nobody when it ends."""
    transact(store, create("t1"))
    committed = []
    lane = idle_lane(store, committed.append)
    waiting = Ticket(take("work"), Keep(), deadline=time.monotonic() + 60)
    with other_transaction(database, "SELECT FROM tasks WHERE id = 't1' FOR UPDATE"):
        lane._work([waiting])
        lane._retry_locked()
        assert [done.replies for done in committed] == [[], []]
    lane._retry_locked()
    ((ticket, outcome),) = committed[-1].replies
    assert ticket is waiting
    assert [taken.task.id for taken in outcome.taken] == ["t1"]
    check_log(store)


def test_a_waiting_claim_whose_tasks_stay_locked_goes_on_waiting_and_may_meet_locked_rows_again(
    opened, started, database, monkeypatch
):
    monkeypatch.setattr(locked_rows, "LOCK_RETRY_SECONDS", 0.2)
    engine, futures = started(opened("postgres")), Futures()
    engine.call(create("t1"))
    with other_transaction(database, "SELECT FROM tasks WHERE id = 't1' FOR UPDATE"):
        ticket, waiting = futures.send(engine, take("work"), 60)
        wait_until(lambda: ticket.locked_until is not None, seconds=10)
        wait_until(lambda: ticket.is_waiting and ticket.locked_until is None, seconds=10)
        assert not waiting.done()
    assert [outcome.taken[0].task.id for outcome in results([waiting])] == ["t1"]


def test_a_claim_that_finds_only_locked_tasks_is_answered_when_its_time_is_over(opened, started, database):
    engine = started(opened("postgres"))
    engine.call(create("t1"))
    with other_transaction(database, "SELECT FROM tasks WHERE id = 't1' FOR UPDATE"):
        began = time.monotonic()
        assert isinstance(engine.call(take("work"), wait_seconds=0.2), Empty)
        assert time.monotonic() - began < locked_rows.LOCK_RETRY_SECONDS / 2


def test_a_caller_that_left_is_granted_nothing_when_the_tasks_are_unlocked(opened, started, database):
    """It may have asked again without waiting, and have been told that there is nothing."""
    engine, futures = started(opened("postgres")), Futures()
    engine.call(create("t1"))
    with other_transaction(database, "SELECT FROM tasks WHERE id = 't1' FOR UPDATE"):
        ticket, waiting = futures.send(engine, take("work", once=once("key")), 60)
        wait_until(lambda: ticket.locked_until is not None, seconds=10)
        engine.leave(ticket)
        assert isinstance(engine.call(take("work", once=once("key"))), Empty)
    assert isinstance(waiting.exception(timeout=10), Refused)
    assert [task.state for task in every(engine.store, Task)] == [PENDING]


@pytest.mark.parametrize("types", [(), ("work",)])
@pytest.mark.parametrize("settings", [{"paused": True}, {"max_running": 1}, {"max_running_per_key": 1}])
def test_tasks_that_a_queue_holds_back_are_not_taken_for_locked_ones(opened, started, types, settings):
    """Otherwise a worker that waits at such a queue would run a batch every 50 ms."""
    engine, futures = started(opened("postgres")), Futures()
    engine.call(OpenQueue(**BASE, type="work"))
    for number in range(3):
        engine.call(create(f"t{number}", concurrency_key="key"))
    engine.call(take("work", seed="first"))
    engine.call(ChangeQueue(**BASE, type="work", changes=settings))
    ticket, _ = futures.send(engine, take(*types), 60)
    wait_until(lambda: ticket.is_waiting, seconds=2)
    assert all(lane._locked_rows.pause is None for lane in engine.lanes.all)


class LockedStore:
    """A store whose rows are all locked; it records how long each transaction would have waited."""

    lanes = 1

    def __init__(self):
        self.waits = []

    @contextmanager
    def transaction(self, lane=0):
        yield self

    def load(self, needs, lock_seconds=None):
        self.waits.append(lock_seconds)
        raise RowsLocked


def test_many_locked_commands_delay_other_batches_for_a_bounded_time():
    store = LockedStore()
    lane = WorkedLane(store)
    assert lane.work(*(claim(f"job-{number}") for number in range(64))) == {}
    assert store.waits[0] is None
    assert sum(store.waits[1:]) < 1.0, "halves wait briefly, and the more of them are locked the less"
    store.waits.clear()
    lane.lane._locked_rows.begin_batch()
    lane.retry()
    assert 16 <= len(store.waits) <= 32, "some of them are tried again"
    assert sum(store.waits) < 0.1


def test_repeated_requests_are_tried_again_one_after_the_other():
    """Both in one batch would have an effect: the second must find the answer of the first in the store."""
    rows = locked_rows.LockedRows()
    first, repeated, other = (Ticket(claim("job", name, once=once(key)), Keep()) for name, key in REPEATED)
    for ticket in (first, repeated, other):
        assert rows.set_aside(ticket)
    assert rows.take() == [first, other]
    assert rows.take() == [repeated]


REPEATED = [("l1", "key-1"), ("l2", "key-1"), ("l3", "key-2")]


def test_a_running_engine_serves_others_and_answers_when_the_lock_is_released(opened, started, database):
    engine, futures = started(opened("postgres")), Futures()
    for name in ("locked", "free"):
        engine.call(claim(name, name))
    with other_transaction(database, "SELECT FROM leases WHERE id = 'locked' FOR UPDATE"):
        _, waiting = futures.send(engine, heartbeat("locked", "locked"))
        wait_until(lambda: any(lane._locked_rows.pause for lane in engine.lanes.all), seconds=10)
        assert isinstance(engine.call(heartbeat("free", "free")), Changed)
        assert not waiting.done()
    assert [type(outcome) for outcome in results([waiting])] == [Changed]
    with other_transaction(database, "SELECT FROM leases WHERE id = 'locked' FOR UPDATE"):
        _, waiting = futures.send(engine, heartbeat("locked", "locked"))
        wait_until(lambda: any(lane._locked_rows.pause for lane in engine.lanes.all), seconds=10)
        stopping = threading.Thread(target=stop_in_time, args=(engine, 20.0))
        stopping.start()
        assert [type(outcome) for outcome in results([waiting])] == [StoreUnavailable]
        stopping.join()
