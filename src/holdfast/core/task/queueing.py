"""How a task enters its queue, and in which order tasks leave it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from holdfast.core.errors import Invalid, InvalidTransition
from holdfast.core.limits import MAX_DELAY
from holdfast.core.row import SECOND, Instant
from holdfast.core.task.row import (
    ANSWER,
    DEAD,
    DEPENDENCIES,
    EXPIRED,
    FAILED,
    PENDING,
    Task,
    last_attempt,
)
from holdfast.core.task.time_limits import check_deadline, is_over

SCHEDULED_LAG = 60 * SECOND
"""How far behind unscheduled tasks a scheduled one is placed."""

WAITING, SCHEDULED, RETRYING, BLOCKED = "waiting", "scheduled", "retrying", "blocked"
PHASES = (WAITING, SCHEDULED, RETRYING, BLOCKED)

MAX_SCHEDULE_AHEAD = MAX_DELAY * SECOND


def create(task: Task, now: Instant, wall: Instant | None = None) -> Task:
    """Enqueue a new task. Schedules follow the wall clock: `wall` is its time, if it differs from the store's."""
    wall = now if wall is None else wall
    if task.scheduled_at is not None:
        _check_schedule(task.scheduled_at, wall)
    check_deadline(task, wall)
    return enqueue(replace(task, created_at=now), task.scheduled_at, wall)


def replace_work(task: Task, new: Task, wall: Instant) -> Task:
    """Give a pending task another payload and other settings."""
    if new.scheduled_at is not None:
        _check_schedule(new.scheduled_at, wall)
    check_deadline(new, wall)
    updated = replace(
        task,
        payload=new.payload,
        priority=new.priority,
        max_attempts=new.max_attempts,
        lease_duration=new.lease_duration,
        tag=new.tag,
        created_by=new.created_by,
        reviewed_by=new.reviewed_by,
        source=new.source,
        backoff=new.backoff,
        deadline_at=new.deadline_at,
        max_run=new.max_run,
        requires=new.requires,
        concurrency_key=new.concurrency_key,
        question=None,
        answered=None,
    )
    return enqueue(updated, new.scheduled_at, wall)


def requeue(task: Task, now: Instant, *, wall: Instant | None = None, keep_count: bool = False) -> Task:
    """Put a dead letter back into its queue; a deadline that has passed no longer counts."""
    if task.state != DEAD:
        raise InvalidTransition(f"only a dead letter can be requeued; this task is {task.state}", state=task.state)
    count = task.attempt_count if keep_count else 0
    deadline_at = None if is_over(task, now if wall is None else wall) else task.deadline_at
    # Dependents that have not learned of its failure yet need not learn of it: they wait for it again.
    back = replace(
        task, attempt_count=count, dead_cause=None, resolved_at=None, deadline_at=deadline_at, releasing=None
    )
    return enqueue(back, None, now)


def check_key_free(duplicate: Task | None) -> None:
    """Refuse to requeue a task while another live task has its unique key."""
    if duplicate is not None:
        raise InvalidTransition("another live task has the same unique key", twin=duplicate.id)


def make_ready(task: Task) -> Task:
    """Mark a scheduled task that is due as ready."""
    return replace(task, ready=True)


def enqueue(task: Task, scheduled_at: Instant | None, wall: Instant) -> Task:
    """The task as pending: ready now, or at `scheduled_at`, or later if it waits for something else as well."""
    waits_for = waiting_reason(task)
    return replace(
        task,
        state=PENDING,
        ready=waits_for is None and (scheduled_at is None or scheduled_at <= wall),
        scheduled_at=scheduled_at if waits_for is None else None,
        planned_at=None if waits_for is None else scheduled_at,
        waits_for=waits_for,
        place=queue_position(task.created_at, scheduled_at),
    )


def waiting_reason(task: Task) -> str | None:
    """What a task waits for beside its schedule, if anything: the first reason that will take longest as a rule."""
    if task.unmet:
        return DEPENDENCIES
    return ANSWER if task.question is not None else None


def requeue_waiting(task: Task, wall: Instant) -> Task:
    """The pending task after one of the columns that it waits by has changed: in its queue if nothing is left."""
    return enqueue(task, task.planned_at if task.waits_for else task.scheduled_at, wall)


def phase(task: Task) -> str:
    """What a pending task waits for.

    `waiting` for a worker, `blocked` by something else (`waiting_reason`), `scheduled` for its time, `retrying` after a
    failure.
    """
    if task.ready:
        return WAITING
    if waiting_reason(task) is not None:
        return BLOCKED
    last = last_attempt(task)
    return RETRYING if last is not None and last.outcome in {FAILED, EXPIRED} else SCHEDULED


def is_claimable(task: Task, wall: Instant) -> bool:
    """Whether a worker may claim it, at this time of the wall clock."""
    return is_in_queue(task, wall) and not is_over(task, wall)


def is_in_queue(task: Task, wall: Instant) -> bool:
    """Whether stores find it when they look for claimable tasks: it may be overdue."""
    return task.state == PENDING and (task.ready or is_schedule_due(task, wall))


def is_schedule_due(task: Task, wall: Instant) -> bool:
    """Whether its scheduled time has come while it is not in its queue yet."""
    return task.state == PENDING and not task.ready and task.scheduled_at is not None and task.scheduled_at <= wall


def queue_order(task: Task) -> tuple[int, Instant, str]:
    """Sort key of the queue: priority, then position, then id."""
    return (-task.priority, task.place, task.id)


def queue_position(created_at: Instant, scheduled_at: Instant | None) -> Instant:
    """Position in the queue: the creation time, or for a scheduled task one minute after its due time.

    A scheduled task thus comes after unscheduled tasks that already wait, as users expect, but only for a minute:
    a steady flow of new tasks cannot starve it. A position does not change while the task waits, so the queue is one
    index.
    """
    return created_at if scheduled_at is None else scheduled_at + SCHEDULED_LAG


def longest_wait(tasks: Iterable[Task], now: Instant) -> Instant:
    """How long the oldest ready task has waited; 0 if none is ready."""
    oldest = min((task.place for task in tasks if task.ready), default=now)
    return max(now - oldest, 0)


def _check_schedule(scheduled_at: Instant, wall: Instant) -> None:
    if not wall < scheduled_at <= wall + MAX_SCHEDULE_AHEAD:
        message = "`scheduledAt` must be in the future, at most 30 days from now"
        raise Invalid(message, [{"pointer": "/scheduledAt", "code": "out_of_range", "message": message}])
