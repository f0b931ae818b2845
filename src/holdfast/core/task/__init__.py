"""A task: work that waits in a queue until somebody holds it under a lease and tells how it went.

pending → claimed → completed, or back to pending, or to the dead letters after the last chance.
`attempt` counts claims and only grows; `attempt_count` is the budget used, which handing back and requeueing lower.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from holdfast.core.errors import (
    Invalid,
    InvalidTransition,
    LeaseExpired,
    LeaseSuperseded,
    NotYetClaimable,
    TaskClaimed,
    TaskMissing,
)
from holdfast.core.lease import is_due, is_live
from holdfast.core.row import SECOND, Instant, Row
from holdfast.core.task import retry
from holdfast.core.task.retry import Backoff

PENDING, CLAIMED, COMPLETED, DEAD, CANCELLED = "pending", "claimed", "completed", "dead_letter", "cancelled"
STATES = (PENDING, CLAIMED, COMPLETED, DEAD, CANCELLED)
LIVE_STATES = frozenset({PENDING, CLAIMED})
FINAL_STATES = frozenset({COMPLETED, DEAD, CANCELLED})

FAILED, EXPIRED, RELEASED, SNOOZED, SESSION_ENDED = "failed", "expired", "released", "snoozed", "session_ended"
UNDELIVERED = "undelivered"

EXHAUSTED, PERMANENT, LAPSED = "attempts_exhausted", "permanent", "lease_expired"
"""Why a task is a dead letter."""

SCHEDULED_LAG = 60 * SECOND
"""How long a task that was scheduled stands behind newer ones that were not."""

MAX_SCHEDULE_AHEAD = retry.MAX_DELAY * SECOND


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the last attempt came to its end."""

    worker: str | None
    outcome: str
    at: Instant
    attempt: int
    proof: str
    reason: str | None = None
    code: str | None = None
    note: str | None = None
    context_from: int | None = None
    """Which attempt left the note and the checkpoint: the last one that left any."""


class Task(Row, frozen=True):
    """The row of a task."""

    table: ClassVar[str] = "tasks"
    noun: ClassVar[str] = "task"
    hashed: ClassVar[frozenset[str]] = frozenset({"payload", "result", "checkpoint", "ended_checkpoint"})
    json: ClassVar[frozenset[str]] = frozenset({"backoff", "progress", "ended"})
    booleans: ClassVar[frozenset[str]] = frozenset({"ready", "cancel_requested"})
    parts: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("type", "payload", "priority", "max_attempts", "lease_duration", "created_at"),
        ("unique_key", "tag", "created_by", "reviewed_by", "source", "backoff", "traceparent"),
        ("attempt_count", "attempt", "worker", "principal", "session", "proof", "token", "claimed_at", "expires_at"),
        ("result", "output_id", "failure_reason", "dead_cause", "resolved_at", "ended", "ended_checkpoint"),
        ("note", "checkpoint", "progress", "cancel_requested", "cancel_reason"),
    )

    # What it is: changes only while it waits.
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
    # Where it stands: changes with every step of its life.
    state: str = PENDING
    ready: bool = False
    """Stands in its queue. One scheduled for later joins when its time has come."""
    scheduled_at: Instant | None = None
    place: Instant = 0
    """Where it stands among tasks of its priority."""
    attempt_count: int = 0
    attempt: int = 0
    worker: str | None = None
    """The label its holder gave itself: shown, never proof."""
    principal: str | None = None
    session: str | None = None
    proof: str | None = None
    """SHA-256 of the lease id."""
    token: int = 0
    claimed_at: Instant | None = None
    expires_at: Instant | None = None
    cancel_requested: bool = False
    # What came of it.
    result: str | None = None
    output_id: str | None = None
    failure_reason: str | None = None
    dead_cause: str | None = None
    resolved_at: Instant | None = None
    ended: str | None = None
    """An Attempt."""
    ended_checkpoint: str | None = None
    # What its holder leaves for the next one.
    note: str | None = None
    checkpoint: str | None = None
    progress: str | None = None
    traceparent: str | None = None
    """Where the request that created it belongs in a trace."""
    cancel_reason: str | None = None
    """Why nobody needs it any more, in the words of whoever said so last."""


class Claim(msgspec.Struct, frozen=True):
    """Who takes a task."""

    worker: str | None
    principal: str
    session: str | None = None


class Handover(msgspec.Struct, frozen=True):
    """What a holder leaves behind while it works and when it stops."""

    note: str | None = None
    checkpoint: str | None = None
    progress: str | None = None


# -- questions ---------------------------------------------------------------------------------------------------


def is_claimable(task: Task, now: Instant) -> bool:
    """Anybody may have it now."""
    return task.state == PENDING and (task.ready or is_schedule_due(task, now))


def is_schedule_due(task: Task, now: Instant) -> bool:
    """It was scheduled for a time that has come, but does not stand in its queue yet."""
    return task.state == PENDING and not task.ready and task.scheduled_at is not None and task.scheduled_at <= now


def queue_order(task: Task) -> tuple[int, Instant, str]:
    """Who is claimed first: priority, then how long it stands there, then age."""
    return (-task.priority, task.place, task.id)


def queue_position(created_at: Instant, scheduled_at: Instant | None) -> Instant:
    """A scheduled task stands where one made a minute after its due time would.

    So it comes after everything that was never scheduled, as its users expect, but only for a minute: steady new
    work cannot starve it. The place never moves, so the queue is one index.
    """
    return created_at if scheduled_at is None else scheduled_at + SCHEDULED_LAG


def longest_wait(tasks: Iterable[Task], now: Instant) -> Instant:
    """How long the one of them that stands first among all that are ready has waited; 0 if none is."""
    oldest = min((task.place for task in tasks if task.ready), default=now)
    return max(now - oldest, 0)


def last_attempt(task: Task) -> Attempt | None:
    """How the last attempt ended, if there was one."""
    return None if task.ended is None else msgspec.json.decode(task.ended, type=Attempt)


def check_found(task: Task | None) -> Task:
    """The task, or the one answer that absent and foreign ids share."""
    if task is None or task.version == 0:
        raise TaskMissing("there is no such task")
    return task


def deadline(task: Task) -> Instant | None:
    """When something happens to it by itself: its lease runs out, or its time comes."""
    if task.state == CLAIMED:
        return task.expires_at
    return task.scheduled_at if task.state == PENDING and not task.ready else None


def is_purgeable(task: Task, before: Instant) -> bool:
    """Finished, and unchanged since then: retention may remove it."""
    return task.state in FINAL_STATES and task.changed_at < before


# -- into the queue ----------------------------------------------------------------------------------------------


def create(task: Task, now: Instant) -> Task:
    """A new task takes its place in the queue."""
    if task.scheduled_at is not None:
        _check_schedule(task.scheduled_at, now)
    return _enqueue(replace(task, created_at=now), task.scheduled_at, now)


def replace_work(task: Task, wanted: Task, now: Instant) -> Task:
    """Another payload for a task that nobody has claimed yet."""
    if wanted.scheduled_at is not None:
        _check_schedule(wanted.scheduled_at, now)
    renewed = replace(
        task,
        payload=wanted.payload,
        priority=wanted.priority,
        max_attempts=wanted.max_attempts,
        lease_duration=wanted.lease_duration,
        tag=wanted.tag,
        created_by=wanted.created_by,
        reviewed_by=wanted.reviewed_by,
        source=wanted.source,
        backoff=wanted.backoff,
    )
    return _enqueue(renewed, wanted.scheduled_at, now)


def requeue(task: Task, now: Instant, *, keep_count: bool = False) -> Task:
    """Give a dead letter another life."""
    if task.state != DEAD:
        raise InvalidTransition(f"only a dead letter can be requeued; this task is {task.state}", state=task.state)
    count = task.attempt_count if keep_count else 0
    return _enqueue(replace(task, attempt_count=count, dead_cause=None, resolved_at=None), None, now)


def check_key_free(twin: Task | None) -> None:
    """Refuse to bring a task back while another lives under its key."""
    if twin is not None:
        raise InvalidTransition("another task lives under its unique key", twin=twin.id)


def make_ready(task: Task) -> Task:
    """Its time has come: it joins its queue."""
    return replace(task, ready=True)


def resolve(task: Task, now: Instant) -> Task:
    """Somebody has dealt with a dead letter: it stays one, but asks for nobody's attention."""
    if task.state != DEAD:
        raise InvalidTransition(f"only a dead letter can be resolved; this task is {task.state}", state=task.state)
    return replace(task, resolved_at=task.resolved_at or now)


def _enqueue(task: Task, scheduled_at: Instant | None, now: Instant) -> Task:
    return replace(
        task,
        state=PENDING,
        ready=scheduled_at is None or scheduled_at <= now,
        scheduled_at=scheduled_at,
        place=queue_position(task.created_at, scheduled_at),
    )


def _check_schedule(scheduled_at: Instant, now: Instant) -> None:
    if not now < scheduled_at <= now + MAX_SCHEDULE_AHEAD:
        message = "`scheduledAt` must lie in the future, at most 30 days ahead"
        raise Invalid(message, [{"pointer": "/scheduledAt", "code": "out_of_range", "message": message}])


# -- holding it --------------------------------------------------------------------------------------------------


def claim(task: Task, by: Claim, *, proof: str, token: int, now: Instant) -> Task:
    """Give a waiting task to a worker: this uses one attempt."""
    return replace(
        task,
        state=CLAIMED,
        ready=False,
        attempt_count=task.attempt_count + 1,
        attempt=task.attempt + 1,
        worker=by.worker,
        principal=by.principal,
        session=by.session,
        proof=proof,
        token=token,
        claimed_at=now,
        expires_at=now + task.lease_duration,
    )


def check_claimable(task: Task, now: Instant) -> None:
    """Refuse a claim by id of a task that nobody may have just now."""
    if task.state == CLAIMED:
        raise TaskClaimed("somebody holds this task", **_holder_facts(task))
    if task.state != PENDING:
        raise InvalidTransition(f"a task that is {task.state} cannot be claimed", state=task.state)
    if not is_claimable(task, now):
        assert task.scheduled_at is not None
        wait = -(-(task.scheduled_at - now) // SECOND)
        raise NotYetClaimable(f"this task is scheduled; it can be claimed in {wait} s", retry_after=wait)


def check_holder(task: Task, proof: str | None, now: Instant) -> None:
    """Only the newest live holder may act. Every write by a holder passes through here.

    Clients that know no lease ids may leave theirs out: then any live lease on the task is taken for theirs.
    """
    if task.state == CLAIMED:
        if proof is not None and proof != task.proof:
            raise LeaseSuperseded("your lease is over: another worker holds this task now", **_holder_facts(task))
        if not is_live(task, now):
            raise LeaseExpired("the lease ran out before this call", ended_at=task.expires_at)
        return
    story = last_attempt(task)
    if proof is not None and (story is None or story.proof != proof):
        raise LeaseSuperseded(f"your lease is over: this task is {task.state} now", state=task.state)
    if story is not None and story.outcome == EXPIRED:
        raise LeaseExpired("the lease ran out before this call", ended_at=story.at)
    raise InvalidTransition(f"this task is {task.state}, not claimed", state=task.state)


def is_repeat(task: Task, proof: str | None, outcome: str) -> bool:
    """The same holder tells the same outcome again: its first answer was lost on the way."""
    if task.state == CLAIMED:
        return False
    if proof is None:
        return outcome == COMPLETED == task.state
    story = last_attempt(task)
    return story is not None and story.proof == proof and story.outcome == outcome


def heartbeat(task: Task, now: Instant) -> Task:
    """Still at work: start the lease again."""
    return replace(task, expires_at=now + task.lease_duration)


def reissue(task: Task, *, proof: str, token: int, now: Instant) -> Task:
    """The same holder in its next life: a new lease id and a larger token, so that its former self is fenced."""
    return replace(task, proof=proof, token=token, expires_at=now + task.lease_duration)


def with_handover(task: Task, left: Handover) -> Task:
    """The task with what its holder wants the next one to know."""
    return replace(
        task,
        note=task.note if left.note is None else left.note,
        checkpoint=task.checkpoint if left.checkpoint is None else left.checkpoint,
        progress=task.progress if left.progress is None else left.progress,
    )


# -- how it ends -------------------------------------------------------------------------------------------------


def complete(task: Task, *, result: str | None, output_id: str | None, now: Instant) -> Task:
    """Done, for good; also when somebody asked for its end meanwhile: the work is done."""
    return replace(_end_attempt(task, COMPLETED, now), state=COMPLETED, result=result, output_id=output_id)


def fail(
    task: Task,
    *,
    reason: str | None,
    now: Instant,
    after: Instant | None = None,
    permanent: bool = False,
    code: str | None = None,
    random_fraction: float = 0.0,
) -> Task:
    """Back to its queue for another try, or to the dead letters after its last chance."""
    ended = replace(_end_attempt(task, FAILED, now, reason=reason, code=code), failure_reason=reason)
    if task.cancel_requested:
        return replace(ended, state=CANCELLED)
    if permanent or task.attempt_count >= task.max_attempts:
        return replace(ended, state=DEAD, dead_cause=PERMANENT if permanent else EXHAUSTED)
    if after is None and task.backoff is not None:
        after = retry.delay(msgspec.json.decode(task.backoff, type=Backoff), task.attempt_count, random_fraction)
    return _enqueue(ended, task.scheduled_at if after is None else now + after, now)


def hand_back(task: Task, outcome: str, *, now: Instant, after: Instant | None = None) -> Task:
    """Not done, not failed: somebody else may have it, and the attempt is not counted."""
    ended = replace(_end_attempt(task, outcome, now), attempt_count=task.attempt_count - 1)
    if task.cancel_requested:
        return replace(ended, state=CANCELLED)
    return _enqueue(ended, task.scheduled_at if after is None else now + after, now)


def lapse(task: Task, now: Instant, *, reason: str | None = None) -> Task:
    """Its holder was not heard of in time: offer it again, or give up after the last chance."""
    ended = _end_attempt(task, EXPIRED, now, reason=reason)
    if task.cancel_requested:
        return replace(ended, state=CANCELLED)
    if task.attempt_count >= task.max_attempts:
        return replace(ended, state=DEAD, dead_cause=LAPSED)
    return _enqueue(ended, task.scheduled_at, now)


def expire_if_due(task: Task, now: Instant) -> Task:
    """The task as it truly is: a lease that has run out is over, swept or not."""
    return lapse(task, now) if task.state == CLAIMED and is_due(task, now) else task


def cancel(task: Task, reason: str | None = None) -> Task:
    """Abandon a task that nobody holds."""
    if task.state == CLAIMED:
        raise TaskClaimed(
            "somebody holds this task: ask with mode 'request', or end it with 'force'", **_holder_facts(task)
        )
    if task.state != PENDING:
        raise InvalidTransition(f"a task that is {task.state} cannot be cancelled", state=task.state)
    return replace(task, state=CANCELLED, ready=False, cancel_reason=reason)


def request_cancel(task: Task, reason: str | None = None) -> Task:
    """Ask its holder to stop; a task that nobody holds is cancelled at once."""
    if task.state != CLAIMED:
        return cancel(task, reason)
    return replace(task, cancel_requested=True, cancel_reason=reason or task.cancel_reason)


def force_cancel(task: Task, now: Instant, reason: str | None = None) -> Task:
    """End it at once, whoever holds it."""
    if task.state != CLAIMED:
        return cancel(task, reason)
    return replace(_end_attempt(task, CANCELLED, now, reason=reason), state=CANCELLED, cancel_reason=reason)


def undeliver(task: Task, now: Instant) -> Task:
    """Nobody ever heard that they had it: as if it had not been claimed, but for the attempt's number."""
    free = replace(task, **_NO_HOLDER, attempt_count=task.attempt_count - 1)
    if task.cancel_requested:
        return replace(free, state=CANCELLED)
    return _enqueue(free, task.scheduled_at, now)


_NO_HOLDER: dict[str, Any] = {
    "principal": None,
    "session": None,
    "proof": None,
    "claimed_at": None,
    "expires_at": None,
    "cancel_requested": False,
    "worker": None,
}


def _end_attempt(task: Task, outcome: str, now: Instant, *, reason: str | None = None, code: str | None = None) -> Task:
    """Let go of it, and remember how it went for whoever comes next.

    What an earlier attempt left stays if this one was cut off and left nothing: a successor that dies before its
    first checkpoint does not wipe out the work before it.
    """
    assert task.proof is not None
    wrote = task.note is not None or task.checkpoint is not None
    before = None if wrote else last_attempt(task)
    story = Attempt(
        worker=task.worker,
        outcome=outcome,
        at=now,
        attempt=task.attempt,
        proof=task.proof,
        reason=reason,
        code=code,
        note=before.note if before else task.note,
        context_from=before.context_from if before else task.attempt if wrote else None,
    )
    nobody = _NO_HOLDER | {"worker": task.worker} if outcome == COMPLETED else _NO_HOLDER
    return replace(
        task,
        **nobody,
        ended=msgspec.json.encode(story).decode(),
        ended_checkpoint=task.ended_checkpoint if before else task.checkpoint,
        note=None,
        checkpoint=None,
        progress=None,
    )


def _holder_facts(task: Task) -> dict[str, Any]:
    """What a refused caller may know of whoever holds it: never the lease id or the token."""
    return {"held_by": task.worker, "held_since": task.claimed_at, "expires_at": task.expires_at}
