"""The backlog: urgent writes first but not only, accounts in rotation, batches within their limits."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest

from holdfast.core.errors import Draining, Overloaded
from holdfast.engine import backlog as backlogs
from holdfast.engine.backlog import Backlog
from holdfast.engine.ticket import Ticket
from tests.support import Keep, claim, heartbeat, in_background, in_time, once, wait_until

SINK = Keep()


def fill(backlog, *commands):
    for command in commands:
        backlog.put(Ticket(command, SINK))


def taken(backlog):
    return [ticket.command for ticket in backlog.take()]


def names(commands):
    return [command.name for command in commands]


def test_commands_are_taken_in_the_order_in_which_they_were_put():
    backlog = Backlog()
    fill(backlog, *(claim(str(number)) for number in range(10)))
    assert names(taken(backlog)) == [str(number) for number in range(10)]


def test_urgent_writes_come_before_new_work():
    backlog = Backlog()
    fill(backlog, claim("new"), heartbeat("held"))
    assert names(taken(backlog)) == ["held", "new"]


def test_new_work_keeps_a_quarter_of_every_batch():
    backlog = Backlog(max_batch=8)
    fill(
        backlog,
        *(heartbeat(f"held-{number}") for number in range(30)),
        *(claim(f"new-{number}") for number in range(30)),
    )
    for _ in range(3):
        kinds = Counter(name.split("-")[0] for name in names(taken(backlog)))
        assert kinds == {"held": 6, "new": 2}


@pytest.mark.parametrize(("held", "new"), [(30, 0), (30, 1), (0, 30), (2, 30)])
def test_the_reserved_quarter_is_used_when_there_is_no_new_work(held, new):
    backlog = Backlog(max_batch=8)
    fill(backlog, *(heartbeat(f"h{number}") for number in range(held)), *(claim(f"n{number}") for number in range(new)))
    assert len(taken(backlog)) == 8


def test_accounts_alternate_within_a_batch():
    backlog = Backlog(max_batch=4)
    fill(
        backlog,
        *(claim(f"a{number}", account="a") for number in range(10)),
        claim("b0", account="b"),
        claim("b1", account="b"),
    )
    assert names(taken(backlog)) == ["a0", "b0", "a1", "b1"]


def test_accounts_alternate_from_batch_to_batch():
    backlog = Backlog(max_batch=2)
    for account in "abcd":
        fill(backlog, *(claim(f"{account}{number}", account=account) for number in range(8)))
    served = Counter(command.account for _ in range(8) for command in taken(backlog))
    assert served == {"a": 4, "b": 4, "c": 4, "d": 4}


def test_a_ticket_sorted_during_the_count_is_not_counted_twice():
    backlog = Backlog(max_queued=10)

    class Inbox(deque):
        """An inbox whose tickets a lane sorts right after each count."""

        def __len__(self):
            found = super().__len__()
            if found and not self.is_sorting:
                self.is_sorting = True
                backlog._sort()
            return found

    fill(backlog, *(claim(str(number)) for number in range(6)))
    backlog._inbox = Inbox(backlog._inbox)
    backlog._inbox.is_sorting = False
    fill(backlog, claim("7th"))
    assert len(taken(backlog)) == 7


def test_a_full_backlog_refuses_more_and_keeps_its_tickets():
    backlog = Backlog(max_queued=3)
    fill(backlog, claim("1"), heartbeat("2"), claim("3"))
    with pytest.raises(Overloaded) as caught:
        fill(backlog, claim("4"))
    assert caught.value.applied == "no"
    assert sorted(names(taken(backlog))) == ["1", "2", "3"]
    fill(backlog, claim("5"))
    assert names(taken(backlog)) == ["5"]


def test_requests_with_one_idempotency_key_are_never_in_one_batch():
    backlog = Backlog()
    twice = [claim("x", once=once("k")), claim("x", once=once("k"))]
    fill(backlog, *twice, claim("y", account="b", once=once("k")), claim("z", account="c"))
    assert sorted(names(taken(backlog))) == ["x", "y", "z"]
    assert names(taken(backlog)) == ["x"]


def test_a_batch_stays_below_its_byte_limit_but_one_larger_command_runs_alone(monkeypatch):
    monkeypatch.setattr(backlogs, "MAX_BATCH_BYTES", 100)
    backlog = Backlog()
    sizes = [60, 40, 1, 500, 3]
    fill(backlog, *(claim(str(size), metadata="x" * size) for size in sizes))
    batches = []
    while sum(map(len, batches)) < len(sizes):
        batches.append(names(taken(backlog)))
    assert batches == [["60", "40"], ["1"], ["500"], ["3"]]


def test_tickets_that_waited_come_first():
    backlog = Backlog()
    fill(backlog, claim("newcomer"))
    waited = Ticket(claim("from the line"), SINK)
    waited.is_waiting = True
    backlog.put(waited)
    assert names(taken(backlog)) == ["from the line", "newcomer"]


def test_a_closed_backlog_refuses_tickets_but_hands_out_queued_ones():
    backlog = Backlog()
    fill(backlog, claim("last"))
    backlog.close()
    with pytest.raises(Draining):
        fill(backlog, claim("late"))
    assert names(taken(backlog)) == ["last"]
    assert in_time(backlog.take) is None


def test_taking_waits_for_the_first_command():
    backlog = Backlog()
    with ThreadPoolExecutor(1) as lane:
        batch = lane.submit(backlog.take)
        assert not wait([batch], 0.05).done
        fill(backlog, claim("at last"))
        backlog.wake()
        assert names(ticket.command for ticket in batch.result(5)) == ["at last"]


@pytest.mark.parametrize("how", ["put", "left by another batch"])
def test_a_ticket_that_comes_while_a_lane_is_about_to_sleep_is_taken(how, monkeypatch):
    """Its caller found no sleeping lane to wake, and the lane had looked before."""
    backlog = Backlog(max_batch=1)
    count_sleeping = backlog._count_sleeping

    def put_then_sleep(step):
        monkeypatch.undo()
        fill(backlog, claim("a"))
        if how != "put":
            fill(backlog, claim("b"))
            backlog.take_queued()
        backlog.wake()
        count_sleeping(step)

    monkeypatch.setattr(backlog, "_count_sleeping", put_then_sleep)
    assert len(in_time(backlog.take, 5)) == 1


def test_no_ticket_is_left_behind_by_lanes_and_callers_that_take_at_the_same_time():
    """Callers put a ticket and wake a lane, or take what is queued themselves; every ticket is taken once."""
    backlog, taken_names, lock = Backlog(max_batch=3), [], threading.Lock()

    def note(batch):
        with lock:
            taken_names.extend(names(ticket.command for ticket in batch))

    def lane():
        while (batch := backlog.take()) is not None:
            note(batch)

    def caller(number):
        rng = random.Random(number)
        for count in range(300):
            backlog.put(Ticket(claim(f"{number}-{count}"), SINK))
            if rng.random() < 0.5:
                note(backlog.take_queued())
            backlog.wake()
            if rng.random() < 0.1:
                wait_until(lambda: not backlog.size())  # the lanes sleep again

    lanes = [in_background(lane) for _ in range(2)]
    for future in [in_background(partial(caller, number)) for number in range(4)]:
        future.result(30)
    wait_until(lambda: not backlog.size())
    backlog.close()
    assert [each.result(5) for each in lanes] == [None] * 2
    assert sorted(taken_names) == sorted(f"{number}-{count}" for number in range(4) for count in range(300))


def test_a_take_ends_in_time_although_another_lane_takes_what_it_was_woken_for():
    """As when a lane tries locked rows again: nothing else might ever wake it."""
    rng = random.Random(1)
    for _ in range(30):
        backlog = Backlog()
        lanes = [in_background(partial(backlog.take, 0.005)) for _ in range(8)]
        time.sleep(rng.uniform(0.0015, 0.005))
        fill(backlog, claim("job"))
        backlog.wake()
        assert sum(len(each.result(5)) for each in lanes) <= 1


def test_closing_wakes_every_waiting_take():
    backlog = Backlog()
    waiting = [in_background(backlog.take) for _ in range(3)]
    assert not wait(waiting, 0.05).done
    backlog.close()
    assert [each.result(5) for each in waiting] == [None] * 3


def test_a_ticket_put_after_the_last_lane_has_ended_is_answered():
    """The backlog was open when the caller looked, and nothing takes the ticket any more."""
    backlog, sink = Backlog(), Keep()

    class Inbox(deque):
        """An inbox whose lanes end before the first ticket is in it."""

        def append(self, ticket):
            if not backlog._finished:
                backlog._closed = True
                backlog.finish()
            super().append(ticket)

    backlog._inbox = Inbox()
    backlog.put(Ticket(claim("late"), sink))
    assert [type(outcome) for _, outcome in sink.replies] == [Draining]
