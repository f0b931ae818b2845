"""Waiters for names, without an engine: which ticket tries next, and that each is answered exactly once."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from holdfast.core.errors import Draining, TooManyWaiters, UnknownKey
from holdfast.core.principal import Principal
from holdfast.engine.command import Held
from holdfast.engine.ticket import CallerKey, Ticket
from holdfast.engine.timer import Timer
from holdfast.engine.waiting import kept_places, names
from holdfast.engine.waiting.names import NameWaiters
from tests.engine.callback_locks import LockAfterCallback
from tests.support import ACCOUNT, START, Keep, a_lease, claim, claim_any

KEY, OTHER = ("leases", ACCOUNT, "job"), ("leases", ACCOUNT, "other")
HELD = Held(lease=a_lease(), now=START)
GRANTED = object()


class Waiting:
    """Name waiters whose tries and answers are recorded here."""

    def __init__(self):
        self.tries = []
        self.answers = []
        self.attended = []
        self.timer = Timer()
        self.waiters = NameWaiters(self.tries.append, self.answers.extend, self.set_waiting, self.timer)

    def enter(self, lease_id, wait=60.0, key=None, **more):
        return self.enter_with(claim("job", lease_id, **more), wait, key)

    def enter_with(self, command, wait=60.0, key=None):
        ticket = Ticket(command, Keep(), deadline=time.monotonic() + wait, key=key)
        if not self.waiters.join_queue(ticket):
            self.waiters.handle_not_granted(ticket, HELD)
        return ticket

    def set_waiting(self, *, waiting):
        self.attended.append(waiting)

    def give_up(self, ticket):
        """Let the ticket's time pass without a grant; the id that keeps its place."""
        self.waiters._time_out(ticket)
        self.waiters.handle_not_granted(ticket, HELD)
        (answer,) = [outcome for receiver, outcome in self.answers if receiver is ticket]
        for woken in [each for each in self.waiters._tickets() if each.is_submitted]:
            self.waiters.handle_not_granted(woken, HELD)
        return answer.waiting_id

    def served(self):
        """The lease ids of all waiting tickets, in the order in which they are served."""
        return [ticket.command.lease_id for ticket in self.waiters._tickets()]

    def answers_to(self, ticket):
        return [type(outcome) for receiver, outcome in self.answers if receiver is ticket]


@pytest.fixture
def waiting():
    waiting = Waiting()
    yield waiting
    waiting.timer.close()


def test_only_the_head_tries_and_the_next_one_after_it_is_served(waiting):
    first, second, third = (waiting.enter(f"l{number}") for number in range(3))
    waiting.waiters.wake([KEY])
    assert waiting.tries == [first]
    waiting.waiters.handle_settled(first, GRANTED)
    assert waiting.tries == [first, second]
    waiting.waiters.handle_not_granted(second, HELD)
    assert waiting.tries == [first, second]
    waiting.waiters.wake([KEY])
    waiting.waiters.handle_settled(second, GRANTED)
    assert waiting.tries == [first, second, second, third]


def test_a_head_that_is_trying_is_not_submitted_twice_but_tries_again_if_the_name_was_freed(waiting):
    first = waiting.enter("l1")
    waiting.waiters.wake([KEY])
    waiting.waiters.wake([KEY])
    assert waiting.tries == [first]
    waiting.waiters.handle_not_granted(first, HELD)
    assert waiting.tries == [first, first]
    waiting.waiters.handle_not_granted(first, HELD)
    assert waiting.tries == [first, first]


def test_a_new_waiter_joins_the_end_of_the_queue(waiting):
    waiting.enter("l1")
    newcomer = Ticket(claim("job", "l2"), Keep(), deadline=time.monotonic() + 60)
    assert waiting.waiters.join_queue(newcomer)
    assert waiting.waiters.length(KEY) == 2
    assert waiting.waiters.length(("leases", ACCOUNT, "other")) == 0


def test_a_claim_joins_no_queue_that_ends_at_that_moment(waiting):
    """Nobody would wake it: the name is free, and the last waiter has left."""
    first = waiting.enter("l1")
    newcomer = Ticket(claim("job", "l2"), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters._lock = LockAfterCallback(waiting.waiters._lock, lambda: waiting.waiters.leave(first))
    assert not waiting.waiters.join_queue(newcomer)
    assert waiting.waiters.length(KEY) == 0


def test_a_name_that_becomes_free_while_its_next_waiter_tries_for_another_one_is_tried_then(waiting):
    first, several = waiting.enter("l1"), waiting.enter_with(claim_any("job", "other", lease_id="l2"))
    waiting.waiters.wake([OTHER])
    waiting.waiters.leave(first)  # the other ticket is the head now, but its claim passes over this name
    waiting.waiters.wake([KEY])
    assert waiting.tries == [several]
    assert several.command.yields_in == {"job"}
    waiting.waiters.handle_not_granted(several, HELD)
    assert waiting.tries == [several, several]
    assert not several.command.yields_in


def test_waking_a_name_without_waiters_does_nothing(waiting):
    waiting.enter("l1")
    waiting.waiters.wake([("leases", ACCOUNT, "other")])
    assert waiting.tries == []
    waiting.waiters.wake_all()
    assert len(waiting.tries) == 1


def test_a_waiter_that_left_is_skipped(waiting):
    first, second = waiting.enter("l1"), waiting.enter("l2")
    waiting.waiters.leave(first)
    waiting.waiters.wake([KEY])
    assert waiting.tries == [second]
    assert waiting.waiters.length(KEY) == 1


def test_the_next_waiter_tries_when_the_head_leaves_during_its_try(waiting):
    first, second = waiting.enter("l1"), waiting.enter("l2")
    waiting.waiters.wake([KEY])
    waiting.waiters.leave(first)
    assert waiting.tries == [first, second]


def test_a_waiter_that_left_during_its_try_does_not_wait_again(waiting):
    first = waiting.enter("l1")
    waiting.waiters.wake([KEY])
    waiting.waiters.leave(first)
    waiting.waiters.handle_not_granted(first, HELD)
    assert waiting.waiters.length(KEY) == 0


def test_a_caller_that_left_before_its_first_answer_does_not_wait(waiting):
    ticket = Ticket(claim("job", "l1"), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters.leave(ticket)
    waiting.waiters.handle_not_granted(ticket, HELD)
    assert waiting.waiters.length(KEY) == 0


def test_a_waiter_whose_timeout_ends_tries_once_more_and_is_answered(waiting):
    first, second = waiting.enter("l1"), waiting.enter("l2")
    waiting.waiters._time_out(second)
    assert waiting.tries == [second]
    waiting.waiters.handle_not_granted(second, HELD)
    assert waiting.answers_to(second) == [Held]
    assert waiting.waiters.length(KEY) == 1
    waiting.waiters.wake([KEY])
    assert waiting.tries == [second, first]


def test_a_last_try_that_is_already_submitted_is_not_submitted_again(waiting):
    first = waiting.enter("l1")
    waiting.waiters.wake([KEY])
    waiting.waiters._time_out(first)
    assert waiting.tries == [first]
    waiting.waiters.handle_not_granted(first, HELD)
    assert waiting.answers_to(first) == [Held]


def test_a_wake_up_during_the_last_try_of_the_head_reaches_the_next_waiter(waiting):
    """The head was answered held, then another server freed the name, and its notice came before the head had left."""
    first, second = waiting.enter("l1"), waiting.enter("l2")
    waiting.waiters._time_out(first)
    waiting.waiters.wake_all()
    waiting.waiters.handle_not_granted(first, HELD)
    assert waiting.answers_to(first) == [Held]
    assert waiting.tries == [first, second]


def test_a_drain_answers_every_waiter_once(waiting):
    tickets = [waiting.enter(f"l{number}") for number in range(3)]
    waiting.waiters.drain()
    assert [waiting.answers_to(ticket) for ticket in tickets] == [[Draining]] * 3
    with pytest.raises(Draining):
        waiting.enter("late")


def test_a_waiter_whose_claim_is_in_the_engine_is_not_answered_when_its_key_ends(waiting):
    """That claim may have been granted already: its outcome is the only answer."""
    worker = Principal(ACCOUNT, "k1", key_hash="the old key")
    key = CallerKey(ACCOUNT, worker.id, worker.key_hash)
    trying, idle = waiting.enter("l1", key=key), waiting.enter("l2", key=key)
    waiting.waiters.wake([KEY])
    waiting.waiters.end_waits(replace(worker, key_hash="the new key"), START)
    assert (waiting.answers_to(trying), waiting.answers_to(idle)) == ([], [UnknownKey])
    assert waiting.served() == ["l1"]


def test_the_queue_of_a_name_is_limited(waiting, monkeypatch):
    monkeypatch.setattr(names, "MAX_OF_NAME", 3)
    for number in range(3):
        waiting.enter(f"l{number}")
    with pytest.raises(TooManyWaiters):
        waiting.enter("one too many")
    assert waiting.waiters.length(KEY) == 3


def test_other_processes_are_watched_only_while_a_caller_waits(waiting):
    first, second = waiting.enter("l1"), waiting.enter("l2")
    waiting.waiters.leave(first)
    assert waiting.attended[-1] is True
    waiting.waiters.leave(second)
    assert waiting.attended[-1] is False


# -- places ------------------------------------------------------------------------------------------------------


def test_a_caller_that_asks_again_keeps_its_place(waiting):
    first, second, _ = (waiting.enter(f"l{number}") for number in range(3))
    kept = waiting.give_up(second), waiting.give_up(first)
    waiting.enter("l3")
    waiting.enter("l1", waiting_id=kept[0])
    waiting.enter("l0", waiting_id=kept[1])
    assert waiting.served() == ["l0", "l1", "l2", "l3"]


def test_a_place_is_kept_once_and_only_in_its_own_queue(waiting):
    first, _ = waiting.enter("l0"), waiting.enter("l1")
    kept = waiting.give_up(first)
    ticket = Ticket(claim("other", "l9", waiting_id=kept), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters.handle_not_granted(ticket, HELD)
    waiting.enter("l0", waiting_id=kept)
    waiting.enter("copy", waiting_id=kept)
    waiting.enter("unknown", waiting_id="unknown")
    assert waiting.served()[:4] == ["l0", "l1", "copy", "unknown"]


def test_a_place_is_lost_after_ten_seconds(waiting, monkeypatch):
    first, _ = waiting.enter("l0"), waiting.enter("l1")
    kept, now = waiting.give_up(first), time.monotonic()
    monkeypatch.setattr(kept_places.time, "monotonic", lambda: now + kept_places.KEEP_SECONDS + 1)
    waiting.enter("l0", waiting_id=kept, wait=1e6)
    assert waiting.served() == ["l1", "l0"]


def test_a_caller_that_asks_again_does_not_displace_a_head_whose_claim_runs(waiting):
    first, second, _ = (waiting.enter(f"l{number}") for number in range(3))
    kept = waiting.give_up(first)
    waiting.waiters.wake([KEY])
    again = waiting.enter("l0", waiting_id=kept)
    assert waiting.served() == ["l1", "l0", "l2"]
    waiting.waiters.handle_not_granted(second, HELD)
    assert waiting.served() == ["l0", "l1", "l2"]
    waiting.waiters.wake([KEY])
    assert waiting.tries[-1] is again


def test_while_a_caller_is_away_the_name_goes_to_others(waiting):
    first = waiting.enter("l0")
    waiting.give_up(first)
    assert not waiting.waiters.length(KEY)


def test_the_end_of_a_delay_sets_one_alarm_however_often_the_head_tries(waiting):
    waiting.enter("l1")
    alarms = len(waiting.timer._heap)
    for seconds in (30.0, 30.001, 29.999, 60.0):
        waiting.waiters.wake_later(KEY, seconds)
    assert len(waiting.timer._heap) == alarms + 1
    waiting.waiters.wake_later(KEY, 20.0)
    assert len(waiting.timer._heap) == alarms + 2, "an earlier one"
    waiting.waiters.wake_later(OTHER, 20.0)
    assert len(waiting.timer._heap) == alarms + 2, "nobody waits for this name"
