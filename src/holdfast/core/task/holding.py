"""Holding a task: the claim, the check of the holder, renewals, and notes for the next attempt."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.core import offer as offers
from holdfast.core.errors import InvalidTransition, LeaseExpired, LeaseSuperseded, NotYetClaimable, TaskClaimed
from holdfast.core.lease import RESTORED_MESSAGE, is_live
from holdfast.core.limits import MAX_CLAIMED_LEASE
from holdfast.core.row import SECOND, Instant
from holdfast.core.task.queueing import is_claimable
from holdfast.core.task.row import (
    ANSWER,
    CANCELLED,
    CLAIMED,
    COMPLETED,
    DEPENDENCIES,
    EXPIRED,
    HANDED_OVER,
    PENDING,
    RESTORED,
    Task,
    last_attempt,
    lease_ttl,
)
from holdfast.core.task.time_limits import attempt_limit, is_over, within_limits


class Claim(msgspec.Struct, frozen=True):
    """The worker that claims a task."""

    worker: str | None
    principal: str
    session: str | None = None
    lease: Instant | None = None
    """How long the lease shall last, if that is longer than the task's own."""


class Handover(msgspec.Struct, frozen=True):
    """What a holder leaves for the next attempt, while it works and when it stops."""

    note: str | None = None
    checkpoint: str | None = None
    progress: str | None = None


def claim(task: Task, by: Claim, *, proof: str, token: int, now: Instant, wall: Instant | None = None) -> Task:
    """Give a pending task to a worker: this uses one attempt. `wall` is the wall clock, if it differs."""
    lease = min(by.lease or 0, MAX_CLAIMED_LEASE * SECOND)
    taken = replace(
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
        lengthened_to=lease if lease > task.lease_duration else None,
        expires_at=now + max(lease, task.lease_duration),
        run_until=attempt_limit(task, now, now if wall is None else wall),
    )
    return within_limits(taken)


_AWAITED = {
    DEPENDENCIES: "other tasks to complete",
    ANSWER: "the answer to a question",
}


def check_claimable(task: Task, wall: Instant) -> None:
    """Refuse a claim by id of a task that cannot be claimed at this time of the wall clock."""
    if task.state == CLAIMED:
        raise TaskClaimed("another worker holds this task", **holder_facts(task))
    if task.state != PENDING:
        raise InvalidTransition(f"a task that is {task.state} cannot be claimed", state=task.state)
    check_time_left(task, wall)
    if task.waits_for is not None:
        raise NotYetClaimable(f"this task waits for {_AWAITED[task.waits_for]}", waiting_for=task.waits_for)
    if not is_claimable(task, wall):
        assert task.scheduled_at is not None
        wait = -(-(task.scheduled_at - wall) // SECOND)
        raise NotYetClaimable(f"this task is scheduled; it can be claimed in {wait} s", retry_after=wait)


def check_time_left(task: Task, wall: Instant) -> None:
    """Refuse a claim of a task whose deadline has passed, also of one that is offered: no lease would be left of it."""
    if is_over(task, wall):
        raise InvalidTransition("the deadline of this task has passed", state=task.state)


def check_holder(task: Task, proof: str | None, now: Instant, *, worker: str | None = None) -> None:
    """Only the newest live holder may act. Every write by a holder passes through here.

    Where an account does not require lease ids, a client may send none: it is then treated as the holder of any live
    lease on the task, unless it names a `worker` that is not the one that claimed it.
    """
    if task.state == CLAIMED:
        if not _is_holder(task.proof, task.worker, proof, worker):
            raise LeaseSuperseded(_superseded_message(task, proof), **holder_facts(task))
        if not is_live(task, now):
            raise LeaseExpired("the lease expired before this call", ended_at=task.expires_at)
        return
    last = last_attempt(task)
    held_proof, held_by = (None, None) if last is None else (last.proof, last.worker)
    if not _is_holder(held_proof, held_by, proof, worker):
        since = "nobody has claimed this task yet" if last is None else f"this task is {task.state} now"
        raise LeaseSuperseded(f"you do not hold it: {since}", state=task.state)
    if last is not None and last.outcome == CANCELLED:
        raise LeaseSuperseded("this task was cancelled while it was held", state=task.state, reason=last.reason)
    if last is not None and last.outcome == RESTORED:
        raise LeaseSuperseded(RESTORED_MESSAGE, state=task.state, reason=RESTORED)
    if last is not None and last.outcome == EXPIRED:
        raise LeaseExpired("the lease expired before this call", ended_at=last.at)
    raise InvalidTransition(f"this task is {task.state}, not claimed", state=task.state)


def _superseded_message(task: Task, proof: str | None) -> str:
    last = last_attempt(task)
    if last is not None and last.outcome == HANDED_OVER and last.proof == proof:
        return f"your lease is over: {task.worker or 'another worker'} accepted your offer and holds this task now"
    return "you do not hold it: another worker holds this task now"


def _is_holder(held_proof: str | None, held_by: str | None, proof: str | None, worker: str | None) -> bool:
    """Whether a caller may be the holder: by its lease id, or without one by its name, if it gives one."""
    return proof == held_proof if proof is not None else worker in {None, held_by}


def is_repeat(task: Task, proof: str | None, outcome: str, *, worker: str | None = None) -> bool:
    """Whether the same holder reports the same outcome again, because it never received the first answer."""
    last = last_attempt(task)
    if task.state == CLAIMED or last is None or last.outcome != outcome:
        return False
    if proof is None and outcome != COMPLETED:
        return False  # anyone's report would look like a repeat
    return _is_holder(last.proof, last.worker, proof, worker)


def heartbeat(task: Task, now: Instant) -> Task:
    """Renew the lease to its full duration from now; an offered task keeps a later deadline."""
    return replace(task, expires_at=offers.renewed_until(task, now + lease_ttl(task), now))


def reissue(task: Task, *, proof: str, token: int, now: Instant) -> Task:
    """Give a holder that resumed a new lease id and a larger token, so that its old process is fenced off."""
    return replace(task, proof=proof, token=token, expires_at=now + lease_ttl(task))


def with_handover(task: Task, handover: Handover) -> Task:
    """The task with the holder's newest note, checkpoint and progress; None keeps the previous value."""
    return replace(
        task,
        note=task.note if handover.note is None else handover.note,
        checkpoint=task.checkpoint if handover.checkpoint is None else handover.checkpoint,
        progress=task.progress if handover.progress is None else handover.progress,
    )


def holder_facts(task: Task) -> dict[str, Any]:
    """What a refused caller may know about the holder: never the lease id or the token."""
    return {"held_by": task.worker, "held_since": task.claimed_at, "expires_at": task.expires_at}
