"""When a task is claimable, and the order of the queue."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.errors import Invalid, NotYetClaimable
from holdfast.core.row import SECOND
from holdfast.core.task import Task
from tests.core.states import CANCELLED_TASK, DEAD_TASK, DONE, END, EXPIRED_TASK, HELD, LATER, NEW, NOW, RETURNED

DAY = 24 * 3600 * SECOND


@pytest.mark.parametrize(
    ("ahead", "fine"), [(0, False), (-1, False), (1, True), (30 * DAY, True), (30 * DAY + 1, False)]
)
def test_a_task_is_scheduled_in_the_future_and_at_most_30_days_ahead(ahead, fine):
    wanted = Task("default", "t1", scheduled_at=NOW + ahead)
    for scheduling in (lambda: tasks.create(wanted, NOW), lambda: tasks.replace_work(NEW, wanted, NOW)):
        if fine:
            task = scheduling()
            assert (task.ready, task.scheduled_at) == (False, NOW + ahead)
        else:
            with pytest.raises(Invalid) as caught:
                scheduling()
            assert caught.value.errors[0]["pointer"] == "/scheduledAt"


@pytest.mark.parametrize(
    ("task", "now", "claimable", "ripe", "deadline"),
    [
        (NEW, NOW, True, False, None),
        (LATER, NOW + 5 * SECOND - 1, False, False, NOW + 5 * SECOND),
        (LATER, NOW + 5 * SECOND, True, True, NOW + 5 * SECOND),
        (tasks.make_ready(LATER), NOW + 5 * SECOND, True, False, None),
        (HELD, END, False, False, END),
        (DONE, NOW, False, False, None),
        (DEAD_TASK, NOW, False, False, None),
        (CANCELLED_TASK, NOW, False, False, None),
        (tasks.cancel(LATER), NOW + 9 * SECOND, False, False, None),
    ],
)
def test_a_task_is_claimable_from_its_due_time_and_not_a_microsecond_before(task, now, claimable, ripe, deadline):
    assert (tasks.is_claimable(task, now), tasks.is_schedule_due(task, now)) == (claimable, ripe)
    assert tasks.deadline(task) == deadline


@pytest.mark.parametrize(("early", "wait"), [(1, 1), (SECOND, 1), (SECOND + 1, 2), (5 * SECOND, 5)])
def test_an_early_claim_is_refused_with_the_seconds_left_rounded_up(early, wait):
    with pytest.raises(NotYetClaimable) as caught:
        tasks.check_claimable(LATER, NOW + 5 * SECOND - early)
    assert caught.value.retry_after == wait


def test_the_queue_is_ordered_by_priority_then_position_then_id():
    line = [
        replace(NEW, id="d", priority=100, place=NOW + 9),
        replace(NEW, id="a", priority=1, place=NOW + 9),
        replace(NEW, id="c", priority=0, place=NOW),
        replace(NEW, id="b", priority=0, place=NOW + 1),
        replace(NEW, id="e", priority=0, place=NOW + 1),
    ]
    mixed = [line[place] for place in (3, 0, 4, 2, 1)]
    assert sorted(mixed, key=tasks.queue_order) == line


def test_a_scheduled_task_comes_after_newer_tasks_for_one_minute_only():
    due = NOW + 5 * SECOND
    scheduled = tasks.queue_order(replace(LATER, id="m"))
    made_at = lambda when: tasks.queue_order(tasks.create(Task("default", "n"), when))
    assert made_at(NOW - DAY) < scheduled
    assert made_at(due) < scheduled
    assert made_at(due + tasks.SCHEDULED_LAG - 1) < scheduled
    assert scheduled < made_at(due + tasks.SCHEDULED_LAG)


def test_a_task_returned_without_delay_keeps_its_position():
    for back in (
        RETURNED,
        EXPIRED_TASK,
        tasks.release(HELD, tasks.RELEASED, now=NOW + 9),
        tasks.requeue(DEAD_TASK, NOW + 9),
    ):
        assert tasks.queue_order(back) == tasks.queue_order(NEW)


@pytest.mark.parametrize(
    ("task", "before", "old"),
    [
        (replace(DONE, changed_at=9), 10, True),
        (replace(DONE, changed_at=10), 10, False),
        (replace(DEAD_TASK, changed_at=9), 10, True),
        (replace(CANCELLED_TASK, changed_at=9), 10, True),
        (replace(NEW, changed_at=9), 10, False),
        (replace(HELD, changed_at=9), 10, False),
    ],
)
def test_only_finished_tasks_that_did_not_change_since_are_purgeable(task, before, old):
    assert tasks.is_purgeable(task, before) is old
