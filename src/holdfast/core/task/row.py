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
UNDELIVERED, RESTORED, HANDED_OVER = "undelivered", "restored", offers.HANDED_OVER
"""Outcomes of an attempt, besides `completed` and `cancelled`."""

EXHAUSTED, PERMANENT, LAPSED = "attempts_exhausted", "permanent", "lease_expired"
"""Why a task is a dead letter."""


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
    hashed: ClassVar[frozenset[str]] = frozenset({"payload", "result", "checkpoint", "ended_checkpoint"})
    json: ClassVar[frozenset[str]] = frozenset({"backoff", "progress", "ended", "offer"})
    booleans: ClassVar[frozenset[str]] = frozenset({"ready", "cancel_requested"})
    # A renewal changes none of these, so it updates no index but the one by deadline.
    column_groups: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("type", "payload", "priority", "max_attempts", "lease_duration", "created_at"),
        ("unique_key", "tag", "created_by", "reviewed_by", "source", "backoff", "traceparent"),
        (
            "state", "ready", "scheduled_at", "place", "attempt_count", "attempt", "worker", "principal", "session",
            "proof", "token", "claimed_at", "offer", "lengthened_to",
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
    """When the sweep must act on it: when its lease expires, or when its schedule is due."""
    if task.state == CLAIMED:
        return task.expires_at
    return task.scheduled_at if task.state == PENDING and not task.ready else None


def is_purgeable(task: Task, before: Instant) -> bool:
    """Whether retention may remove it: finished, and unchanged since `before`."""
    return task.state in FINAL_STATES and task.changed_at < before
