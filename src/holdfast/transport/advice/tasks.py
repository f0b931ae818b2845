"""`agent_contract` of tasks: what to do in each state of a task, and after each list.

Clients of Orchestrion V1 rely on codes, order and flags; actions of our own come after those that V1 has. What
Orchestrion does not have (a task cancelled while it was held, a release, a batch) leads to no new work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from holdfast.core import task as tasks
from holdfast.core.deadlines import heartbeat_interval
from holdfast.core.lease import is_live
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import Task
from holdfast.transport.advice.contract import (
    Advice,
    Contract,
    action,
    check_state,
    continue_work,
    contract,
    prepared,
    seconds_left,
    work_over,
)

ARTIFACTS = "https://api.outputlayer.dev/v1/outputs"
EMPTY_WAIT = 5
"""Seconds after which to claim again when the queues were empty."""

_CLAIM_NEXT = contract(action("claim_task", best=True, why="Take the next task of a type."))
_COMPLETED = contract(
    action("create_task", best=True, why="Put more work into the queue."),
    action("claim_task", why="Take the next task."),
)
_CANCELLED = contract(action("create_task", best=True, why="A cancelled task cannot be used again; create a new one."))
_TAKEN_AWAY = work_over("It was cancelled while it was held: the work is no longer needed.")


# -- states ------------------------------------------------------------------------------------------------------


def for_task(task: Task, now: Instant, **more: Any) -> Advice:
    """What to do with a task in its present state."""
    if task.state == tasks.CLAIMED and is_live(task, now):
        every = max(heartbeat_interval(task, now) // SECOND, 1)
        stop, left = task.cancel_requested, seconds_left(task.expires_at, now)
        last = tasks.is_last_lease(task)
        return prepared(_for_held_task, task.id, (stop, last), left, every, *more.items())
    if task.state == tasks.CLAIMED:
        return contract(
            action("check_task_status", task.id, best=True, why="The lease has expired; read the task's new state."),
            action("claim_task", task.id, operation="claim_task_by_id", why="Or claim it yourself."),
            lease_valid=False,
            lease_expires_in_seconds=None if task.expires_at is None else 0,
            **more,
        )
    if task.state == tasks.PENDING:
        return _for_dependent(task.id) if task.waits_for == tasks.DEPENDENCIES else _CLAIM_NEXT
    if task.state == tasks.COMPLETED:
        return _for_output(task.output_id) if task.output_id else _COMPLETED
    if task.state == tasks.DEAD:
        return contract(
            action("requeue_task", task.id, best=True, why="Queue it again once the cause of its failure is fixed.")
        )
    return _TAKEN_AWAY if tasks.was_taken_away(task) else _CANCELLED


def _for_held_task(task_id: str, flags: tuple[bool, bool], left: int, every: int, *more: tuple[str, Any]) -> Contract:
    """The task is held for `left` more seconds.

    `flags`: whether its cancellation was requested, and whether no heartbeat can extend the lease any more.
    """
    stop, last = flags
    in_time = f"Within {left} s: then the lease ends, and a heartbeat cannot extend it."
    steps = [
        action("complete_task", task_id, best=not stop, why=in_time if last else "When it is done."),
        action("fail_task", task_id, why="When it failed; it is retried while attempts are left."),
    ]
    if last:
        steps.append(action("release_task", task_id, why="If you cannot finish: release it with a checkpoint."))
    else:
        steps.append(action("heartbeat", task_id, why="While you work, at the recommended interval."))
    if stop:
        why = "Cancellation was requested: stop, then release or fail the task, and it is cancelled."
        steps = [action("stop_work", best=True, why=why), action("release_task", task_id), *steps]
    return contract(
        *steps,
        lease_valid=True,
        lease_expires_in_seconds=left,
        recommended_heartbeat_interval_seconds=every,
        **dict(more),
    )


def _for_dependent(task_id: str) -> Contract:
    """The task waits for others."""
    why = "It becomes ready when the tasks that it depends on have completed; see which have not."
    return contract(
        action("task_dependencies", task_id, best=True, why=why),
        action("claim_task", why="Take the next task that is ready."),
    )


def dependencies_read(task_id: str, next_page: str | None) -> Contract:
    """What a task needs and what needs it; `next_page` is the query of the next page."""
    if next_page is not None:
        return check_state("task_dependencies", task_id, query=next_page)
    return continue_work("That is all of it.", action("check_task_status", task_id))


def _for_output(output_id: str) -> Contract:
    return contract(
        action("download_artifact", endpoint=("GET", f"{ARTIFACTS}/{quote(output_id, safe='')}/content"), best=True),
        action("claim_task", why="Take the next task."),
    )


# -- answers -----------------------------------------------------------------------------------------------------


def nothing_to_claim() -> Contract:
    """The queues are empty."""
    why = "Or send `wait_seconds`, and the server answers as soon as there is a task."
    wait = action("retry_after_wait", operation="claim_task", best=True, wait=EMPTY_WAIT, why=why)
    return contract(wait, retryable=True, task_claimable=False)


def session_busy(task: Task, now: Instant) -> Advice:
    """The session may hold one task at a time and holds this one."""
    return for_task(task, now, task_claimable=False)


def several_claimed() -> Contract:
    """Several tasks were claimed; each action takes the id of one."""
    return contract(action("complete_task", best=True), action("fail_task"), action("heartbeat"), task_claimable=True)


def listed(found: Iterable[Task], next_page: str | None) -> Contract:
    """A page of tasks; `next_page` is the query of the next one."""
    states = {task.state for task in found}
    best = action("claim_task", best=True) if tasks.PENDING in states else action("create_task", best=True)
    more = []
    if next_page is not None:
        more.append(action("list_tasks", query=next_page, why="There are more tasks."))
    if tasks.DEAD in states:
        more.append(action("requeue_task", why="Dead letters wait until they are requeued or resolved."))
    return contract(best, *more)


def counted() -> Contract:
    """Tasks were counted; the list shows which they are."""
    return continue_work("These are the counts.", action("list_tasks"))


def returned(task_id: str) -> Contract:
    """The caller released the task: it is in its queue again, or cancelled if that was requested."""
    return work_over("You do not hold the task any more.", action("check_task_status", task_id), action("claim_task"))


def resolved(task_id: str) -> Contract:
    """A dead letter was marked as resolved."""
    return continue_work("It is resolved.", action("requeue_task", task_id, why="Only if it must be done after all."))


def offered(task_id: str, expires_in: int) -> Contract:
    """The caller has offered its task."""
    why = "Give `offer` to the worker that takes over, which sends it with claim_task_by_id; then you may stop."
    return contract(
        action("stop_work", best=True, why=why),
        action("check_task_status", task_id, why="See whether it was taken over."),
        action("withdraw_task_offer", task_id, why="If you want to keep the task."),
        lease_valid=True,
        lease_expires_in_seconds=expires_in,
    )


def batch_done() -> Contract:
    """The items of a batch were applied."""
    return continue_work("`results` has the outcome of each item, and what to do after a refusal.")
