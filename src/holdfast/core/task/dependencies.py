"""Dependencies: a task that waits until other tasks have completed, and what follows if one of them fails.

The row of the waiting task is the record: `depends_on` lists the tasks that it needs and never changes, `unmet_flags`
has one character for each of them. The stores' table of dependencies follows from it (`dependency_edges`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import Invalid
from holdfast.core.limits import ON_DEPENDENCY_FAILURE
from holdfast.core.row import Instant
from holdfast.core.task.ending import cancel
from holdfast.core.task.queueing import requeue_waiting
from holdfast.core.task.row import CANCELLED, COMPLETED, DEAD, LIVE_STATES, PENDING, Task
from holdfast.decoding import decode

HOLD, CANCEL, RUN = ON_DEPENDENCY_FAILURE
"""What happens to a task when one that it needs becomes a dead letter or is cancelled: it goes on waiting, is cancelled
too, or runs as if that task had completed."""

UNMET, MET = "1", "0"
MAX_RESULT_BYTES = 64 * 1024
"""A claim shows at most so many bytes of the results of its dependencies."""


class RelatedTask(msgspec.Struct, frozen=True):
    """A task that another one needs, or that needs another one."""

    id: str
    type: str
    state: str
    waits_for: str | None = None
    result: str | None = None
    result_size: int = 0
    """Bytes of its result, also if the result itself was not read."""


def needed_ids(task: Task) -> list[str]:
    """The ids of the tasks that it depends on."""
    return [] if task.depends_on is None else decode(task.depends_on, list[str])


def dependency_edges(task: Task) -> set[tuple[str, str, str]]:
    """(account, needed task, dependent task) of each of its dependencies, for as long as its row exists."""
    return {(task.account, needed, task.id) for needed in needed_ids(task)}


def depend_on(task: Task, needed: Sequence[Task]) -> Task:
    """The new task with its dependencies. Those that have completed are met; failed ones are if it runs anyway."""
    if not needed:
        return replace(task, on_dependency_failure=None)
    flags = "".join(MET if _counts_as_met(task, each) else UNMET for each in needed)
    depends_on = msgspec.json.encode([each.id for each in needed]).decode()
    return replace(task, depends_on=depends_on, unmet_flags=flags, unmet=flags.count(UNMET))


def _counts_as_met(task: Task, needed: Task) -> bool:
    return needed.state == COMPLETED or (is_failed(needed) and task.on_dependency_failure == RUN)


def is_failed(needed: Task) -> bool:
    """Whether a task ended without completing. A dead letter may be requeued and complete later."""
    return needed.state in {DEAD, CANCELLED}


def needs_dependencies(task: Task) -> bool:
    """Whether a task learns of the ends of those that it depends on, and retention keeps them.

    A dead letter that became one while it waited for them needs them too: it may be requeued.
    """
    return task.state in LIVE_STATES or (task.state == DEAD and task.unmet > 0)


def after_end_of(task: Task, needed: Task, wall: Instant) -> Task:
    """The task after one that it needs has ended; the same task if that changes nothing for it.

    Applying it twice is applying it once, so it may be repeated after a crash.
    """
    if task.state not in {PENDING, DEAD} or task.unmet_flags is None or needed.state in LIVE_STATES:
        return task
    ids = needed_ids(task)
    position = ids.index(needed.id) if needed.id in ids else -1
    if position < 0 or task.unmet_flags[position] != UNMET:
        return task
    if _counts_as_met(task, needed):
        flags = f"{task.unmet_flags[:position]}{MET}{task.unmet_flags[position + 1 :]}"
        changed = replace(task, unmet_flags=flags, unmet=flags.count(UNMET))
        return requeue_waiting(changed, wall) if task.state == PENDING else changed
    is_cancelled = task.state == PENDING and task.on_dependency_failure == CANCEL
    return cancel(task, failure_reason(needed)) if is_cancelled else task


def failure_reason(needed: Task) -> str:
    """Why a task was cancelled that needs another one which failed."""
    how = "was cancelled" if needed.state == CANCELLED else "is a dead letter"
    return f"it depends on task {needed.id}, which {how}"


def unmet_ids(task: Task) -> list[str]:
    """The ids of the tasks that it still waits for."""
    flags = zip(needed_ids(task), task.unmet_flags or "", strict=False)
    return [needed for needed, flag in flags if flag == UNMET]


def has_consistent_flags(task: Task) -> bool:
    """Whether its flags are one for each dependency, and as many of them are set as are counted as unmet."""
    flags = task.unmet_flags or ""
    return len(flags) == len(needed_ids(task)) and flags.count(UNMET) == task.unmet == len(flags) - flags.count(MET)


def creation_order(needs: Sequence[Iterable[int]]) -> list[int]:
    """An order in which tasks of one request can be created, each after those that it needs, by position.

    Raises Invalid if they need each other in a circle.
    """
    sorter = TopologicalSorter({position: sorted(set(needed)) for position, needed in enumerate(needs)})
    try:
        sorter.prepare()
    except CycleError as error:
        circle = error.args[1]
        message = f"items {', '.join(map(str, sorted(set(circle))))} depend on each other in a circle"
        details = {"pointer": f"/items/{min(circle)}/dependsOn", "code": "cycle", "message": message}
        raise Invalid(message, [details]) from None
    order: list[int] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order


def results_that_fit(found: Iterable[RelatedTask], most: int = MAX_RESULT_BYTES) -> list[str]:
    """The ids of the tasks whose results are shown together: from the first on, each that fits into so many bytes."""
    shown, size = [], 0
    for each in found:
        if 0 < each.result_size <= most - size:
            size += each.result_size
            shown.append(each.id)
    return shown
