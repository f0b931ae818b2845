"""Tasks that depend on others: met by completion; held, cancelled or run after a failure; each end counts once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.errors import Invalid, NotYetClaimable
from holdfast.core.row import SECOND
from holdfast.core.task import RelatedTask, Task
from tests.core.states import CANCELLED_TASK, DEAD_TASK, DONE, HELD, NEW, NOW

DUE = NOW + 5 * SECOND


def needed(state: Task, name: str) -> Task:
    return replace(state, id=name)


def dependent(*on: Task, policy: str | None = None, scheduled_at: int | None = None) -> Task:
    task = Task("default", "d", type="work", on_dependency_failure=policy, scheduled_at=scheduled_at)
    return tasks.create(tasks.depend_on(task, on), NOW)


def test_a_task_waits_for_those_that_have_not_completed():
    task = dependent(needed(DONE, "a"), needed(NEW, "b"), needed(HELD, "c"))
    assert (task.unmet, task.unmet_flags, task.waits_for, task.ready) == (2, "011", tasks.DEPENDENCIES, False)
    assert (tasks.needed_ids(task), tasks.unmet_ids(task)) == (["a", "b", "c"], ["b", "c"])
    assert tasks.dependency_edges(task) == {("default", name, "d") for name in "abc"}
    with pytest.raises(NotYetClaimable):
        tasks.check_claimable(task, NOW)


def test_a_task_whose_dependencies_have_all_completed_is_ready_at_once():
    task = dependent(needed(DONE, "a"))
    assert (task.unmet, task.waits_for, task.ready) == (0, None, True)


def test_a_task_without_dependencies_has_no_rule_for_their_failure():
    task = tasks.depend_on(Task("default", "d", on_dependency_failure=tasks.CANCEL), ())
    assert (task.depends_on, task.on_dependency_failure, task.unmet) == (None, None, 0)


def test_the_last_completion_puts_the_task_into_its_queue():
    task = dependent(needed(NEW, "a"), needed(NEW, "b"))
    first = tasks.after_end_of(task, needed(DONE, "b"), NOW)
    assert (first.unmet, first.unmet_flags, first.ready, first.waits_for) == (1, "10", False, tasks.DEPENDENCIES)
    last = tasks.after_end_of(first, needed(DONE, "a"), NOW)
    assert (last.unmet, last.unmet_flags, last.ready, last.waits_for) == (0, "00", True, None)


def test_a_completion_counts_once_however_often_it_is_applied():
    task = dependent(needed(NEW, "a"), needed(NEW, "b"))
    once = tasks.after_end_of(task, needed(DONE, "a"), NOW)
    assert tasks.after_end_of(once, needed(DONE, "a"), NOW) is once
    assert once.unmet == 1


@pytest.mark.parametrize("state", [NEW, HELD], ids=["pending", "claimed"])
def test_a_task_that_lives_again_changes_nothing(state):
    task = dependent(needed(NEW, "a"))
    assert tasks.after_end_of(task, needed(state, "a"), NOW) is task


def test_the_end_of_a_task_that_it_does_not_need_changes_nothing():
    task = dependent(needed(NEW, "a"))
    assert tasks.after_end_of(task, needed(DONE, "z"), NOW) is task


def test_a_schedule_holds_after_the_last_completion():
    task = tasks.after_end_of(dependent(needed(NEW, "a"), scheduled_at=DUE), needed(DONE, "a"), NOW)
    assert (task.ready, task.waits_for, task.scheduled_at, task.planned_at) == (False, None, DUE, None)


FAILURES = pytest.mark.parametrize("failed", [DEAD_TASK, CANCELLED_TASK], ids=["dead letter", "cancelled"])


@FAILURES
@pytest.mark.parametrize("policy", [None, tasks.HOLD])
def test_by_default_a_failed_dependency_holds_the_task_until_it_completes(failed, policy):
    task = dependent(needed(NEW, "a"), policy=policy)
    assert tasks.after_end_of(task, needed(failed, "a"), NOW) is task
    assert dependent(needed(failed, "a"), policy=policy).waits_for == tasks.DEPENDENCIES
    assert tasks.after_end_of(task, needed(DONE, "a"), NOW).ready


@FAILURES
def test_a_task_can_run_although_a_dependency_failed(failed):
    task = dependent(needed(NEW, "a"), policy=tasks.RUN)
    assert not task.ready
    assert tasks.after_end_of(task, needed(failed, "a"), NOW).ready
    assert dependent(needed(failed, "a"), policy=tasks.RUN).ready


@FAILURES
def test_a_task_can_be_cancelled_with_its_dependency_and_says_why(failed):
    task = tasks.after_end_of(dependent(needed(NEW, "a"), policy=tasks.CANCEL), needed(failed, "a"), NOW)
    assert (task.state, task.waits_for, task.ready) == (tasks.CANCELLED, None, False)
    assert "task a, which" in (task.cancel_reason or "")


def test_a_cancelled_dependent_learns_nothing_any_more():
    task = tasks.cancel(dependent(needed(NEW, "a"), policy=tasks.RUN))
    assert tasks.after_end_of(task, needed(DONE, "a"), NOW) is task


@pytest.mark.parametrize("policy", [tasks.HOLD, tasks.RUN])
def test_a_dead_letter_that_waited_is_ready_when_requeued_after_the_completion(policy):
    dead = tasks.end_by_deadline(dependent(needed(NEW, "a"), policy=policy))
    assert tasks.needs_dependencies(dead)
    told = tasks.after_end_of(dead, needed(DONE, "a"), NOW)
    assert (told.state, told.ready, tasks.needs_dependencies(told)) == (tasks.DEAD, False, False)
    assert tasks.requeue(told, NOW).ready


@FAILURES
def test_a_dead_letter_stays_one_when_its_dependency_fails(failed):
    dead = tasks.end_by_deadline(dependent(needed(NEW, "a"), policy=tasks.CANCEL))
    assert tasks.after_end_of(dead, needed(failed, "a"), NOW) is dead


def test_a_requeued_dead_letter_has_nothing_left_to_tell():
    telling = replace(DEAD_TASK, awaited=True, releasing="")
    assert tasks.deadline(telling) == telling.changed_at
    live = tasks.requeue(telling, NOW)
    assert (live.awaited, live.releasing, tasks.deadline(live)) == (True, None, None)


@given(st.lists(st.sets(st.integers(0, 11)), min_size=12, max_size=12))
def test_tasks_are_created_after_those_that_they_need_or_refused_for_a_circle(needs):
    try:
        order = tasks.creation_order(needs)
    except Invalid:
        left = dict(enumerate(needs))  # remove what can be created: a circle is left
        while free := [position for position, on in left.items() if not on & left.keys()]:
            for position in free:
                del left[position]
        assert left
    else:
        assert sorted(order) == list(range(12))
        assert all(order.index(on) < order.index(position) for position in range(12) for on in needs[position])


def test_a_circle_is_named():
    with pytest.raises(Invalid, match="items 1, 2 depend on each other in a circle"):
        tasks.creation_order([[], [2], [1], [0]])


def test_results_are_shown_up_to_a_size_and_a_short_one_still_fits_after_a_long_one():
    sizes = {"a": 6, "b": 9, "none": 0, "c": 4, "d": 1}
    found = [RelatedTask(name, "work", tasks.COMPLETED, result_size=size) for name, size in sizes.items()]
    assert tasks.results_that_fit(found, 10) == ["a", "c"]
