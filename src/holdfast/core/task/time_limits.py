"""Time limits of tasks: `deadline_at` ends the task, by the wall clock; `max_run` ends one attempt.

No lease lasts longer than either. `run_until` is the earlier of both for the present holder, by the store's clock. It
is computed when the task is claimed.
"""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core.errors import Invalid
from holdfast.core.limits import MAX_DEADLINE_AHEAD
from holdfast.core.row import SECOND, Instant
from holdfast.core.task.row import PENDING, Task


def check_deadline(task: Task, wall: Instant) -> None:
    """Refuse a deadline that has passed, is too far ahead, or is not after the time that the task is scheduled for."""
    at = task.deadline_at
    if at is None:
        return
    message = None
    if not wall < at <= wall + MAX_DEADLINE_AHEAD * SECOND:
        message = f"`deadlineAt` must be in the future, at most {MAX_DEADLINE_AHEAD // 86_400} days from now"
    elif task.scheduled_at is not None and at <= task.scheduled_at:
        message = "`deadlineAt` must be after `scheduledAt`"
    if message is not None:
        raise Invalid(message, [{"pointer": "/deadlineAt", "code": "out_of_range", "message": message}])


def is_over(task: Task, wall: Instant) -> bool:
    """Whether its deadline has passed."""
    return task.deadline_at is not None and task.deadline_at <= wall


def is_overdue(task: Task, wall: Instant) -> bool:
    """Whether it waits for a worker although its deadline has passed: the sweep makes it a dead letter."""
    return task.state == PENDING and is_over(task, wall)


def attempt_limit(task: Task, now: Instant, wall: Instant) -> Instant | None:
    """When an attempt that begins now must have ended, by the store's clock; None without a limit."""
    limits = [] if task.max_run is None else [now + task.max_run]
    if task.deadline_at is not None:
        limits.append(now + max(task.deadline_at - wall, 0))
    return min(limits, default=None)


def within_limits(task: Task) -> Task:
    """The task with a lease, and an offer of it, that end no later than its attempt may last."""
    end = task.run_until
    if end is None or task.expires_at is None or task.expires_at <= end:
        return task
    return offers.with_end(replace(task, expires_at=end), lambda offer: min(offer.until, end))


def is_last_lease(task: Task) -> bool:
    """Whether a renewal cannot extend the lease of the present holder any more."""
    return task.run_until is not None and task.expires_at is not None and task.expires_at >= task.run_until


def limit_after_clock_step(task: Task, moved: Instant) -> Instant | None:
    """The limit of an attempt after a step of the database's clock, which moves the limit of `max_run` to `moved`."""
    if task.run_until is None or task.max_run is None:
        return task.run_until
    return moved if task.deadline_at is None else min(moved, task.deadline_at)
