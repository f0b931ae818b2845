"""Those who wait for work: who came first tries first, n tasks wake n, and nobody is answered twice or forgotten."""

from __future__ import annotations

import threading
import time

import pytest

from holdfast.core.errors import Draining, SessionExpired, TooManyWaiters
from holdfast.engine.backlog import Ticket
from holdfast.engine.timer import Timer
from holdfast.engine.verbs.tasks.queueing import Claimed, Empty, Taken
from holdfast.engine.waiting import tasks as crowds
from holdfast.engine.waiting.tasks import Crowd
from tests.chores import a_task, take
from tests.support import ACCOUNT, START, Keep, wait_until

EMPTY = Empty(now=START)


def found(task_type):
    """A claim that took a task of this type."""
    return Claimed(taken=(Taken(task=a_task(type=task_type), now=START, lease_id="l1"),), now=START)


FOUND = found("work")
WORK, OTHER = (ACCOUNT, "work"), (ACCOUNT, "other")


class Room:
    """A crowd whose tries and answers go nowhere but here."""

    def __init__(self):
        self.tries = []
        self.answers = []
        self.attended = []
        self.timer = Timer()
        self.crowd = Crowd(self.tries.append, self.answers.extend, self.attended.append, self.timer)

    def enter(self, *types, patience=60.0):
        """Somebody who found nothing and waits; its look right after it stood there found nothing either."""
        ticket = Ticket(take(*types), Keep(), deadline=time.monotonic() + patience)
        self.crowd.found_nothing(ticket, EMPTY)
        if ticket.under_way:
            self.tries.remove(ticket)
            self.crowd.found_nothing(ticket, EMPTY)
        return ticket

    def size(self):
        return len(self.crowd._places)

    def told(self, ticket):
        return [type(outcome) for whom, outcome in self.answers if whom is ticket]


@pytest.fixture
def room():
    room = Room()
    yield room
    room.timer.close()


def test_whoever_has_just_come_looks_once_more(room):
    """What was made between its answer and its standing here was told to nobody."""
    ticket = Ticket(take("work"), Keep(), deadline=time.monotonic() + 60)
    room.crowd.found_nothing(ticket, EMPTY)
    assert room.tries == [ticket]
    assert room.size() == 1


def test_n_tasks_let_the_n_who_came_first_try(room):
    first, second, _third = (room.enter("work") for _ in range(3))
    room.crowd.offer({WORK: 2})
    assert room.tries == [first, second]


def test_whoever_tries_already_is_not_sent_again_but_the_next_one_is(room):
    first, second = room.enter("work"), room.enter("work")
    room.crowd.offer({WORK: 1})
    room.crowd.offer({WORK: 1})
    room.crowd.offer({WORK: 1})
    assert room.tries == [first, second]


@pytest.mark.parametrize("news", ["offer", "look"])
def test_news_that_come_while_everybody_tries_are_looked_after(room, news):
    """The try had looked already when another process made a task: its notice finds nobody idle."""
    first = room.enter("work")
    room.crowd.offer({WORK: 1})
    room.crowd.offer({WORK: 1}) if news == "offer" else room.crowd.look()
    room.crowd.found_nothing(first, EMPTY)
    assert room.tries == [first, first]
    room.crowd.found_nothing(first, EMPTY)
    assert room.tries == [first, first]


def test_tasks_are_offered_to_those_who_want_their_type_or_any(room):
    typed, several, anything, _else = (
        room.enter("work"), room.enter("other", "work"), room.enter(), room.enter("other"),
    )  # fmt: skip
    room.crowd.offer({WORK: 9})
    assert room.tries == [typed, several, anything]


def test_one_who_waits_for_several_types_is_sent_once(room):
    several = room.enter("work", "other")
    room.crowd.offer({WORK: 1, OTHER: 1})
    assert room.tries == [several]


def test_accounts_do_not_wake_each_other(room):
    room.enter("work")
    room.crowd.offer({("other", "work"): 5})
    assert room.tries == []


def test_whoever_found_work_of_another_process_lets_others_look_for_more(room):
    first, second, third, _fourth = (room.enter("work") for _ in range(4))
    room.crowd.look()
    assert room.tries == [first]
    room.crowd.settled(first, FOUND)
    assert room.tries == [first, second, third]
    assert room.size() == 3


@pytest.mark.parametrize(
    ("outcome", "next_one_tries"),
    [(found("work"), False), (found("other"), True), (SessionExpired("over"), True), (EMPTY, False)],
    ids=["took it", "took another", "refused", "found nothing"],
)
def test_what_somebody_was_woken_for_and_did_not_take_is_offered_to_the_next(room, outcome, next_one_tries):
    first, second = room.enter("work", "other"), room.enter("work")
    room.crowd.offer({WORK: 1})
    if outcome is EMPTY:  # somebody else has it
        room.crowd.found_nothing(first, EMPTY)
    else:
        room.crowd.settled(first, outcome)
    assert room.tries == ([first, second] if next_one_tries else [first])


def test_whoever_finds_nothing_keeps_its_place(room):
    first, second = room.enter("work"), room.enter("work")
    room.crowd.offer({WORK: 1})
    room.crowd.found_nothing(first, EMPTY)
    room.crowd.offer({WORK: 1})
    assert room.tries == [first, first]
    room.crowd.settled(first, FOUND)
    room.crowd.offer({WORK: 1})
    assert room.tries == [first, first, second]


def test_a_notice_from_elsewhere_lets_one_of_each_queue_look(room):
    first, _second, other, anything = room.enter("work"), room.enter("work"), room.enter("other"), room.enter()
    room.crowd.look()
    assert set(room.tries) == {first, other, anything}
    assert len(room.tries) == 3


def test_whoever_leaves_is_passed_over_and_does_not_come_back(room):
    gone, stays = room.enter("work"), room.enter("work")
    room.crowd.leave(gone)
    room.crowd.offer({WORK: 1})
    assert room.tries == [stays]
    room.crowd.found_nothing(gone, EMPTY)
    assert room.size() == 1
    assert room.told(gone) == []


def test_whoever_left_before_its_first_answer_does_not_wait(room):
    ticket = Ticket(take("work"), Keep(), deadline=time.monotonic() + 60)
    room.crowd.leave(ticket)
    room.crowd.found_nothing(ticket, EMPTY)
    assert (room.size(), room.tries) == (0, [])


def test_patience_that_ends_is_one_last_try_and_one_answer(room):
    ticket = room.enter("work", patience=0.05)
    wait_until(lambda: room.tries == [ticket])
    room.crowd.found_nothing(ticket, EMPTY)
    assert room.told(ticket) == [Empty]
    assert room.size() == 0


def test_a_last_try_that_was_under_way_already_is_not_sent_again(room):
    ticket = room.enter("work")
    room.crowd.offer({WORK: 1})
    room.crowd._run_out(ticket)
    assert room.tries == [ticket]
    room.crowd.found_nothing(ticket, EMPTY)
    assert room.told(ticket) == [Empty]


class Seam:
    """A lock that lets somebody else in at the very moment it is let go."""

    def __init__(self, lock, then):
        self._lock = lock
        self._then = then

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()
        then, self._then = self._then, lambda: None
        then()


@pytest.mark.parametrize("how", ["patience ends", "the server drains"])
def test_whatever_comes_between_as_a_try_comes_back_empty_nobody_is_answered_twice(room, how):
    ticket = room.enter("work")
    room.crowd.offer({WORK: 1})
    comes_between = room.crowd.drain if how == "the server drains" else lambda: room.crowd._run_out(ticket)
    room.crowd._lock = Seam(threading.Lock(), comes_between)
    room.crowd.found_nothing(ticket, EMPTY)
    answered = len(room.answers)
    if len(room.tries) > 1:  # a last try is on its way: its answer is the one
        assert answered == 0
        room.crowd.settled(ticket, FOUND)
    else:
        assert answered == 1


def test_a_drain_sends_everybody_away_once_and_lets_nobody_in(room):
    idle, trying = room.enter("work"), room.enter("other")
    room.crowd.offer({OTHER: 1})
    room.crowd.drain()
    assert (room.told(idle), room.told(trying)) == ([Draining], [])
    room.crowd.found_nothing(trying, EMPTY)
    assert room.told(trying) == [Draining]
    with pytest.raises(Draining):
        room.enter("work")
    assert room.size() == 0


def test_a_crowd_has_its_limit(room, monkeypatch):
    monkeypatch.setattr(crowds, "MAX_WAITERS", 2)
    room.enter("work")
    room.enter("other")
    with pytest.raises(TooManyWaiters):
        room.enter("work")
    assert room.size() == 2


def test_watching_rests_when_nobody_waits(room):
    first, second = room.enter("work"), room.enter("other")
    room.crowd.leave(first)
    assert room.attended[-1] is True
    room.crowd.leave(second)
    assert room.attended[-1] is False


def test_nothing_is_kept_of_those_who_are_gone(room):
    tickets = [room.enter("work", "other") for _ in range(3)]
    room.crowd.offer({WORK: 3})
    for ticket in tickets:
        room.crowd.settled(ticket, FOUND)
    crowd = room.crowd
    assert (crowd._waiting, crowd._places, crowd._woken_for, crowd._scouts) == ({}, {}, {}, set())
