"""How an attempt ends: completed, failed, released, expired or cancelled."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import InvalidTransition, TaskClaimed
from holdfast.core.lease import is_due
from holdfast.core.row import Instant
from holdfast.core.task import retry
from holdfast.core.task.holding import holder_facts
from holdfast.core.task.queueing import enqueue
from holdfast.core.task.retry import Backoff
from holdfast.core.task.row import (
    CANCELLED,
    CLAIMED,
    COMPLETED,
    DEAD,
    DEADLINE,
    EXHAUSTED,
    EXPIRED,
    FAILED,
    HANDED_OVER,
    LEASE_EXPIRED,
    PENDING,
    PERMANENT,
    RESTORED,
    Attempt,
    Task,
    last_attempt,
)
from holdfast.core.task.time_limits import is_over, is_overdue
from holdfast.decoding import decode


def complete(task: Task, *, result: str | None, output_id: str | None, now: Instant) -> Task:
    """Complete the task, even if a cancel was requested meanwhile: the work is done."""
    return replace(_end_attempt(task, COMPLETED, now), state=COMPLETED, result=result, output_id=output_id)


def check_same_result(task: Task, *, result: str | None, output_id: str | None) -> None:
    """Refuse to complete a task again with another result.

    Answered as a repeat, the new result would be dropped silently.
    """
    same = result is None or _canonical(result) == _canonical(task.result)
    if not same or output_id not in {None, task.output_id}:
        raise InvalidTransition("this task is completed already, with another result", state=task.state)


def _canonical(document: str | None) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(document or "null"), order="sorted")


def check_same_failure(task: Task, *, reason: str | None, code: str | None) -> None:
    """Refuse to report the failure of an attempt again for another reason."""
    last = last_attempt(task)
    if last is None or reason not in {None, last.reason} or code not in {None, last.code}:
        raise InvalidTransition("this attempt has failed already, for another reason", state=task.state)


def fail(
    task: Task,
    *,
    reason: str | None,
    now: Instant,
    wall: Instant | None = None,
    after: Instant | None = None,
    permanent: bool = False,
    code: str | None = None,
    random_fraction: float = 0.0,
    default: Backoff | None = None,
) -> Task:
    """Return the task to its queue, or make it a dead letter after its last attempt.

    Without `after` it is retried after its own backoff, else after that of `default`, else at once.
    Like every schedule, a retry is due by the wall clock: `wall` is its time, if it differs from the store's.
    """
    ended = replace(_end_attempt(task, FAILED, now, reason=reason, code=code), failure_reason=reason)
    if task.cancel_requested:
        return replace(ended, state=CANCELLED)
    if permanent or task.attempt_count >= task.max_attempts:
        return replace(ended, state=DEAD, dead_cause=PERMANENT if permanent else EXHAUSTED)
    if is_over(task, now if wall is None else wall):
        return replace(ended, state=DEAD, dead_cause=DEADLINE)
    backoff = default if task.backoff is None else decode(task.backoff, Backoff)
    if after is None and backoff is not None:
        after = retry.delay(backoff, task.attempt_count, random_fraction)
    return _enqueue_later(ended, after, now if wall is None else wall)


def release(
    task: Task, outcome: str, *, now: Instant, wall: Instant | None = None, after: Instant | None = None
) -> Task:
    """Return the task to its queue without counting the attempt: it was neither done nor failed."""
    ended = replace(_end_attempt(task, outcome, now), attempt_count=task.attempt_count - 1)
    if task.cancel_requested:
        return replace(ended, state=CANCELLED)
    return _enqueue_later(ended, after, now if wall is None else wall)


def hand_over(task: Task, now: Instant) -> Task:
    """End the giver's attempt; the taker claims the task in the same transaction, and no attempt is used by that."""
    ended = _end_attempt(task, HANDED_OVER, now)
    return replace(
        ended,
        state=PENDING,
        ready=False,
        attempt_count=task.attempt_count - 1,
        cancel_requested=task.cancel_requested,
    )


def _enqueue_later(task: Task, after: Instant | None, wall: Instant) -> Task:
    """The task in its queue, claimable after this time."""
    return enqueue(task, task.scheduled_at if after is None else wall + after, wall)


def end_by_restore(task: Task, now: Instant, wall: Instant | None = None) -> Task:
    """End the attempt of a task in a restored store, uncounted; the task is claimable after its old deadline."""
    assert task.expires_at is not None
    after = task.expires_at - now if task.expires_at > now else None
    return release(task, RESTORED, now=now, wall=wall, after=after)


def expire(task: Task, now: Instant, *, wall: Instant | None = None, reason: str | None = None) -> Task:
    """End an attempt whose holder did not renew in time, or whose time is over.

    The task is back in its queue, or a dead letter after its last attempt or its deadline.
    """
    wall = now if wall is None else wall
    is_out_of_time = task.run_until is not None and task.run_until <= now
    if reason is None and is_out_of_time:
        reason = "the deadline has passed" if is_over(task, wall) else "the attempt took longer than `maxRunSeconds`"
    ended = _end_attempt(task, EXPIRED, now, reason=reason)
    if task.cancel_requested:
        return replace(ended, state=CANCELLED)
    if is_over(task, wall):
        return replace(ended, state=DEAD, dead_cause=DEADLINE)
    if task.attempt_count >= task.max_attempts:
        return replace(ended, state=DEAD, dead_cause=DEADLINE if is_out_of_time else LEASE_EXPIRED)
    return enqueue(ended, task.scheduled_at, now)


def expire_if_due(task: Task, now: Instant, wall: Instant | None = None) -> Task:
    """End what is due: an expired lease, or a pending task whose deadline has passed. The sweep may be late."""
    wall = now if wall is None else wall
    if task.state == CLAIMED and is_due(task, now):
        return expire(task, now, wall=wall)
    return end_by_deadline(task) if is_overdue(task, wall) else task


def end_by_deadline(task: Task) -> Task:
    """Make a pending task whose deadline has passed a dead letter."""
    return replace(stop_waiting(task), state=DEAD, ready=False, dead_cause=DEADLINE)


def cancel(task: Task, reason: str | None = None) -> Task:
    """Cancel a pending task."""
    if task.state == CLAIMED:
        message = "another worker holds this task: cancel it with mode 'request' or 'force'"
        raise TaskClaimed(message, **holder_facts(task))
    if task.state != PENDING:
        raise InvalidTransition(f"a task that is {task.state} cannot be cancelled", state=task.state)
    return replace(stop_waiting(task), state=CANCELLED, ready=False, cancel_reason=reason)


def stop_waiting(task: Task) -> Task:
    """The task without what it waits for; its schedule is where it would be otherwise."""
    if task.waits_for is None:
        return task
    return replace(task, waits_for=None, scheduled_at=task.planned_at, planned_at=None)


def request_cancel(task: Task, reason: str | None = None) -> Task:
    """Ask the holder to stop; a task without a holder is cancelled at once."""
    if task.state != CLAIMED:
        return cancel(task, reason)
    return replace(task, cancel_requested=True, cancel_reason=reason or task.cancel_reason)


def force_cancel(task: Task, now: Instant, reason: str | None = None) -> Task:
    """Cancel it at once, even while it is held."""
    if task.state != CLAIMED:
        return cancel(task, reason)
    return replace(_end_attempt(task, CANCELLED, now, reason=reason), state=CANCELLED, cancel_reason=reason)


def undeliver(task: Task, now: Instant) -> Task:
    """Undo a claim whose answer never reached the worker. The number of the attempt is not used again."""
    free = replace(task, **_NO_HOLDER, attempt_count=task.attempt_count - 1)
    if task.cancel_requested:
        return replace(free, state=CANCELLED)
    return enqueue(free, task.scheduled_at, now)


def resolve(task: Task, now: Instant) -> Task:
    """Mark a dead letter as resolved; it stays a dead letter."""
    if task.state != DEAD:
        raise InvalidTransition(f"only a dead letter can be resolved; this task is {task.state}", state=task.state)
    return replace(task, resolved_at=task.resolved_at or now)


_NO_HOLDER: dict[str, Any] = {
    "principal": None,
    "session": None,
    "proof": None,
    "claimed_at": None,
    "expires_at": None,
    "cancel_requested": False,
    "worker": None,
    "offer": None,
    "lengthened_to": None,
    "run_until": None,
}


def _end_attempt(task: Task, outcome: str, now: Instant, *, reason: str | None = None, code: str | None = None) -> Task:
    """Clear the holder and record how its attempt ended.

    If this attempt left neither note nor checkpoint, those of the earlier attempt stay: a successor that dies before
    its first checkpoint does not erase the work before it.
    """
    assert task.proof is not None
    left_context = task.note is not None or task.checkpoint is not None
    previous = None if left_context else last_attempt(task)
    attempt = Attempt(
        worker=task.worker,
        outcome=outcome,
        at=now,
        attempt=task.attempt,
        proof=task.proof,
        reason=reason,
        code=code,
        note=previous.note if previous else task.note,
        context_from=previous.context_from if previous else task.attempt if left_context else None,
    )
    no_holder = _NO_HOLDER | {"worker": task.worker} if outcome == COMPLETED else _NO_HOLDER
    return replace(
        task,
        **no_holder,
        ended=msgspec.json.encode(attempt).decode(),
        ended_checkpoint=task.ended_checkpoint if previous else task.checkpoint,
        note=None,
        checkpoint=None,
        progress=None,
    )
