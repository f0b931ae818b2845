"""The row of a task, its states, and the record of its last attempt."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from holdfast.core import offer as offers
from holdfast.core.errors import TaskMissing
from holdfast.core.row import SECOND, Instant, Row
from holdfast.decoding import decode

PENDING, CLAIMED, COMPLETED, DEAD, CANCELLED = "pending", "claimed", "completed", "dead_letter", "cancelled"
STATES = (PENDING, CLAIMED, COMPLETED, DEAD, CANCELLED)
LIVE_STATES = frozenset({PENDING, CLAIMED})
FINAL_STATES = frozenset({COMPLETED, DEAD, CANCELLED})

FAILED, EXPIRED, RELEASED, SNOOZED, SESSION_ENDED = "failed", "expired", "released", "snoozed", "session_ended"
UNDELIVERED, RESTORED, HANDED_OVER, ASKED = "undelivered", "restored", offers.HANDED_OVER, "asked"
"""Outcomes of an attempt, besides `completed` and `cancelled`."""

EXHAUSTED, PERMANENT, LEASE_EXPIRED, DEADLINE = "attempts_exhausted", "permanent", "lease_expired", "deadline"
UNANSWERED = "unanswered"
DEAD_CAUSES = (EXHAUSTED, PERMANENT, LEASE_EXPIRED, DEADLINE, UNANSWERED)
"""Why a task is a dead letter."""

DEPENDENCIES, ANSWER, ROOM = "dependencies", "answer", "room"
WAITS_FOR = (DEPENDENCIES, ANSWER, ROOM)
"""What a pending task can wait for, beside its schedule: other tasks, a person, or the end of tasks that run.

No row says that it waits for room: it is in its queue, and `queue.lacks_room` tells from the settings of the queue.
"""


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the last attempt ended."""

    worker: str | None
    outcome: str
    at: Instant
    attempt: int
    proof: str
    reason: str | None = None
    code: str | None = None
    note: str | None = None
    context_from: int | None = None
    """The attempt that left the note and the checkpoint: the last one that left any."""


class Task(Row, frozen=True):
    """One task."""

    table: ClassVar[str] = "tasks"
    noun: ClassVar[str] = "task"
    hashed: ClassVar[frozenset[str]] = frozenset({"payload", "result", "checkpoint", "ended_checkpoint", "answered"})
    json: ClassVar[frozenset[str]] = frozenset({"backoff", "progress", "ended", "offer", "depends_on"})
    booleans: ClassVar[frozenset[str]] = frozenset({"ready", "cancel_requested", "awaited"})
    unlogged: ClassVar[frozenset[str]] = frozenset({"awaited", "releasing"})
    # A renewal changes none of these, so it updates no index but the one by deadline.
    column_groups: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("type", "payload", "priority", "max_attempts", "lease_duration", "created_at"),
        ("unique_key", "tag", "created_by", "reviewed_by", "source", "backoff", "traceparent"),
        ("depends_on", "on_dependency_failure", "requires", "concurrency_key", "deadline_at", "max_run"),
        ("awaited", "releasing"),
        (
            "state", "ready", "scheduled_at", "place", "attempt_count", "attempt", "worker", "principal", "session",
            "proof", "token", "claimed_at", "offer", "lengthened_to", "waits_for", "planned_at", "unmet", "question",
            "run_until", "unmet_flags", "answered",
        ),
        ("result", "output_id", "failure_reason", "dead_cause", "resolved_at", "ended", "ended_checkpoint"),
        ("note", "checkpoint", "progress", "cancel_requested", "cancel_reason"),
    )  # fmt: skip
    required: ClassVar[tuple[str, ...]] = ("type", "state")

    # The work: changes only while the task is pending.
    type: str = ""
    payload: str = "{}"
    priority: int = 0
    max_attempts: int = 3
    lease_duration: Instant = 300 * SECOND
    created_at: Instant = 0
    unique_key: str | None = None
    tag: str | None = None
    created_by: str | None = None
    reviewed_by: str | None = None
    source: str | None = None
    backoff: str | None = None
    # The state: changes with every transition.
    state: str = PENDING
    ready: bool = False
    """Whether it is in its queue. A task that is scheduled for later joins the queue when it is due."""
    scheduled_at: Instant | None = None
    place: Instant = 0
    """Position among tasks of the same priority: the smallest is claimed first."""
    attempt_count: int = 0
    attempt: int = 0
    worker: str | None = None
    """The label its holder chose: displayed, never proof."""
    principal: str | None = None
    session: str | None = None
    proof: str | None = None
    """SHA-256 of the lease id."""
    token: int = 0
    claimed_at: Instant | None = None
    expires_at: Instant | None = None
    cancel_requested: bool = False
    # The result.
    result: str | None = None
    output_id: str | None = None
    failure_reason: str | None = None
    dead_cause: str | None = None
    resolved_at: Instant | None = None
    ended: str | None = None
    """An Attempt as JSON: how the last attempt ended."""
    ended_checkpoint: str | None = None
    # What the holder leaves for the next attempt.
    note: str | None = None
    checkpoint: str | None = None
    progress: str | None = None
    traceparent: str | None = None
    """W3C trace context of the request that created it."""
    cancel_reason: str | None = None
    """The reason given with the last request to cancel it."""
    offer: str | None = None
    """An Offer as JSON: the last one of the present holder."""
    lengthened_to: Instant | None = None
    """How long the lease of the present holder lasts, if its claim made it longer than `lease_duration`."""
    # What it waits for. A task that waits is pending and in no queue; `waits_for` follows from the columns below it.
    waits_for: str | None = None
    planned_at: Instant | None = None
    """Its schedule while it waits: then `scheduled_at` is not set, so that the sweep does not enqueue it."""
    unmet: int = 0
    """How many of the tasks in `depends_on` have not completed."""
    question: str | None = None
    """The open question that a person must answer first."""
    # Conditions that were set when it was created.
    depends_on: str | None = None
    """The ids of the tasks that must complete first, as a JSON array."""
    on_dependency_failure: str | None = None
    requires: str | None = None
    """The capabilities that a worker must have, sorted, separated by commas."""
    concurrency_key: str | None = None
    """Of tasks with the same one, only so many run at once as their queue allows for each key."""
    deadline_at: Instant | None = None
    """When it ends, finished or not, by the wall clock."""
    max_run: Instant | None = None
    """How long one attempt may last."""
    run_until: Instant | None = None
    """When the attempt of the present holder must have ended, by the store's clock (`time_limits.py`)."""
    unmet_flags: str | None = None
    """One character for each task in `depends_on`: 1 while it has not completed, then 0."""
    # About the tasks that depend on it; these two columns change without an event.
    awaited: bool = False
    """Whether a task depends on it, or did: only then does its end concern other tasks."""
    releasing: str | None = None
    """Set while it has ended and dependents are left that must learn of it: the id of the last one that has."""
    answered: str | None = None
    """The last answer to a question of it, as JSON (`core.question.Answered`)."""


def check_found(task: Task | None) -> Task:
    """The task, or TaskMissing: absent and foreign ids get the same refusal."""
    if task is None or task.version == 0:
        raise TaskMissing("there is no such task")
    return task


def last_attempt(task: Task) -> Attempt | None:
    """How the last attempt ended, if there was one."""
    return None if task.ended is None else decode(task.ended, Attempt)


def lease_ttl(task: Task) -> Instant:
    """How long its lease lasts after a renewal."""
    return task.lengthened_to or task.lease_duration


def was_taken_away(task: Task) -> bool:
    """Whether it was cancelled while a worker held it: by force, or when its holder stopped as it was asked to."""
    last = last_attempt(task) if task.state == CANCELLED else None
    return last is not None and (last.outcome == CANCELLED or last.at == task.changed_at)


def deadline(task: Task) -> Instant | None:
    """When the sweep must act on it: when its lease expires, when its schedule is due, or when its time is over.

    If tasks that depend on it are left to learn of its end, that is since it has ended.
    """
    if task.state == CLAIMED:
        return task.expires_at
    if task.state != PENDING:
        return None if task.releasing is None else task.changed_at
    scheduled_at = None if task.ready else task.scheduled_at
    return min((at for at in (scheduled_at, task.deadline_at) if at is not None), default=None)


def is_purgeable(task: Task, before: Instant) -> bool:
    """Whether retention may remove it: finished, and unchanged since `before`."""
    return task.state in FINAL_STATES and task.changed_at < before
