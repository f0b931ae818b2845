"""Waiters for tasks, without an engine: in order of arrival, n tasks wake n, and each is answered exactly once."""

from __future__ import annotations

import threading
import time

import pytest
from msgspec.structs import replace

from holdfast.core.errors import Draining, SessionExpired, StoreUnavailable, TooManyWaiters
from holdfast.engine.command import Once, Replayed
from holdfast.engine.ticket import Ticket
from holdfast.engine.timer import Timer
from holdfast.engine.verbs.tasks.claiming import Claimed, Empty, GrantedTask
from holdfast.engine.waiting import waiters
from holdfast.engine.waiting.tasks import TaskWaiters
from tests.engine.callback_locks import LockAfterCallback, LockWithCallback
from tests.support import ACCOUNT, START, Keep, wait_until
from tests.task_commands import a_task, take

EMPTY = Empty(now=START)


def found(task_type, requires=None):
    """A claim that took a task of this type."""
    task = a_task(type=task_type, requires=requires)
    return Claimed(taken=(GrantedTask(task=task, now=START, lease_id="l1"),), now=START)


FOUND = found("work")
WORK, OTHER = (ACCOUNT, "work", ""), (ACCOUNT, "other", "")


class Waiting:
    """Task waiters whose tries and answers are recorded here."""

    def __init__(self):
        self.tries = []
        self.answers = []
        self.attended = []
        self.timer = Timer()
        self.waiters = TaskWaiters(self.tries.append, self.answers.extend, self.set_waiting, self.timer)

    def enter(self, *types, wait=60.0, capabilities="", worker="worker", once=None, closed=()):
        """Add a waiter whose first claim and whose second try found nothing."""
        ticket = Ticket(take(*types, worker=worker, once=once), Keep(), deadline=time.monotonic() + wait)
        empty = Empty(capabilities=capabilities, closed=closed, now=START)
        self.waiters.handle_not_granted(ticket, empty)
        if ticket.is_submitted:
            self.tries.remove(ticket)
            self.waiters.handle_not_granted(ticket, empty)
        return ticket

    def set_waiting(self, *, waiting):
        self.attended.append(waiting)

    def size(self):
        return len(self.waiters._positions)

    def answers_to(self, ticket):
        return [type(outcome) for receiver, outcome in self.answers if receiver is ticket]


@pytest.fixture
def waiting():
    waiting = Waiting()
    yield waiting
    waiting.timer.close()


def test_a_task_that_has_just_failed_goes_to_its_own_worker_last(waiting):
    failed, other, later = waiting.enter("work", worker="ann"), waiting.enter("work"), waiting.enter("work")
    waiting.waiters.offer({WORK: 1}, {WORK: {"ann"}})
    assert waiting.tries == [other]
    waiting.waiters.offer({WORK: 2}, {WORK: {"ann"}})
    assert waiting.tries == [other, later, failed]


def test_a_new_waiter_tries_once_more(waiting):
    """A task created after the answer and before the ticket waited woke no ticket."""
    ticket = Ticket(take("work"), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters.handle_not_granted(ticket, EMPTY)
    assert waiting.tries == [ticket]
    assert waiting.size() == 1


def test_n_tasks_wake_the_first_n_waiters(waiting):
    first, second, _third = (waiting.enter("work") for _ in range(3))
    waiting.waiters.offer({WORK: 2})
    assert waiting.tries == [first, second]


def test_the_first_waiters_join_the_batch_that_creates_tasks(waiting):
    first, other, second, _third = (waiting.enter(name) for name in ("work", "other", "work", "work"))
    assert waiting.waiters.join({WORK: 2, OTHER: 5}, 10, set()) == [first, second, other]
    assert waiting.tries == []


def test_no_more_waiters_join_than_the_batch_has_room_for(waiting):
    first, second, other = (waiting.enter(name) for name in ("work", "work", "other"))
    assert waiting.waiters.join({WORK: 5, OTHER: 5}, 2, set()) == [first, second]
    assert waiting.waiters.join({OTHER: 1}, 1, set()) == [other]


def test_nobody_joins_a_batch_behind_a_waiter_that_is_trying(waiting):
    first, _second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.probe()
    assert waiting.waiters.join({WORK: 1}, 10, set()) == []
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.handle_not_granted(first, EMPTY)
    assert waiting.tries == [first, first]


def test_who_waits_behind_one_that_was_woken_for_a_task_of_its_own_joins(waiting):
    first, second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    assert waiting.waiters.join({WORK: 1}, 10, set()) == [second]
    assert waiting.tries == [first]


def test_two_waiters_under_one_idempotency_key_do_not_join_one_batch(waiting):
    once = Once("key", "fingerprint", lambda outcome: (200, b"{}"))
    tickets = [waiting.enter("work", once=once) for _ in range(2)]
    assert waiting.waiters.join({WORK: 2}, 10, set()) == tickets[:1]
    assert waiting.waiters.join({WORK: 2}, 10, {(ACCOUNT, "key")}) == []


def test_a_repeated_claim_tries_when_the_first_is_granted_and_finds_its_stored_answer(waiting):
    once = Once("key", "fingerprint", lambda outcome: (200, b"{}"))
    first, other, repeated = waiting.enter("work", once=once), waiting.enter("work"), waiting.enter("work", once=once)
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.handle_settled(first, FOUND)
    assert waiting.tries == [first, repeated]
    waiting.waiters.handle_settled(repeated, Replayed(200, b"{}"))
    assert waiting.tries == [first, repeated]
    waiting.waiters.leave(other)
    assert waiting.waiters._repeated == {}


def test_a_task_that_is_offered_while_a_waiter_claims_in_another_batch_is_not_lost(waiting):
    first, second = waiting.enter("work"), waiting.enter("work")
    assert waiting.waiters.join({WORK: 1}, 10, set()) == [first]
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.handle_settled(first, FOUND)
    assert waiting.tries == [second]


def test_a_waiter_that_is_trying_is_skipped_and_the_next_one_is_woken(waiting):
    first, second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.offer({WORK: 1})
    assert waiting.tries == [first, second]


def test_a_task_offered_during_a_probe_goes_to_the_waiter_that_probes(waiting):
    """A probe looks for work of another process. It may have read the queue before the task was created."""
    first, _second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.probe()
    waiting.waiters.offer({WORK: 1})
    assert waiting.tries == [first]
    waiting.waiters.handle_not_granted(first, EMPTY)
    assert waiting.tries == [first, first]
    waiting.waiters.handle_settled(first, FOUND)
    assert waiting.tries == [first, first]


def test_a_second_notice_during_a_probe_wakes_no_later_waiter(waiting):
    """The later one could take a task that is offered to the first in that moment."""
    first, _second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.probe()
    waiting.waiters.probe()
    assert waiting.tries == [first]
    waiting.waiters.handle_not_granted(first, EMPTY)
    assert waiting.tries == [first, first]


@pytest.mark.parametrize("end", ["granted", "left"])
def test_a_notice_during_a_try_is_followed_by_the_next_waiter_if_the_first_leaves(waiting, end):
    first, second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.probe()
    assert waiting.tries == [first]
    waiting.waiters.leave(first) if end == "left" else waiting.waiters.handle_settled(first, FOUND)
    assert waiting.tries == [first, second]


def test_a_new_waiter_behind_an_idle_one_does_not_try_once_more(waiting):
    """A task that was created meanwhile has woken the idle one, which must not be overtaken."""
    waiting.enter("work")
    ticket = Ticket(take("work"), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters.handle_not_granted(ticket, EMPTY)
    assert waiting.tries == []


@pytest.mark.parametrize("types", [("other",), ("work", "other"), ()])
def test_a_new_waiter_tries_once_more_for_a_type_that_no_idle_one_waits_for(waiting, types):
    waiting.enter("work")
    ticket = Ticket(take(*types), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters.handle_not_granted(ticket, EMPTY)
    assert waiting.tries == [ticket]


def test_each_further_task_during_a_probe_wakes_the_next_waiter(waiting):
    first, second, third = (waiting.enter("work") for _ in range(3))
    waiting.waiters.probe()
    waiting.waiters.offer({WORK: 2})
    waiting.waiters.offer({WORK: 1})
    assert waiting.tries == [first, second, third]


@pytest.mark.parametrize("end", ["granted", "refused", "left", "timed out"])
def test_a_task_that_waits_for_the_end_of_a_try_goes_to_the_next_if_the_first_leaves(waiting, end):
    first, second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.probe()
    waiting.waiters.offer({WORK: 1})
    if end == "left":
        waiting.waiters.leave(first)
    elif end == "timed out":
        waiting.waiters._time_out(first)
        waiting.waiters.handle_not_granted(first, EMPTY)
    else:
        waiting.waiters.handle_settled(first, FOUND if end == "granted" else SessionExpired("over"))
    assert waiting.tries == [first, second]


@pytest.mark.parametrize("signal", ["offer", "probe"])
def test_tasks_offered_while_every_waiter_tries_cause_another_try(waiting, signal):
    """The try had already read the queue when another process created a task: its notice finds no idle waiter."""
    first = waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.offer({WORK: 1}) if signal == "offer" else waiting.waiters.probe()
    waiting.waiters.handle_not_granted(first, EMPTY)
    assert waiting.tries == [first, first]
    waiting.waiters.handle_not_granted(first, EMPTY)
    assert waiting.tries == [first, first]


def test_tasks_are_offered_to_waiters_for_their_type_or_any_type(waiting):
    typed, several, anything, _else = (
        waiting.enter("work"), waiting.enter("other", "work"), waiting.enter(), waiting.enter("other"),
    )  # fmt: skip
    waiting.waiters.offer({WORK: 9})
    assert waiting.tries == [typed, several, anything]


def test_a_waiter_for_several_types_is_woken_once(waiting):
    several = waiting.enter("work", "other")
    waiting.waiters.offer({WORK: 1, OTHER: 1})
    assert waiting.tries == [several]


def test_accounts_do_not_wake_each_other(waiting):
    waiting.enter("work")
    waiting.waiters.offer({("other", "work", ""): 5})
    assert waiting.tries == []


def test_a_probe_that_found_a_task_wakes_more_probes(waiting):
    first, second, third, _fourth = (waiting.enter("work") for _ in range(4))
    waiting.waiters.probe()
    assert waiting.tries == [first]
    waiting.waiters.handle_settled(first, FOUND)
    assert waiting.tries == [first, second, third]
    assert waiting.size() == 3


@pytest.mark.parametrize(
    ("outcome", "next_one_tries"),
    [(found("work"), False), (found("other"), True), (SessionExpired("over"), True), (EMPTY, False)],
    ids=["took it", "took another", "refused", "found nothing"],
)
def test_a_task_that_a_woken_waiter_did_not_take_is_offered_to_the_next(waiting, outcome, next_one_tries):
    first, second = waiting.enter("work", "other"), waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    if outcome is EMPTY:  # another waiter took it
        waiting.waiters.handle_not_granted(first, EMPTY)
    else:
        waiting.waiters.handle_settled(first, outcome)
    assert waiting.tries == ([first, second] if next_one_tries else [first])


@pytest.mark.parametrize("outcome", [SessionExpired("over"), StoreUnavailable("gone"), found("other")])
def test_a_task_goes_to_the_next_one_if_the_woken_one_left_and_did_not_take_it(waiting, outcome):
    first, second = waiting.enter("work", "other"), waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.leave(first)
    waiting.waiters.handle_settled(first, outcome)
    assert waiting.tries == [first, second]


def test_a_task_offered_during_a_try_goes_to_the_next_one_if_the_second_try_takes_another(waiting):
    first = Ticket(take("work", "other"), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters.handle_not_granted(first, EMPTY)
    second = waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.handle_not_granted(first, EMPTY)
    assert waiting.tries == [first, first]
    waiting.waiters.handle_settled(first, found("other"))
    assert waiting.tries == [first, first, second]


@pytest.mark.parametrize("types", [("work",), ()], ids=["its type", "any type"])
def test_a_place_in_a_full_queue_wakes_who_waits_for_its_type_or_for_any(waiting, types):
    waiting.enter("other")
    ticket = waiting.enter(*types, closed=("work",))
    waiting.waiters.reopen({WORK[:2]: 1})
    assert waiting.tries == [ticket]


def test_a_place_that_becomes_free_during_the_try_that_found_the_queue_full_is_not_missed(waiting):
    """PostgreSQL has two lanes: the one that made room may report that before the one that found none."""
    first, second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.reopen({WORK[:2]: 1})
    waiting.waiters.handle_not_granted(first, replace(EMPTY, closed=("work",)))
    assert waiting.tries == [first, first]
    waiting.waiters.handle_not_granted(first, replace(EMPTY, closed=("work",)))
    waiting.waiters.reopen({WORK[:2]: 1})
    waiting.waiters.handle_settled(first, FOUND)
    assert waiting.tries == [first, first, first, second]


def test_a_waiter_that_finds_nothing_keeps_its_position(waiting):
    first, second = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters.handle_not_granted(first, EMPTY)
    waiting.waiters.offer({WORK: 1})
    assert waiting.tries == [first, first]
    waiting.waiters.handle_settled(first, FOUND)
    waiting.waiters.offer({WORK: 1})
    assert waiting.tries == [first, first, second]


def test_a_notice_of_another_process_wakes_one_waiter_of_each_queue(waiting):
    first, _second, other, anything = (
        waiting.enter("work"),
        waiting.enter("work"),
        waiting.enter("other"),
        waiting.enter(),
    )
    waiting.waiters.probe()
    assert set(waiting.tries) == {first, other, anything}
    assert len(waiting.tries) == 3


@pytest.mark.parametrize("outcome", [SessionExpired("over"), FOUND], ids=["refused", "found"])
@pytest.mark.parametrize("notices", [1, 2])
def test_after_a_waiter_for_any_type_a_notice_wakes_those_of_every_type(waiting, outcome, notices):
    first, second, third = waiting.enter(), waiting.enter("other"), waiting.enter("work", "other")
    for _ in range(notices):
        waiting.waiters.probe()
    assert waiting.tries == [first]
    waiting.waiters.handle_settled(first, outcome)
    assert waiting.tries == [first, second, third]


def test_a_waiter_that_left_is_skipped_and_does_not_wait_again(waiting):
    gone, stays = waiting.enter("work"), waiting.enter("work")
    waiting.waiters.leave(gone)
    waiting.waiters.offer({WORK: 1})
    assert waiting.tries == [stays]
    waiting.waiters.handle_not_granted(gone, EMPTY)
    assert waiting.size() == 1
    assert waiting.answers_to(gone) == []


def test_a_caller_that_left_before_its_first_answer_does_not_wait(waiting):
    ticket = Ticket(take("work"), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters.leave(ticket)
    waiting.waiters.handle_not_granted(ticket, EMPTY)
    assert (waiting.size(), waiting.tries) == (0, [])


def test_a_timeout_causes_one_last_try_and_one_answer(waiting):
    ticket = waiting.enter("work", wait=0.05)
    wait_until(lambda: waiting.tries == [ticket])
    waiting.waiters.handle_not_granted(ticket, EMPTY)
    assert waiting.answers_to(ticket) == [Empty]
    assert waiting.size() == 0


def test_a_last_try_that_is_already_submitted_is_not_submitted_again(waiting):
    ticket = waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters._time_out(ticket)
    assert waiting.tries == [ticket]
    waiting.waiters.handle_not_granted(ticket, EMPTY)
    assert waiting.answers_to(ticket) == [Empty]


def test_a_timeout_at_the_moment_of_the_grant_submits_the_claim_no_second_time(waiting):
    ticket = waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    waiting.waiters._lock = LockAfterCallback(
        waiting.waiters._lock, lambda: waiting.waiters.handle_settled(ticket, FOUND)
    )
    waiting.waiters._time_out(ticket)
    assert waiting.tries == [ticket]


@pytest.mark.parametrize("how", ["the timeout ends", "the server drains"])
def test_a_drain_or_timeout_during_an_empty_try_answers_once(waiting, how):
    ticket = waiting.enter("work")
    waiting.waiters.offer({WORK: 1})
    comes_between = waiting.waiters.drain if how == "the server drains" else lambda: waiting.waiters._time_out(ticket)
    waiting.waiters._lock = LockWithCallback(threading.Lock(), comes_between)
    waiting.waiters.handle_not_granted(ticket, EMPTY)
    answered = len(waiting.answers)
    if len(waiting.tries) > 1:  # a last try was submitted: only its outcome is the answer
        assert answered == 0
        waiting.waiters.handle_settled(ticket, FOUND)
    else:
        assert answered == 1


def test_a_drain_answers_every_waiter_once_and_accepts_no_more(waiting):
    idle, trying = waiting.enter("work"), waiting.enter("other")
    waiting.waiters.offer({OTHER: 1})
    waiting.waiters.drain()
    assert (waiting.answers_to(idle), waiting.answers_to(trying)) == ([Draining], [])
    waiting.waiters.handle_not_granted(trying, EMPTY)
    assert waiting.answers_to(trying) == [Draining]
    with pytest.raises(Draining):
        waiting.enter("work")
    assert waiting.size() == 0


def test_the_number_of_waiters_is_limited(waiting, monkeypatch):
    monkeypatch.setattr(waiters, "MAX_WAITERS", 2)
    waiting.enter("work")
    waiting.enter("other")
    with pytest.raises(TooManyWaiters):
        waiting.enter("work")
    assert waiting.size() == 2


def test_other_processes_are_watched_only_while_a_caller_waits(waiting):
    first, second = waiting.enter("work"), waiting.enter("other")
    waiting.waiters.leave(first)
    assert waiting.attended[-1] is True
    waiting.waiters.leave(second)
    assert waiting.attended[-1] is False


def test_no_state_is_kept_of_waiters_that_left(waiting):
    tickets = [waiting.enter("work", "other") for _ in range(3)]
    waiting.waiters.probe()
    waiting.waiters.probe()
    waiting.waiters.offer({WORK: 3})
    for ticket in tickets:
        waiting.waiters.handle_settled(ticket, FOUND)
    waiters = waiting.waiters
    assert (waiters._waiting, waiters._positions, waiters._woken_for) == ({}, {}, {})
    assert (waiters._probes, waiters._owed, waiters._owed_probes) == (set(), {}, set())


def test_a_task_wakes_the_first_waiter_that_has_what_it_requires(waiting):
    waiting.enter("work")
    waiting.enter("work", capabilities="cpu")
    able, also = waiting.enter(capabilities="cpu,gpu"), waiting.enter("work", capabilities="gpu")
    waiting.waiters.offer({(ACCOUNT, "work", "gpu"): 1})
    assert waiting.tries == [able]
    waiting.waiters.offer({(ACCOUNT, "work", "gpu"): 5})
    assert waiting.tries == [able, also]


def test_a_task_without_requirements_wakes_the_first_waiter_whatever_it_can_do(waiting):
    first, second = waiting.enter("work", capabilities="gpu"), waiting.enter("work")
    waiting.waiters.offer({WORK: 2})
    assert waiting.tries == [first, second]


def test_a_task_that_a_woken_waiter_left_goes_to_the_next_that_may_take_it(waiting):
    first = waiting.enter("work", capabilities="gpu")
    waiting.enter("work")
    third = waiting.enter("work", capabilities="gpu")
    waiting.waiters.offer({(ACCOUNT, "work", "gpu"): 1})
    waiting.waiters.handle_settled(first, FOUND)
    assert waiting.tries == [first, third]
    waiting.waiters.handle_settled(third, found("work", "gpu"))
    assert waiting.tries == [first, third]


def test_a_commit_elsewhere_wakes_one_waiter_of_each_set_of_capabilities(waiting):
    first, second = waiting.enter("work"), waiting.enter("work", capabilities="gpu")
    waiting.enter("work", capabilities="gpu")
    waiting.waiters.probe()
    assert waiting.tries == [first, second]


def test_a_new_waiter_tries_once_more_if_the_idle_ones_cannot_do_what_it_can(waiting):
    waiting.enter("work")
    ticket = Ticket(take("work"), Keep(), deadline=time.monotonic() + 60)
    waiting.waiters.handle_not_granted(ticket, Empty(capabilities="gpu", now=START))
    assert waiting.tries == [ticket]
