"""Lines, without an engine: who tries next, who is told what, and that nobody is woken in vain or forgotten."""

from __future__ import annotations

import time

import pytest

from holdfast.core.errors import Draining, TooManyWaiters
from holdfast.engine.backlog import Ticket
from holdfast.engine.command import Held
from holdfast.engine.timer import Timer
from holdfast.engine.waiting import names
from holdfast.engine.waiting.names import Lines
from tests.support import ACCOUNT, START, Keep, a_lease, claim

KEY = ("leases", ACCOUNT, "job")
HELD = Held(lease=a_lease(), now=START)


class Desk:
    """Lines whose tries and answers go nowhere but here."""

    def __init__(self):
        self.tries = []
        self.answers = []
        self.attended = []
        self.timer = Timer()
        self.lines = Lines(self.tries.append, self.answers.extend, self.attended.append, self.timer)

    def stand(self, lease_id, patience=60.0):
        ticket = Ticket(claim("job", lease_id), Keep(), deadline=time.monotonic() + patience)
        if not self.lines.queue_behind(ticket):
            self.lines.held(ticket, HELD)
        return ticket

    def told(self, ticket):
        return [type(outcome) for whom, outcome in self.answers if whom is ticket]


@pytest.fixture
def desk():
    desk = Desk()
    yield desk
    desk.timer.close()


def test_only_the_head_tries_and_the_next_when_it_has_it(desk):
    first, second, third = (desk.stand(f"l{number}") for number in range(3))
    desk.lines.wake([KEY])
    assert desk.tries == [first]
    desk.lines.settled(first)
    assert desk.tries == [first, second]
    desk.lines.held(second, HELD)
    assert desk.tries == [first, second]
    desk.lines.wake([KEY])
    desk.lines.settled(second)
    assert desk.tries == [first, second, second, third]


def test_a_head_that_is_trying_is_not_sent_twice_but_tries_again_if_it_was_freed_meanwhile(desk):
    first = desk.stand("l1")
    desk.lines.wake([KEY])
    desk.lines.wake([KEY])
    assert desk.tries == [first]
    desk.lines.held(first, HELD)
    assert desk.tries == [first, first]
    desk.lines.held(first, HELD)
    assert desk.tries == [first, first]


def test_a_newcomer_stands_behind_those_who_wait(desk):
    desk.stand("l1")
    newcomer = Ticket(claim("job", "l2"), Keep(), deadline=time.monotonic() + 60)
    assert desk.lines.queue_behind(newcomer)
    assert desk.lines.length(KEY) == 2
    assert desk.lines.length(("leases", ACCOUNT, "other")) == 0


def test_waking_a_name_nobody_waits_for_does_nothing(desk):
    desk.stand("l1")
    desk.lines.wake([("leases", ACCOUNT, "other")])
    assert desk.tries == []
    desk.lines.wake_all()
    assert len(desk.tries) == 1


def test_whoever_leaves_is_passed_over(desk):
    first, second = desk.stand("l1"), desk.stand("l2")
    desk.lines.leave(first)
    desk.lines.wake([KEY])
    assert desk.tries == [second]
    assert desk.lines.length(KEY) == 1


def test_the_next_one_looks_when_the_head_leaves_in_the_middle_of_its_try(desk):
    first, second = desk.stand("l1"), desk.stand("l2")
    desk.lines.wake([KEY])
    desk.lines.leave(first)
    assert desk.tries == [first, second]


def test_whoever_left_in_the_middle_of_its_try_does_not_come_back(desk):
    first = desk.stand("l1")
    desk.lines.wake([KEY])
    desk.lines.leave(first)
    desk.lines.held(first, HELD)
    assert desk.lines.length(KEY) == 0


def test_whoever_left_before_its_first_answer_does_not_stand_in_line(desk):
    ticket = Ticket(claim("job", "l1"), Keep(), deadline=time.monotonic() + 60)
    desk.lines.leave(ticket)
    desk.lines.held(ticket, HELD)
    assert desk.lines.length(KEY) == 0


def test_a_waiter_whose_patience_ends_tries_once_more_and_is_told(desk):
    first, second = desk.stand("l1"), desk.stand("l2")
    desk.lines._run_out(second)
    assert desk.tries == [second]
    desk.lines.held(second, HELD)
    assert desk.told(second) == [Held]
    assert desk.lines.length(KEY) == 1
    desk.lines.wake([KEY])
    assert desk.tries == [second, first]


def test_a_last_try_that_was_under_way_already_is_not_sent_again(desk):
    first = desk.stand("l1")
    desk.lines.wake([KEY])
    desk.lines._run_out(first)
    assert desk.tries == [first]
    desk.lines.held(first, HELD)
    assert desk.told(first) == [Held]


def test_a_notice_during_the_last_try_of_the_head_reaches_the_next_one(desk):
    """The head was told "held", then another server freed the name, and its notice came before the head had left."""
    first, second = desk.stand("l1"), desk.stand("l2")
    desk.lines._run_out(first)
    desk.lines.wake_all()
    desk.lines.held(first, HELD)
    assert desk.told(first) == [Held]
    assert desk.tries == [first, second]


def test_a_drain_sends_everybody_away_once(desk):
    tickets = [desk.stand(f"l{number}") for number in range(3)]
    desk.lines.drain()
    assert [desk.told(ticket) for ticket in tickets] == [[Draining]] * 3
    with pytest.raises(Draining):
        desk.stand("late")


def test_a_line_has_an_end(desk, monkeypatch):
    monkeypatch.setattr(names, "MAX_WAITERS", 3)
    for number in range(3):
        desk.stand(f"l{number}")
    with pytest.raises(TooManyWaiters):
        desk.stand("one too many")
    assert desk.lines.length(KEY) == 3


def test_watching_rests_when_nobody_waits(desk):
    first, second = desk.stand("l1"), desk.stand("l2")
    desk.lines.leave(first)
    assert desk.attended[-1] is True
    desk.lines.leave(second)
    assert desk.attended[-1] is False
