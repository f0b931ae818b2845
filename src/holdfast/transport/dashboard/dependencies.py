"""What a task depends on and what depends on it, for its page."""

from __future__ import annotations

import msgspec

from holdfast.core import task as tasks
from holdfast.core.task import RelatedTask, Task
from holdfast.store.contract import Reader

SHOWN_DEPENDENTS = 50


class Relation(msgspec.Struct, frozen=True):
    """One task in such a list; without type and state if it was removed."""

    id: str
    type: str | None
    state: str | None
    is_waited_for: bool
    """Whether the other one of the two tasks still waits."""


class Relations(msgspec.Struct, frozen=True):
    """Both lists of a task."""

    needs: list[Relation]
    needed_by: list[Relation]
    has_more: bool
    """Whether further tasks depend on it."""


def read_relations(reader: Reader, task: Task) -> Relations:
    """What a task depends on, and the first tasks that depend on it."""
    unmet, ids = set(tasks.unmet_ids(task)), tasks.needed_ids(task)
    found = {each.id: each for each in reader.tasks_with_results(task.account, ids, 0)} if ids else {}
    dependents = reader.dependents(task.account, task.id, "", SHOWN_DEPENDENTS + 1) if task.awaited else []
    return Relations(
        [_relation(each, found.get(each), waits=each in unmet and task.state == tasks.PENDING) for each in ids],
        [_relation(each.id, each, waits=_waits(each)) for each in dependents[:SHOWN_DEPENDENTS]],
        len(dependents) > SHOWN_DEPENDENTS,
    )


def _relation(task_id: str, task: RelatedTask | None, *, waits: bool) -> Relation:
    return Relation(task_id, None, None, waits) if task is None else Relation(task_id, task.type, task.state, waits)


def _waits(dependent: RelatedTask) -> bool:
    return dependent.waits_for == tasks.DEPENDENCIES
