"""Steps of PostgreSQL's clock: no holder loses its lease early, and none keeps it for longer than its TTL."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager

import psycopg
import pytest

from holdfast.core.errors import StoreUnavailable
from holdfast.core.event import Event
from holdfast.core.lease import Lease
from holdfast.core.row import SECOND
from holdfast.core.task import Task
from holdfast.engine import lane as lanes
from holdfast.engine.command import Held
from holdfast.engine.ticket import Ticket
from holdfast.engine.verbs.jobs import Changed
from holdfast.store.contract import ClockStepped
from holdfast.store.needs import AllNeeds, Needs
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres import store as stores
from holdfast.store.postgres.transaction import PostgresTransaction
from tests.support import Keep, a_lease, check_log, claim, empty, every, heartbeat, idle_lane
from tests.task_commands import beat, begin, create, take

STEPPED_CLOCK = """
CREATE TABLE test_step (microseconds bigint);
INSERT INTO test_step VALUES (0);
CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (SELECT microseconds FROM test_step) $$;
"""


@pytest.fixture(scope="module")
def stepped_database(new_postgres_database):
    """A database whose clock the test can set."""
    url = new_postgres_database()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(STEPPED_CLOCK)
    return url


@pytest.fixture
def set_clock(stepped_database):
    """Sets the database's clock forward, or backward, by so many seconds."""

    def set_clock(seconds):
        with psycopg.connect(stepped_database, autocommit=True) as admin:
            admin.execute("UPDATE test_step SET microseconds = microseconds + %s", (int(seconds * SECOND),))

    return set_clock


@pytest.fixture
def store(stepped_database):
    store = PostgresStore(stepped_database)
    empty(store)
    yield store
    store.close()


class WorkedLane:
    """A lane whose batches the test runs."""

    def __init__(self, store, number=0):
        self._lane = idle_lane(store, self._on_commit, number)
        self._replies = []

    def _on_commit(self, committed):
        self._replies += [outcome for _, outcome in committed.replies]

    def work(self, *commands):
        """The outcomes of one batch."""
        self._replies = []
        self._lane._work([Ticket(command, Keep()) for command in commands])
        return self._replies


def seconds_left(store, name="job"):
    with store.read() as reader:
        return (reader.row(Lease, "default", name).expires_at - reader.now) / SECOND


def test_a_clock_that_is_set_back_ends_no_lease_early(store, set_clock):
    """The old row's last change lies in the future; a new lease in the same batch must not be judged by that time."""
    lane = WorkedLane(store)
    lane.work(claim("old", "l1", ttl=600 * SECOND))
    set_clock(-120)
    lane.work(claim("new", "l2", ttl=30 * SECOND))
    outcomes = lane.work(heartbeat("old", "l1"), heartbeat("new", "l2"))
    assert [type(outcome) for outcome in outcomes] == [Changed, Changed]
    check_log(store)


def test_a_clock_that_is_set_back_leaves_nobody_more_than_a_full_ttl(store, set_clock):
    lane = WorkedLane(store)
    lane.work(claim("job", "l1", ttl=60 * SECOND))
    set_clock(-3600)
    lane.work(claim("other", "l2"))
    assert 50 < seconds_left(store) <= 60
    check_log(store)


def test_a_clock_that_is_set_forward_gives_holders_grace(store, set_clock):
    lane = WorkedLane(store)
    lane.work(claim("job", "l1", ttl=60 * SECOND))
    set_clock(+3600)
    (outcome,) = lane.work(claim("job", "l2"))
    assert isinstance(outcome, Held), "its holder keeps it"
    assert 50 < seconds_left(store) <= 60
    assert [type(outcome) for outcome in lane.work(heartbeat("job", "l1"))] == [Changed]
    check_log(store)


def test_a_small_step_forward_moves_deadlines_by_as_much(store, set_clock):
    lane = WorkedLane(store)
    lane.work(claim("job", "l1", ttl=60 * SECOND))
    lane.work(claim("other", "l2"))
    before, began = seconds_left(store), time.monotonic()
    set_clock(+1.5)
    lane.work(heartbeat("other", "l2"))
    without_a_move = before - 1.5 - (time.monotonic() - began)
    assert without_a_move + 0.2 < seconds_left(store) <= before
    check_log(store)


def test_every_lane_notices_a_step_that_another_lane_or_a_read_has_seen(store, set_clock):
    first, second = WorkedLane(store), WorkedLane(store, number=1)
    first.work(claim("job", "l1", ttl=60 * SECOND))
    second.work(claim("other", "l2", ttl=60 * SECOND))
    set_clock(+3600)
    seconds_left(store)
    assert isinstance(second.work(claim("job", "l3"))[0], Held)
    assert isinstance(first.work(claim("other", "l4"))[0], Held)


def test_a_small_step_forward_moves_the_limit_of_an_attempt_no_further_than_the_deadline_of_its_task(store, set_clock):
    """`max_run` is a duration and moves with the step; `deadline_at` is a time of day and stays."""
    lane = WorkedLane(store)
    with store.read() as reader:
        deadline_at = reader.now + 901 * SECOND
    lane.work(create("near", deadline_at=deadline_at, max_run=900 * SECOND), create("free", max_run=900 * SECOND))
    lane.work(take("work", limit=2))
    before = {task.id: task.run_until for task in every(store, Task)}
    set_clock(+1.5)
    lane.work(claim("other", "l1"))
    after = {task.id: task.run_until for task in every(store, Task)}
    assert after["free"] > before["free"] + SECOND
    assert after["near"] == deadline_at
    check_log(store)


@pytest.mark.parametrize("step", [+1.5, +30.0, +3_600.0])
def test_a_step_forward_takes_no_time_from_an_attempt_with_a_limit(store, set_clock, step):
    lane = WorkedLane(store)
    lane.work(create("t1", lease_duration=300 * SECOND, max_run=600 * SECOND))
    lane.work(take("work", seed="s1"))
    (before,) = every(store, Task)
    set_clock(step)
    (renewed,) = lane.work(beat("t1", "s1"))
    assert renewed.task.run_until >= before.run_until + int((step - 1) * SECOND)
    check_log(store)


def test_without_a_step_no_deadline_moves(store):
    lane = WorkedLane(store)
    lane.work(claim("job", "l1", ttl=60 * SECOND))
    before = every(store, Lease)
    for number in range(5):
        lane.work(claim(f"job-{number}", "l2"))
    assert [row for row in every(store, Lease) if row.id == "job"] == before


def test_each_lane_finds_a_step_by_itself(store, set_clock):
    """A lane that relied on another one could decide by the changed clock before the other has moved the deadlines."""

    def load(lane):
        with store.transaction(lane) as transaction:
            transaction.load(AllNeeds.of([Needs(rows=(a_lease().key,))]))

    for lane in (0, 1):
        load(lane)
    set_clock(+60)
    for lane in (0, 1):
        with pytest.raises(ClockStepped):
            load(lane)
        load(lane)


def test_a_step_between_two_round_trips_of_a_batch_is_found(store, set_clock, monkeypatch):
    """The second round trip reads the session of a holder, and the time with it."""
    lane = WorkedLane(store)
    lane.work(begin("agent"), claim("job", "l1", ttl=60 * SECOND, session_id="agent"))
    load_more = PostgresTransaction._load_more

    def set_before(*arguments):
        monkeypatch.undo()
        set_clock(+3600)
        return load_more(*arguments)

    monkeypatch.setattr(PostgresTransaction, "_load_more", set_before)
    (outcome,) = lane.work(claim("job", "l2"))
    assert isinstance(outcome, Held), "its holder keeps it"
    check_log(store)


def test_an_idle_lane_learns_of_each_of_two_steps(store, set_clock):
    """Together they look like one step back; but the other lane has moved the deadline between them."""
    busy, idle = WorkedLane(store), WorkedLane(store, number=1)
    idle.work(claim("other", "l1"))
    busy.work(claim("job", "l2", ttl=4 * SECOND))
    set_clock(-120)
    busy.work(heartbeat("other", "l1"))
    assert 0 < seconds_left(store) <= 4
    set_clock(+5)
    (outcome,) = idle.work(claim("job", "l3"))
    assert isinstance(outcome, Held), "its holder keeps it"
    check_log(store)


def test_a_claim_that_commits_after_another_server_has_found_the_step_gets_grace_too(
    stepped_database, store, set_clock, monkeypatch
):
    """Its deadline was computed by the clock before the step, and the other server could not read it yet."""
    decided, may_commit, commit = threading.Event(), threading.Event(), PostgresTransaction.commit

    def commit_late(transaction):
        if threading.current_thread().name == "late":
            decided.set()
            assert may_commit.wait(30)
        commit(transaction)

    other_server = PostgresStore(stepped_database)
    first, late = WorkedLane(store), WorkedLane(other_server)
    first.work(claim("first", "l1"))
    monkeypatch.setattr(PostgresTransaction, "commit", commit_late)
    claiming = threading.Thread(target=late.work, args=[claim("job", "l2", ttl=30 * SECOND)], name="late")
    claiming.start()
    assert decided.wait(30)
    set_clock(+3600)
    finding = threading.Thread(target=first.work, args=[claim("second", "l3")])
    finding.start()
    finding.join(0.3)
    may_commit.set()
    for thread in (claiming, finding):
        thread.join()
    (outcome,) = first.work(claim("job", "l4"))
    other_server.close()
    assert isinstance(outcome, Held), "its holder keeps it"
    assert 20 < seconds_left(store) <= 30
    check_log(store)


@pytest.fixture
def locked(stepped_database):
    """Locks the row of a job for a while, as another transaction does."""

    @contextmanager
    def locked(name):
        with psycopg.connect(stepped_database) as other:
            other.execute("SELECT FROM leases WHERE id = %s FOR UPDATE", (name,))
            yield

    return locked


def test_a_step_whose_repair_failed_is_repaired_before_the_next_batch(store, set_clock, locked, monkeypatch):
    monkeypatch.setattr(lanes, "LOCK_RETRY_SECONDS", 0.1)
    monkeypatch.setattr(stores, "OPEN_BATCH_SECONDS", 0.1)
    lane = WorkedLane(store)
    lane.work(claim("job", "l1", ttl=60 * SECOND))
    set_clock(+3600)
    with locked("job"):
        for name in ("first", "second"):
            (outcome,) = lane.work(claim(name, "l2"))
            assert isinstance(outcome, StoreUnavailable), "nothing is decided before the repair"
    (outcome,) = lane.work(claim("job", "l2"))
    assert isinstance(outcome, Held), "its holder keeps it"
    assert 50 < seconds_left(store) <= 60
    check_log(store)


def test_a_repair_that_is_tried_again_moves_no_deadline_twice(store, set_clock, locked, monkeypatch):
    monkeypatch.setattr(lanes, "LOCK_RETRY_SECONDS", 0.1)
    monkeypatch.setattr(stores, "OPEN_BATCH_SECONDS", 0.1)
    monkeypatch.setattr(lanes, "MAX_BATCH", 1)
    lane = WorkedLane(store)
    lane.work(claim("a", "l1", ttl=60 * SECOND), claim("b", "l2", ttl=60 * SECOND), claim("c", "l3", ttl=60 * SECOND))
    set_clock(+1.5)
    with locked("b"):
        for _ in range(3):
            lane.work(claim("other", "l4"))
    lane.work(claim("other", "l4"))
    moves = Counter(event.subject for event in every(store, Event) if event.kind == "lease.extended")
    assert moves == {"lease:a": 1, "lease:b": 1, "lease:c": 1}
    check_log(store)


def test_a_step_is_repaired_although_the_connection_breaks_when_it_is_found(store, set_clock, monkeypatch):
    lane = WorkedLane(store)
    lane.work(claim("job", "l1", ttl=60 * SECOND))
    set_clock(+3600)

    def break_connection(transaction):
        monkeypatch.undo()
        transaction._connection.close()
        transaction.roll_back()

    monkeypatch.setattr(PostgresTransaction, "roll_back", break_connection)
    lane.work(claim("other", "l2"))
    (outcome,) = lane.work(claim("job", "l2"))
    assert isinstance(outcome, Held), "its holder keeps it"
    check_log(store)
