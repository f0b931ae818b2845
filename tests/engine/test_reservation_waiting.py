"""Waiting for reservations: in the order of arrival where patterns overlap, also across servers."""

from __future__ import annotations

import time
from typing import ClassVar

import pytest

from holdfast.core.errors import Draining, ReservationMissing, TooManyWaiters
from holdfast.core.event import Event
from holdfast.core.reservation.row import (
    EXCLUSIVE,
    PLACE_LIFETIME,
    SHARED,
    WAIT_LIFETIME,
    Reservation,
)
from holdfast.core.row import SECOND
from holdfast.engine.command import Once
from holdfast.engine.engine import Engine
from holdfast.engine.sweep import expiry_command
from holdfast.engine.verbs.reservation_claims import Reserved
from holdfast.engine.verbs.reservations import FilesHeld, LeaveWait, RefreshWaits
from tests.engine.test_reservations import render_reserved
from tests.proof_size import sized
from tests.reservation_agents import check_grants, run_agents, some_patterns
from tests.reservation_commands import release_paths, reserve
from tests.support import ACCOUNT, CAUSE, check_log, every, promptly, run, wait_until


def waits(name, *paths, **more):
    return reserve(name, *paths, may_wait=True, **more)


def refresh(*names, lifetime=WAIT_LIFETIME):
    return RefreshWaits(account=ACCOUNT, cause=CAUSE, reservation_ids=names, lifetime=lifetime)


def leave(name):
    return LeaveWait(account=ACCOUNT, cause=CAUSE, reservation_id=name)


def waited_until(store):
    """Until when every waiter's row counts, by its id."""
    return {row.id: row.waits_until for row in every(store, Reservation) if row.waits_until is not None}


def blockers(outcome):
    assert type(outcome) is FilesHeld, outcome
    return [conflict.row.id for conflict in outcome.conflicts]


# -- the rules, on every store ----------------------------------------------------------------------------------


def test_a_waiter_is_in_the_way_of_whoever_comes_later_and_of_nobody_before(store):
    run(store, reserve("a", "x/1"))
    assert blockers(run(store, waits("w1", "x/"))) == ["a"]
    assert blockers(run(store, waits("w2", "x/2"))) == ["w1"]
    assert blockers(run(store, reserve("b", "x/3"))) == ["w1"]
    assert type(run(store, reserve("c", "y"))) is Reserved
    run(store, release_paths("a"))
    assert blockers(run(store, waits("w2", "x/2"))) == ["w1"]
    assert type(run(store, waits("w1", "x/"))) is Reserved
    assert blockers(run(store, waits("w2", "x/2"))) == ["w1"]
    run(store, release_paths("w1"))
    assert type(run(store, waits("w2", "x/2"))) is Reserved
    check_log(store)


def test_arrivals_are_told_apart_within_one_microsecond(store):
    run(store, reserve("a", "x"))
    for name in ("w1", "w2", "w3"):
        run(store, waits(name, "x"))
    assert blockers(run(store, waits("w1", "x"))) == ["a"]
    assert blockers(run(store, waits("w2", "x"))) == ["a", "w1"]
    assert blockers(run(store, waits("w3", "x"))) == ["a", "w1", "w2"]


def test_a_waiter_without_a_sign_of_life_is_in_nobodys_way(store, clock):
    run(store, reserve("a", "x", ttl=600 * SECOND))
    run(store, waits("w1", "x"))
    run(store, waits("w2", "x"))
    clock.advance(5)
    assert run(store, refresh("w2")) is True
    clock.advance(1)
    with store.read() as reader:
        assert reader.due(10) == [("reservations", ACCOUNT, "w1")]
    assert run(store, expiry_command(("reservations", ACCOUNT, "w1"))) is True
    assert blockers(run(store, waits("w2", "x"))) == ["a"]
    assert run(store, refresh("w1")) is False
    check_log(store)


def test_a_sign_of_life_is_not_in_the_log(store):
    run(store, reserve("a", "x"))
    run(store, waits("w", "x"))
    with store.read() as reader:
        before = reader.log_bounds(ACCOUNT)
    run(store, refresh("w", lifetime=PLACE_LIFETIME))
    with store.read() as reader:
        assert reader.log_bounds(ACCOUNT) == before
    assert [row.waits_until - row.changed_at for row in every(store, Reservation) if row.id == "w"] == [PLACE_LIFETIME]
    check_log(store)


def test_a_sign_of_life_that_comes_late_does_not_shorten_the_time_for_which_a_place_is_kept(store):
    """It was under way when the caller's time was over, and its place was kept for longer."""
    run(store, reserve("a", "x"))
    run(store, waits("w", "x"))
    run(store, refresh("w", lifetime=PLACE_LIFETIME))
    (kept,) = waited_until(store).values()
    run(store, refresh("w"))
    assert waited_until(store) == {"w": kept}


def test_a_kept_place_is_continued_by_the_same_request_only(store, clock):
    run(store, reserve("a", "x", ttl=600 * SECOND))
    run(store, waits("w1", "x"))
    run(store, waits("w2", "x"))
    run(store, refresh("w1", "w2", lifetime=PLACE_LIFETIME))
    clock.advance(9)
    assert blockers(run(store, waits("new", "x", waiting_id="w1"))) == ["a"]
    assert blockers(run(store, waits("other", "x", "y", waiting_id="w1"))) == ["a", "w1", "w2"]
    run(store, release_paths("a"))
    outcome = run(store, reserve("again", "x", waiting_id="w1"))
    assert (type(outcome), outcome.row.id, outcome.lease_id) == (Reserved, "w1", "again")


def test_asking_again_without_waiting_keeps_the_place(store, clock):
    run(store, reserve("a", "x", ttl=600 * SECOND))
    run(store, waits("w1", "x"))
    clock.advance(5)
    outcome = run(store, reserve("again", "x", waiting_id="w1"))
    assert outcome.waiting_id == "w1"
    clock.advance(9)
    assert blockers(run(store, reserve("b", "x"))) == ["a", "w1"]


def test_a_caller_that_left_cannot_be_served(store):
    run(store, reserve("a", "x"))
    run(store, waits("w", "x"))
    run(store, leave("w"))
    run(store, leave("w"))
    run(store, release_paths("a"))
    with pytest.raises(ReservationMissing, match="left"):
        run(store, waits("w", "x"))
    assert type(run(store, reserve("b", "x"))) is Reserved


def test_a_wait_that_was_taken_for_dead_is_begun_again_at_the_end(store, clock):
    run(store, reserve("a", "x", ttl=600 * SECOND))
    run(store, waits("w1", "x"))
    clock.advance(6)
    run(store, waits("w2", "x"))
    assert blockers(run(store, waits("w1", "x"))) == ["a", "w2"]
    check_log(store)


def test_readers_that_wait_do_not_wait_for_each_other(store):
    run(store, reserve("a", "x"))
    assert blockers(run(store, waits("w1", "x", mode=SHARED))) == ["a"]
    assert blockers(run(store, waits("w2", "x", mode=SHARED))) == ["a"]
    assert blockers(run(store, waits("w3", "x", mode=EXCLUSIVE))) == ["a", "w1", "w2"]
    assert blockers(run(store, waits("w4", "x", mode=SHARED))) == ["a", "w3"]


# -- running engines --------------------------------------------------------------------------------------------


class Waiter:
    """A caller that waits; it gets its outcome in any thread."""

    all: ClassVar[list[Waiter]] = []

    def __init__(self, engine, command, seconds=30.0):
        self.outcome = None
        self.at = 0.0
        self.engine = engine
        self.ticket = engine.submit(command, self, None, seconds)
        self.all.append(self)

    def deliver(self, replies):
        ((_, self.outcome),) = replies
        self.at = time.monotonic()

    def wait(self):
        wait_until(lambda: self.outcome is not None, 10)
        return self.outcome


@pytest.fixture(autouse=True)
def _nobody_waits_after_the_test():
    Waiter.all.clear()
    yield
    for waiter in Waiter.all:
        waiter.engine.leave(waiter.ticket)


def queued(engine, count):
    wait_until(lambda: engine.reservation_waiters.size() == count, 10)


def test_a_waiter_is_served_when_the_last_one_in_its_way_has_gone(engine):
    engine.call(reserve("a", "x/1"))
    engine.call(reserve("b", "x/2"))
    waiter = Waiter(engine, waits("w", "x/"))
    queued(engine, 1)
    engine.call(release_paths("a"))
    time.sleep(0.05)
    assert waiter.outcome is None
    engine.call(release_paths("b"))
    assert type(waiter.wait()) is Reserved
    assert engine.reservation_waiters.size() == 0


def test_a_waiter_is_served_when_paths_are_released_and_when_a_reservation_expires(engine):
    engine.call(reserve("a", "x", "y"))
    engine.call(reserve("b", "z", ttl=SECOND))
    first, second = Waiter(engine, waits("w1", "x")), Waiter(engine, waits("w2", "z"))
    queued(engine, 2)
    engine.call(release_paths("a", "x"))
    assert type(first.wait()) is Reserved
    assert type(second.wait()) is Reserved


def test_hand_off_is_prompt(engine):
    def measure():
        engine.call(reserve(f"a{measure.n}", "x"))
        waiter = Waiter(engine, waits(f"w{measure.n}", "x"))
        queued(engine, 1)
        wait_until(lambda: not waiter.ticket.is_submitted)
        began = time.monotonic()
        engine.call(release_paths(f"a{measure.n}"))
        waiter.wait()
        engine.call(release_paths(f"w{measure.n}"))
        measure.n += 1
        return [waiter.at - began]

    measure.n = 0
    promptly(measure, within=0.1)


def test_a_caller_whose_time_is_over_keeps_its_place(engine):
    engine.call(reserve("a", "x"))
    first = Waiter(engine, waits("w1", "x"), 0.05)
    assert first.wait().waiting_id == "w1"
    later = Waiter(engine, waits("w2", "x"))
    queued(engine, 1)
    again = Waiter(engine, waits("w3", "x", waiting_id="w1"))
    queued(engine, 2)
    engine.call(release_paths("a"))
    assert type(again.wait()) is Reserved
    assert later.outcome is None


def test_a_repeated_call_that_gets_the_answer_of_the_first_is_in_nobodys_way(engine):
    engine.call(reserve("a", "x/1"))
    same = Once("key-1", "body-1", render_reserved)
    first = Waiter(engine, waits("w1", "x/", once=same))
    queued(engine, 1)
    repeated = Waiter(engine, waits("w2", "x/", once=same))
    queued(engine, 2)
    engine.call(release_paths("a"))
    assert [waiter.wait().row.id for waiter in (first, repeated)] == ["w1", "w1"]
    wait_until(lambda: not waited_until(engine.store), WAIT_LIFETIME / SECOND / 2)


def test_a_caller_that_disconnects_is_in_nobodys_way(engine):
    engine.call(reserve("a", "x/1"))
    gone = Waiter(engine, waits("w1", "x/"))
    stays = Waiter(engine, waits("w2", "x/2"))
    queued(engine, 2)
    engine.leave(gone.ticket)
    assert type(stays.wait()) is Reserved


def test_draining_answers_every_waiter_and_leaves_no_place(opened, started):
    engine = started(opened("sqlite"))
    engine.call(reserve("a", "x"))
    waiters = [Waiter(engine, waits(f"w{number}", "x")) for number in range(3)]
    queued(engine, 3)
    engine.drain()
    assert {type(waiter.wait()) for waiter in waiters} == {Draining}
    wait_until(lambda: [row.waits_until for row in every(engine.store, Reservation)] == [None] * 4)


def idle_engine(store):
    """An engine that is not started: `step` runs what is queued."""
    engine = Engine(store)
    engine.watch()
    return engine


def step(engine):
    """Run what is queued, in this thread."""
    while batch := engine._backlog.take(0):
        engine.lanes.all[0].run(batch)


def test_a_caller_that_disconnects_before_its_claim_runs_is_in_nobodys_way(memory):
    engine = idle_engine(memory)
    run(memory, reserve("a", "x/1"))
    gone = Waiter(engine, waits("w", "x/"))
    engine.leave(gone.ticket)
    step(engine)
    assert [row.id for row in every(memory, Reservation)] == ["a"]
    assert type(run(memory, reserve("b", "x/2"))) is Reserved


def test_a_caller_that_disconnects_before_it_waits_is_in_nobodys_way(memory, monkeypatch):
    engine = idle_engine(memory)
    run(memory, reserve("a", "x/1"))
    gone, (lane,) = Waiter(engine, waits("w", "x/")), engine.lanes.all
    report = lane._on_commit

    def leave_first(committed):
        engine.leave(gone.ticket)
        return report(committed)

    monkeypatch.setattr(lane, "_on_commit", leave_first)
    step(engine)
    assert [row.ended_how for row in every(memory, Reservation) if row.id == "w"] == ["left"]
    assert type(run(memory, reserve("b", "x/2"))) is Reserved


def test_a_caller_that_finds_no_room_to_wait_is_in_nobodys_way(memory, monkeypatch):
    monkeypatch.setattr("holdfast.engine.waiting.waiters.MAX_OF_ACCOUNT", 0)
    engine = idle_engine(memory)
    run(memory, reserve("a", "x/1"))
    refused = Waiter(engine, waits("w", "x/"))
    step(engine)
    assert type(refused.outcome) is TooManyWaiters
    assert type(run(memory, reserve("b", "x/2"))) is Reserved


def test_a_claim_that_is_in_the_engine_when_it_drains_is_answered_with_its_outcome(memory):
    engine = idle_engine(memory)
    run(memory, reserve("a", "x"))
    waiter = Waiter(engine, waits("w", "x"))
    step(engine)
    Waiter(engine, release_paths("a"), 0.0)
    engine.lanes.all[0].run(engine._backlog.take(0))
    assert waiter.ticket.is_submitted
    engine.drain()
    step(engine)
    assert type(waiter.outcome) is Reserved


def test_a_reservation_that_ends_between_the_answer_and_the_wait_is_not_missed(memory, monkeypatch):
    """Another server releases it: its notice comes before the ticket waits."""
    engine = idle_engine(memory)
    run(memory, reserve("a", "x"))
    handle_not_granted, pending = engine.reservation_waiters.handle_not_granted, [release_paths("a")]

    def release_first(ticket, outcome):
        while pending:
            run(memory, pending.pop())
            engine.reservation_waiters.wake_all()
        handle_not_granted(ticket, outcome)

    monkeypatch.setattr(engine.reservation_waiters, "handle_not_granted", release_first)
    waiter = Waiter(engine, waits("w", "x"))
    step(engine)
    assert type(waiter.outcome) is Reserved


def test_every_waiter_shows_a_sign_of_life_however_many_there_are(memory, clock, monkeypatch):
    monkeypatch.setattr("holdfast.engine.waiting.reservations.MAX_REFRESHED", 2)
    engine = idle_engine(memory)
    run(memory, reserve("a", "x"))
    for number in range(5):
        Waiter(engine, waits(f"w{number}", "x"))
    step(engine)
    clock.advance(1)
    engine.reservation_waiters._refresh()
    step(engine)
    assert waited_until(memory) == {f"w{number}": clock() + WAIT_LIFETIME for number in range(5)}


def test_the_wait_of_a_living_server_outlasts_its_lifetime(engine, monkeypatch):
    monkeypatch.setattr("holdfast.engine.waiting.reservations.REFRESH_SECONDS", 0.1)
    engine.call(reserve("a", "x", ttl=600 * SECOND))
    Waiter(engine, waits("w", "x"))
    queued(engine, 1)

    def until():
        return next(row.waits_until for row in every(engine.store, Reservation) if row.id == "w")

    first = until()
    wait_until(lambda: until() > first + SECOND, 15)


# -- many agents on two servers ----------------------------------------------------------------------------------

AGENTS = sized(8, 32)
ROUNDS = sized(60, 2_000)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_two_agents_hold_patterns_that_overlap_and_nobody_is_overtaken(kind, opened, started, covered):
    engines = [started(opened(kind)) for _ in range(2)]

    def one_round(number, rng):
        mode = rng.choice([EXCLUSIVE, EXCLUSIVE, SHARED])
        command = waits(f"r{number}", *some_patterns(rng), mode=mode, ttl=120 * SECOND)
        outcome = rng.choice(engines).call(command, 120.0)
        assert type(outcome) is Reserved, outcome
        time.sleep(rng.uniform(0, 0.003))
        rng.choice(engines).call(release_paths(outcome.row.id, lease_id=outcome.lease_id))

    run_agents(AGENTS, ROUNDS, one_round)
    assert check_grants(every(engines[0].store, Event)) == ROUNDS
    covered("reservations", ROUNDS)
