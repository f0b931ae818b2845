"""`agent_contract` of tasks: what to do in each state of a task and after each refusal.

Clients of Orchestrion V1 rely on codes, order and flags; actions of our own come after those that V1 has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.core import task as tasks
from holdfast.core.deadlines import heartbeat_interval
from holdfast.core.lease import is_live
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import Task
from holdfast.transport.advice.contract import (
    Action,
    Advice,
    Contract,
    action,
    authenticate,
    contract,
    prepared,
    seconds_left,
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
_LIST = contract(action("list_tasks", best=True))


# -- states ------------------------------------------------------------------------------------------------------


def for_task(task: Task, now: Instant, **more: Any) -> Advice:
    """What to do with a task in its present state."""
    if task.state == tasks.CLAIMED and is_live(task, now):
        every = max(heartbeat_interval(task, now) // SECOND, 1)
        stop, left = task.cancel_requested, seconds_left(task.expires_at, now)
        return prepared(_for_held_task, task.id, stop, left, every, *more.items())
    if task.state == tasks.CLAIMED:
        return contract(
            action("check_task_status", task.id, best=True, why="The lease has expired; read the task's new state."),
            action("claim_task", task.id, operation="claim_task_by_id", why="Or claim it yourself."),
            lease_valid=False,
            lease_expires_in_seconds=None if task.expires_at is None else 0,
            **more,
        )
    if task.state == tasks.PENDING:
        return _CLAIM_NEXT
    if task.state == tasks.COMPLETED:
        return _for_output(task.output_id) if task.output_id else _COMPLETED
    if task.state == tasks.DEAD:
        return contract(
            action("requeue_task", task.id, best=True, why="Queue it again once the cause of its failure is fixed.")
        )
    return _CANCELLED


def _for_held_task(task_id: str, stop: bool, left: int, every: int, *more: tuple[str, Any]) -> Contract:  # noqa: FBT001
    """The task is held for `left` more seconds; `stop` if its cancellation was requested."""
    steps = [
        action("complete_task", task_id, best=not stop, why="When it is done."),
        action("fail_task", task_id, why="When it failed; it is retried while attempts are left."),
        action("heartbeat", task_id, why="While you work, at the recommended interval."),
    ]
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


def _for_output(output_id: str) -> Contract:
    return contract(
        action("download_artifact", endpoint=("GET", f"{ARTIFACTS}/{output_id}/content"), best=True),
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


def recovered() -> Contract:
    """Expired tasks are back in their queues."""
    return _CLAIM_NEXT


def counted() -> Contract:
    """Tasks were counted; the list shows which they are."""
    return _LIST


def read_task(task_id: str) -> Contract:
    """The history of a task was read; the task itself has its present state."""
    return contract(_check_status(task_id))


def create_or_claim() -> Contract:
    """The request is complete; go on with other work."""
    return contract(action("create_task", best=True), action("claim_task"))


# -- refusals ----------------------------------------------------------------------------------------------------


def for_error(
    code: str,
    task_id: str | None = None,
    wait: int | None = None,
    billing: dict[str, Any] | None = None,
    *,
    can_register: bool = False,
) -> Contract:
    """What to do after a refusal; with an unknown code, retry after a few seconds."""
    if code in _NEEDS_KEY:
        return authenticate(retryable=_NEEDS_KEY[code], can_register=can_register)
    advise = _ERRORS.get(code)
    advice = _retry(5 if wait is None else wait) if advise is None else advise(task_id, wait)
    return advice if billing is None else advice | {"billing_context": billing}


def _retry(seconds: int, **more: Any) -> Contract:
    return contract(action("retry_after_wait", best=True, wait=seconds), retryable=True, **more)


def _check_status(task_id: str, *, best: bool = True) -> Action:
    return action("check_task_status", task_id, best=best)


def _check_or_list(task_id: str | None, _: int | None) -> Contract:
    return _LIST if task_id is None else contract(_check_status(task_id))


def _claimed_by_another(task_id: str | None, _: int | None) -> Contract:
    if task_id is None:
        return _retry(30)
    return contract(_check_status(task_id), action("retry_after_wait", wait=30), retryable=True)


def _not_yet_claimable(task_id: str | None, wait: int | None) -> Contract:
    later = action("retry_after_wait", best=True, wait=30 if wait is None else wait)
    return contract(later, *([] if task_id is None else [_check_status(task_id, best=False)]), retryable=True)


def _lease_lost(task_id: str | None, _: int | None) -> Contract:
    stop = action("stop_work", best=True, why="You no longer hold the task: abandon what you have not published.")
    check = action("list_tasks") if task_id is None else _check_status(task_id, best=False)
    return contract(stop, check, action("claim_task"))


def _pay(code: str) -> Contract:
    return contract(
        action(code, operation="checkout", best=True), action("check_billing_status", operation="billing_status")
    )


_FIX = contract(action("fix_request", why="Fix the fields listed in `errors`, then send it again."))
_BEGIN_SESSION = contract(action("begin_session", best=True))

_NEEDS_KEY = {"wrong_method": True, "missing_api_key": True, "invalid_api_key": False, "registration_closed": False}
"""Codes that a key helps against, and whether the same request may succeed with one."""

_ERRORS: dict[str, Callable[[str | None, int | None], Contract]] = {
    "invalid_request": lambda *_: _FIX,
    "value_refused": lambda *_: _FIX,
    "damaged_row": lambda *_: contract(
        action("fix_request", best=True, why="Ask the operator to run `holdfast verify` and to correct the row.")
    ),
    "too_large": lambda *_: _FIX,
    "wrong_token": lambda *_: _FIX,
    "method_not_allowed": lambda *_: _FIX,
    "forbidden": lambda *_: _FIX,
    "insecure_transport": lambda *_: contract(
        action("fix_request", best=True, why="Use the server's https address, and replace this key.")
    ),
    "task_not_found": lambda *_: _LIST,
    "not_found": lambda *_: _LIST,
    "invalid_transition": _check_or_list,
    "offer_refused": _check_or_list,
    "offer_restricted": lambda *_: _BEGIN_SESSION,
    "lease_expired": lambda task_id, _: contract(
        action("claim_task", best=True) if task_id is None else _check_status(task_id)
    ),
    "lease_superseded": _lease_lost,
    "lease_lost": _lease_lost,
    "task_currently_claimed": _claimed_by_another,
    "not_yet_claimable": _not_yet_claimable,
    "session_not_found": lambda *_: _BEGIN_SESSION,
    "session_expired": lambda *_: _BEGIN_SESSION,
    "session_busy": lambda *_: contract(
        action("list_tasks", query="status=claimed", best=True, why="Finish the claimed task first.")
    ),
    "idempotency_conflict": lambda *_: contract(action("create_task", best=True)),
    "idempotency_in_flight": lambda *_: _retry(2),
    "outcome_unknown": _check_or_list,
    "cursor_too_old": _check_or_list,
    "cursor_ahead": _check_or_list,
    "rate_limited": lambda _, wait: _retry(60 if wait is None else wait),
    "quota_exceeded": lambda *_: _pay("upgrade_plan"),
    "plan_expired": lambda *_: _pay("renew_plan"),
    "payment_failed": lambda *_: _pay("retry_checkout"),
    "purchase_not_found": lambda *_: contract(action("retry_checkout", operation="checkout", best=True)),
    "max_workers_reached": lambda *_: contract(
        action("retry_after_wait", best=True, wait=30), action("upgrade_plan", operation="checkout"), retryable=True
    ),
}
