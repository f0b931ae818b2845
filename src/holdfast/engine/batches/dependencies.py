"""Updates the dependents of a task that has ended: up to 500 at once, the rest by the sweep.

A command that may end a task asks for its first dependents (`Needs.dependents`). Where they were not loaded, are too
many or are locked by another server, the task is saved with `releasing` set, in the same transaction: the sweep of any
server goes on from there, a part in each transaction, also after a crash. A dependent that is cancelled has dependents
too; they are updated in the same way.
"""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import task as tasks
from holdfast.core.errors import DamagedRow
from holdfast.core.task import Task
from holdfast.engine.batches.questions import withdraw_question
from holdfast.engine.batches.steps import Step
from holdfast.engine.view import View
from holdfast.store.needs import dependents_of_each

DEPENDENCY_MET = "dependency_met"
"""Verb of the event of a task when one that it needs has ended and it is not cancelled for that."""


def update_dependents(view: View, first: int) -> None:
    """Apply the ends of awaited tasks since this step to their dependents; doing it again changes nothing."""
    position = first
    while position < len(view.steps):  # it grows while dependents are cancelled
        step = view.steps[position]
        position += 1
        if _ends_awaited(step):
            task = view.find(Task, step.after.account, step.after.id)
            if task is not None and task.state in tasks.FINAL_STATES and task.releasing is None:
                update_next_dependents(view, task)


def _ends_awaited(step: Step) -> bool:
    before, after = step.before, step.after
    if not isinstance(after, Task) or not after.awaited or step.removed:
        return False
    return after.state in tasks.FINAL_STATES and isinstance(before, Task) and before.state not in tasks.FINAL_STATES


def update_next_dependents(view: View, task: Task) -> bool:
    """Apply the end of a finished task to its next dependents; returns whether that changed anything."""
    key, steps = (task.account, task.id), len(view.steps)
    listed = view.dependents.get(key)
    for dependent in view.new_dependents.get(key, ()):
        _update(view, task, dependent)
    last_updated = "" if task.releasing is None else task.releasing
    left: str | None = last_updated
    if listed is not None:
        for dependent in listed:
            if not _update(view, task, dependent):
                break  # another server has locked it
            last_updated = dependent
        is_all = not listed or last_updated == listed[-1]
        left = None if is_all and len(listed) < dependents_of_each(len(view.dependents)) else last_updated
    if left != task.releasing:
        view.touch(replace(task, releasing=left))
    return len(view.steps) > steps


def _update(view: View, task: Task, dependent: str) -> bool:
    """Apply the end of a task to one dependent; returns False if that was not loaded."""
    try:
        row = view.find(Task, task.account, dependent)
    except DamagedRow:  # an operator must correct it; the others need not wait for that
        return True
    if row is not None and (after := tasks.after_end_of(row, task, view.wall)) is not row:
        view.put(after, "cancelled" if after.state == tasks.CANCELLED else DEPENDENCY_MET)
        if after.state == tasks.CANCELLED:
            withdraw_question(view, row)
    return row is not None
