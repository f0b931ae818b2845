"""Bugs that are planted on purpose, in the rules, in the engine and in the store: the simulation finds each of them.

Each is searched for in a bounded number of seeds, and must be found as the promise that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from holdfast.core import lease as leases
from holdfast.core import question as questions
from holdfast.core import session as sessions
from holdfast.core import task as tasks
from holdfast.core.lease import holding as lease_holding
from holdfast.core.reservation import lifecycle as reservations
from holdfast.core.task import ending, holding, queueing
from holdfast.core.task import queue as queues
from holdfast.engine.batches import queue_limits, ready_heap
from holdfast.engine.command import Command
from holdfast.engine.retention import WriteSnapshot
from holdfast.engine.sweep import Sweep
from holdfast.engine.verbs import jobs
from holdfast.engine.view import View
from holdfast.engine.waiting.names import NameWaiters
from holdfast.engine.waiting.reservations import ReservationWaiters
from holdfast.engine.waiting.tasks import TaskWaiters
from holdfast.store import needs as store_needs
from holdfast.store.memory.deliveries import MemoryDeliveries
from tests.simulation import server
from tests.simulation.activities import WAIT_SECONDS, JobActivity, SessionActivity
from tests.simulation.clients import BASE, Activity
from tests.simulation.database import Connection, DatabaseReader, DatabaseTransaction
from tests.simulation.request import Operation
from tests.simulation.reservation_activities import ReservationActivity
from tests.simulation.runner import find_failure
from tests.simulation.supervised_tasks import SupervisedTaskActivity
from tests.simulation.task_activities import TaskActivity

SEEDS = 1_000


def break_rule(monkeypatch, name, broken):
    """Replace a rule of tasks in every module that uses it."""
    for module in (tasks, ending, holding, queueing, ready_heap):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, broken)


# -- rules -------------------------------------------------------------------------------------------------------


def former_holders_of_names_may_write(monkeypatch):
    end = leases.end
    monkeypatch.setattr(leases, "check_holder", lambda lease, proof, now: None)
    monkeypatch.setattr(leases, "end", lambda lease, *how, **more: end(lease, *how, **more) if lease.proof else lease)


def former_holders_of_tasks_may_write(monkeypatch):
    break_rule(monkeypatch, "check_holder", lambda task, proof, now, worker=None: None)
    for name in ("complete", "fail", "release", "heartbeat"):
        rule = getattr(tasks, name)
        lenient = lambda task, *args, rule=rule, **more: rule(task, *args, **more) if task.proof else task
        break_rule(monkeypatch, name, lenient)


def older_generations_of_a_session_may_write(monkeypatch):
    monkeypatch.setattr(sessions, "check_generation", lambda session, proof, now: None)


def a_lease_lasts_a_microsecond_too_long(monkeypatch):
    for module in (leases, lease_holding):
        monkeypatch.setattr(
            module, "is_live", lambda lease, now: lease.expires_at is not None and lease.expires_at >= now
        )


def a_lease_ends_a_microsecond_early(monkeypatch):
    monkeypatch.setattr(
        leases, "is_due", lambda lease, now: lease.expires_at is not None and lease.expires_at - 1 <= now
    )


def held_names_are_granted_again(monkeypatch):
    monkeypatch.setattr(leases, "is_live", lambda lease, now: False)


def held_tasks_stay_in_the_queue(monkeypatch):
    claim = tasks.claim
    break_rule(monkeypatch, "claim", lambda task, by, **more: replace(claim(task, by, **more), ready=True))
    break_rule(monkeypatch, "is_claimable", lambda task, wall: task.state in tasks.LIVE_STATES)


def scheduled_tasks_never_become_ready(monkeypatch):
    break_rule(monkeypatch, "is_schedule_due", lambda task, wall: False)


def releasing_a_task_uses_an_attempt(monkeypatch):
    back = tasks.release
    counted = lambda task, *args, **more: replace(back(task, *args, **more), attempt_count=task.attempt_count)
    break_rule(monkeypatch, "release", counted)


def a_task_gets_one_attempt_only(monkeypatch):
    expire = tasks.expire
    break_rule(monkeypatch, "expire", lambda task, now, **more: expire(replace(task, max_attempts=1), now, **more))


def completed_tasks_can_be_requeued(monkeypatch):
    requeue = tasks.requeue
    break_rule(monkeypatch, "requeue", lambda task, now, **more: requeue(replace(task, state=tasks.DEAD), now, **more))


def a_task_is_ready_before_what_it_needs(monkeypatch):
    monkeypatch.setattr(queueing, "waiting_reason", lambda task: "answer" if task.question is not None else None)


def a_task_that_asked_stays_in_its_queue(monkeypatch):
    ask = tasks.ask
    monkeypatch.setattr(tasks, "ask", lambda *given, **more: replace(ask(*given, **more), ready=True))


def a_question_is_answered_twice(monkeypatch):
    monkeypatch.setattr(questions, "check_open", lambda question, wall: None)


def a_task_forgets_the_answer(monkeypatch):
    take_answer = tasks.take_answer
    forgetful = lambda task, *given: replace(take_answer(task, *given), answered=task.answered)
    monkeypatch.setattr(tasks, "take_answer", forgetful)


def a_requeued_task_does_not_ask_again(monkeypatch):
    requeue = tasks.requeue
    silent = lambda task, now, **more: requeue(replace(task, question=None), now, **more)
    monkeypatch.setattr(tasks, "requeue", silent)


def other_work_needs_no_approval(monkeypatch):
    monkeypatch.setattr(questions, "approval_again", lambda *given: None)


def a_rejected_task_runs(monkeypatch):
    monkeypatch.setattr(questions, "is_rejected", lambda question: False)


def questions_never_expire(monkeypatch):
    monkeypatch.setattr(questions, "is_due", lambda question, wall: False)


def tasks_are_claimed_from_a_paused_queue(monkeypatch):
    for module in (queues, queue_limits, store_needs):
        monkeypatch.setattr(module, "is_closed", lambda queue, running: running >= (queue.max_running or 1_000))


def one_task_more_than_the_limit_runs(monkeypatch):
    is_closed = queues.is_closed
    for module in (queues, queue_limits, store_needs):
        monkeypatch.setattr(module, "is_closed", lambda queue, running: is_closed(queue, running - 1))


def one_task_of_a_key_more_than_the_limit_runs(monkeypatch):
    is_key_full = queues.is_key_full
    for module in (queues, queue_limits):
        monkeypatch.setattr(module, "is_key_full", lambda queue, running: is_key_full(queue, running - 1))


def one_pattern_is_not_compared(monkeypatch):
    conflicts = reservations.conflicts
    monkeypatch.setattr(reservations, "conflicts", lambda mine, *rest, **more: conflicts(mine[1:], *rest, **more))


def who_waits_is_in_nobodys_way(monkeypatch):
    monkeypatch.setattr(reservations, "_waits_before", lambda other, arrived_at, now: False)


def a_waiter_takes_the_first_place(monkeypatch):
    wait = reservations.wait
    monkeypatch.setattr(reservations, "wait", lambda *given: replace(wait(*given), arrived_at=1))


def shared_paths_are_free_for_everybody(monkeypatch):
    conflicts = reservations.conflicts

    def lenient(mine, mode, others, **more):
        return conflicts(mine, mode, [other for other in others if other.mode == "exclusive"], **more)

    monkeypatch.setattr(reservations, "conflicts", lenient)


# -- engine ------------------------------------------------------------------------------------------------------


def a_release_wakes_no_waiter(monkeypatch):
    monkeypatch.setattr(NameWaiters, "wake", lambda self, keys: None)


def a_released_reservation_wakes_no_waiter(monkeypatch):
    monkeypatch.setattr(ReservationWaiters, "wake", lambda self, freed: None)


def a_free_place_in_a_queue_wakes_no_waiter(monkeypatch):
    monkeypatch.setattr(TaskWaiters, "reopen", lambda self, queues: None)


def any_key_may_answer_and_set_queues(monkeypatch):
    monkeypatch.setattr(server, "check_scope", lambda request, scope: None)


def a_new_task_wakes_no_waiter(monkeypatch):
    monkeypatch.setattr(TaskWaiters, "offer", lambda self, queues, failing: None)


def notices_of_other_servers_wake_no_waiter(monkeypatch):
    monkeypatch.setattr(NameWaiters, "wake_all", lambda self: None)


def a_woken_waiter_forgets_that_the_name_was_freed_again(monkeypatch):
    keep_waiting = NameWaiters._keep_waiting

    def forgetful(self, ticket):
        self._queues[ticket.wait_keys[0]].try_again = False
        return keep_waiting(self, ticket)

    monkeypatch.setattr(NameWaiters, "_keep_waiting", forgetful)


def the_end_of_a_session_misses_one_lease(monkeypatch):
    leases_of = View.leases_of
    monkeypatch.setattr(View, "leases_of", lambda self, *session: leases_of(self, *session)[1:])


def tasks_are_counted_twice(monkeypatch):
    build = View.changes

    def doubled(self, tokens):
        changes = build(self, tokens)
        changes.counts = {key: 2 * count for key, count in changes.counts.items()}
        return changes

    monkeypatch.setattr(View, "changes", doubled)


def no_grace_after_an_outage(monkeypatch):
    monkeypatch.setattr(Sweep, "grace_commands", lambda self: [])


def the_log_is_cut_without_snapshots(monkeypatch):
    monkeypatch.setattr(WriteSnapshot, "decide", lambda self, view: True)


def answers_are_sent_before_the_commit(monkeypatch):
    commit, transaction = Connection._commit, Connection.transaction
    late = []

    def begin(self, lane=0):
        while late:
            commit(*late.pop())
        return transaction(self, lane)

    monkeypatch.setattr(Connection, "_commit", lambda self, opened: late.append((self, opened)))
    monkeypatch.setattr(Connection, "transaction", begin)


# -- store -------------------------------------------------------------------------------------------------------


def the_sweep_never_finds_the_first_row(monkeypatch):
    due = DatabaseReader.due
    monkeypatch.setattr(DatabaseReader, "due", lambda self, *args: due(self, *args)[1:])


def tokens_are_drawn_again(monkeypatch):
    monkeypatch.setattr(DatabaseTransaction, "draw", lambda self, count: [1] * count)


def answers_are_stored_outside_the_transaction(monkeypatch):
    commit = Connection._commit

    def forgetful(self, transaction):
        answers = []
        if transaction.has_changes:
            answers, transaction._changes.answers = transaction._changes.answers, []
        commit(self, transaction)
        self._database.answers |= {(answer.account, answer.key): answer for answer in answers}

    monkeypatch.setattr(Connection, "_commit", forgetful)


def two_transactions_may_insert_the_same_row(monkeypatch):
    monkeypatch.setattr(DatabaseTransaction, "_check_conflicts", lambda self, changes: None)


def a_space_is_not_locked(monkeypatch):
    monkeypatch.setattr(DatabaseTransaction, "_space_locks", lambda self, needs: [])


def a_full_key_hides_the_tasks_of_others(monkeypatch):
    monkeypatch.setattr(DatabaseTransaction, "_with_room", lambda self, claim, wall: iter(()))


def claims_do_not_lock_their_queues(monkeypatch):
    lock = DatabaseTransaction._lock

    def lax(self, needs, rows):
        lock(self, needs, rows)
        for key in [key for key in self.database.locks if key[0] == queues.Queue.table]:
            del self.database.locks[key]

    monkeypatch.setattr(DatabaseTransaction, "_lock", lax)


def webhook_cursors_move_without_their_deliveries(monkeypatch):
    add = MemoryDeliveries._add
    monkeypatch.setattr(MemoryDeliveries, "_add", lambda self, each: add(self, each) if each.seq % 5 else None)


class OneJobActivity(JobActivity):
    """Clients that all wait for one job and release it soon: it is often free again while a waiter's claim runs."""

    names = ("north",)

    def claim(self, name: str) -> Operation:
        return self.operation(self.claim_command(name), WAIT_SECONDS)

    def write(self, name: str, lease_id: str) -> Command[Any]:
        return jobs.ReleaseJob(**BASE, name=name, lease_id=lease_id, once=self.maybe_once())


class Bug(NamedTuple):
    plant: Callable[[pytest.MonkeyPatch], None]
    promise: str | tuple[str, ...]
    only: type[Activity] | None = None
    """What the clients do: concentrated on this, the bug is found in fewer seeds."""
    first: int = 0
    """The first seed."""


BUGS = [
    Bug(former_holders_of_names_may_write, "P4"),
    Bug(former_holders_of_tasks_may_write, ("P4", "P11"), TaskActivity),
    Bug(older_generations_of_a_session_may_write, "P4", SessionActivity),
    Bug(a_lease_lasts_a_microsecond_too_long, "P4", JobActivity),
    Bug(a_lease_ends_a_microsecond_early, "P2"),
    Bug(held_names_are_granted_again, "P1"),
    Bug(held_tasks_stay_in_the_queue, "P11"),
    Bug(scheduled_tasks_never_become_ready, "P12", TaskActivity),
    Bug(releasing_a_task_uses_an_attempt, "P10", TaskActivity),
    Bug(a_task_gets_one_attempt_only, "P10", TaskActivity),
    Bug(completed_tasks_can_be_requeued, "P11", TaskActivity),
    Bug(a_release_wakes_no_waiter, "P12", JobActivity),
    Bug(a_new_task_wakes_no_waiter, "P12", TaskActivity),
    Bug(a_woken_waiter_forgets_that_the_name_was_freed_again, "P12", OneJobActivity, first=2_000),
    Bug(notices_of_other_servers_wake_no_waiter, "P12", JobActivity),
    Bug(the_end_of_a_session_misses_one_lease, "P5", SessionActivity),
    Bug(tasks_are_counted_twice, "P9", TaskActivity),
    Bug(no_grace_after_an_outage, "P16", JobActivity),
    Bug(the_log_is_cut_without_snapshots, "P13"),
    Bug(answers_are_sent_before_the_commit, "P6"),
    Bug(the_sweep_never_finds_the_first_row, "P12"),
    Bug(tokens_are_drawn_again, "P3"),
    Bug(answers_are_stored_outside_the_transaction, "P8", JobActivity),
    Bug(two_transactions_may_insert_the_same_row, "P13", JobActivity),
    Bug(one_pattern_is_not_compared, "P25", ReservationActivity),
    Bug(shared_paths_are_free_for_everybody, ("P25", "P26"), ReservationActivity),
    Bug(a_space_is_not_locked, "P25", ReservationActivity),
    Bug(who_waits_is_in_nobodys_way, "P26", ReservationActivity),
    Bug(a_waiter_takes_the_first_place, "P26", ReservationActivity),
    Bug(a_released_reservation_wakes_no_waiter, "P12", ReservationActivity),
    Bug(a_task_is_ready_before_what_it_needs, "P28", TaskActivity),
    Bug(tasks_are_claimed_from_a_paused_queue, "P29", SupervisedTaskActivity),
    Bug(one_task_more_than_the_limit_runs, "P29", SupervisedTaskActivity),
    Bug(one_task_of_a_key_more_than_the_limit_runs, "P29", SupervisedTaskActivity),
    Bug(claims_do_not_lock_their_queues, "P29", SupervisedTaskActivity),
    Bug(a_full_key_hides_the_tasks_of_others, "P29", SupervisedTaskActivity),
    Bug(a_free_place_in_a_queue_wakes_no_waiter, "P12", SupervisedTaskActivity),
    Bug(a_task_that_asked_stays_in_its_queue, "P30", SupervisedTaskActivity),
    Bug(any_key_may_answer_and_set_queues, ("P29", "P30"), SupervisedTaskActivity),
    Bug(a_question_is_answered_twice, "P30", SupervisedTaskActivity),
    Bug(a_task_forgets_the_answer, "P30", SupervisedTaskActivity),
    Bug(a_requeued_task_does_not_ask_again, "P30", SupervisedTaskActivity),
    Bug(other_work_needs_no_approval, "P30", SupervisedTaskActivity),
    Bug(a_rejected_task_runs, "P30", SupervisedTaskActivity),
    Bug(questions_never_expire, "P12", SupervisedTaskActivity),
    Bug(webhook_cursors_move_without_their_deliveries, "P20"),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.plant.__name__)
def test_a_planted_bug_is_found(monkeypatch, bug):
    bug.plant(monkeypatch)
    found = find_failure(range(bug.first, bug.first + SEEDS), bug.only)
    assert found is not None, f"{SEEDS} seeds did not find it"
    assert found.startswith(bug.promise), found
