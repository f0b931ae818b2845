"""`agent_contract` of tasks: what an agent should do next, by the task's state and by each refusal.

Codes, order and flags are a promise to clients of Orchestrion V1; further actions come after the promised ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.core import task as tasks
from holdfast.core.lease import is_live
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import Task
from holdfast.transport.advice.contract import Contract, action, contract, seconds_left

ARTIFACTS = "https://api.outputlayer.dev/v1/outputs"
EMPTY_WAIT = 5
REGISTER = "POST /v1/keys/register"
CHECKOUT = "POST /v1/billing/checkout"
CREATE, CLAIM, LIST = "POST /v1/tasks", "POST /v1/tasks/claim", "GET /v1/tasks"

_CLAIM_NEXT = contract(action("claim_task", CLAIM, best=True, why="Take the next task of a type."))
_MADE_NOTHING = contract(
    action("create_task", CREATE, best=True, why="Put more work into the queue."),
    action("claim_task", CLAIM, why="Take the next task."),
)
_CANCELLED = contract(action("create_task", CREATE, best=True, why="It is cancelled for good; make a new one."))


# -- states ------------------------------------------------------------------------------------------------------


def of_task(task: Task, now: Instant, **more: Any) -> Contract:
    """What to do with a task in its present state."""
    if task.state == tasks.CLAIMED:
        return _of_held(task, now, more)
    if task.state == tasks.PENDING:
        return _CLAIM_NEXT
    if task.state == tasks.COMPLETED:
        return _of_output(task.output_id) if task.output_id else _MADE_NOTHING
    if task.state == tasks.DEAD:
        return contract(
            action(
                "requeue_task",
                f"POST /v1/tasks/{task.id}/requeue",
                best=True,
                why="Give it another life once its cause is mended.",
            )
        )
    return _CANCELLED


def _of_held(task: Task, now: Instant, more: dict[str, Any]) -> Contract:
    path = f"/v1/tasks/{task.id}"
    if not is_live(task, now):
        return contract(
            action("check_task_status", f"GET {path}", best=True, why="The lease ran out; see what becomes of it."),
            action("claim_task", f"POST {path}/claim", why="Or take it over."),
            lease_valid=False,
            lease_expires_in_seconds=None if task.expires_at is None else 0,
            **more,
        )
    steps = [
        action("complete_task", f"POST {path}/complete", best=not task.cancel_requested, why="When it is done."),
        action("fail_task", f"POST {path}/fail", why="When it went wrong; it is tried again while attempts last."),
        action("heartbeat", f"POST {path}/heartbeat", why="While you work, at the advised pace."),
    ]
    if task.cancel_requested:
        stop = "Somebody asked for its end: stop, then release or fail it, and it is cancelled."
        steps = [action("stop_work", best=True, why=stop), action("release_task", f"POST {path}/release"), *steps]
    return contract(
        *steps,
        lease_valid=True,
        lease_expires_in_seconds=seconds_left(task.expires_at, now),
        recommended_heartbeat_interval_seconds=task.lease_duration // SECOND // 3,
        **more,
    )


def _of_output(output_id: str) -> Contract:
    return contract(
        action("download_artifact", f"GET {ARTIFACTS}/{output_id}/content", best=True),
        action("claim_task", CLAIM, why="Take the next task."),
    )


# -- answers -----------------------------------------------------------------------------------------------------


def nothing_to_claim() -> Contract:
    """The queues are empty."""
    wait = action(
        "retry_after_wait", CLAIM, best=True, wait=EMPTY_WAIT, why="Or send `wait_seconds` and be told at once."
    )
    return contract(wait, retryable=True, task_claimable=False)


def lane_busy(task: Task, now: Instant) -> Contract:
    """The session has a task in flight: that one first."""
    return of_task(task, now, task_claimable=False)


def claimed_many() -> Contract:
    """Several tasks, each with an id of its own."""
    return contract(
        action("complete_task", "POST /v1/tasks/{id}/complete", best=True),
        action("fail_task", "POST /v1/tasks/{id}/fail"),
        action("heartbeat", "POST /v1/tasks/{id}/heartbeat"),
        task_claimable=True,
    )


def listed(found: Iterable[Task], next_page: str | None) -> Contract:
    """A page of tasks."""
    states = {task.state for task in found}
    best = (
        action("claim_task", CLAIM, best=True) if tasks.PENDING in states else action("create_task", CREATE, best=True)
    )
    more = []
    if next_page is not None:
        more.append(action("list_tasks", f"{LIST}?{next_page}", why="There are more."))
    if tasks.DEAD in states:
        more.append(action("requeue_task", "POST /v1/tasks/{id}/requeue", why="Dead letters wait for somebody."))
    return contract(best, *more)


def recovered() -> Contract:
    """Work is back in its queues."""
    return _CLAIM_NEXT


def counted() -> Contract:
    """How many there are; which ones is another question."""
    return _list


def look_at(task_id: str) -> Contract:
    """A task's history was told; its present state is elsewhere."""
    return contract(_look(task_id))


def go_on() -> Contract:
    """There is nothing more to do about this: make work, or take some."""
    return contract(action("create_task", CREATE, best=True), action("claim_task", CLAIM))


# -- refusals ----------------------------------------------------------------------------------------------------


def of_error(
    code: str, task_id: str | None = None, wait: int | None = None, billing: dict[str, Any] | None = None
) -> Contract:
    """What to do after a refusal; a code nobody knows means: wait a little and try again."""
    known = _ERRORS.get(code)
    told = _wait(5 if wait is None else wait) if known is None else known(task_id, wait)
    return told if billing is None else told | {"billing_context": billing}


def _wait(seconds: int, **more: Any) -> Contract:
    return contract(action("retry_after_wait", best=True, wait=seconds), retryable=True, **more)


def _look(task_id: str, *, best: bool = True) -> dict[str, Any]:
    return action("check_task_status", f"GET /v1/tasks/{task_id}", best=best)


def _authenticate(*, retryable: bool) -> Contract:
    return contract(
        action("authenticate", REGISTER, best=True, why="Send `Authorization: Bearer <key>`; registering makes a key."),
        retryable=retryable,
    )


def _claimed_elsewhere(task_id: str | None, _: int | None) -> Contract:
    if task_id is None:
        return _wait(30)
    return contract(_look(task_id), action("retry_after_wait", wait=30), retryable=True)


def _not_yet(task_id: str | None, wait: int | None) -> Contract:
    later = action("retry_after_wait", best=True, wait=30 if wait is None else wait)
    return contract(later, *([] if task_id is None else [_look(task_id, best=False)]), retryable=True)


def _superseded(task_id: str | None, _: int | None) -> Contract:
    stop = action("stop_work", best=True, why="It is not yours any more: abandon what you have not published.")
    look = action("list_tasks", LIST) if task_id is None else _look(task_id, best=False)
    return contract(stop, look, action("claim_task", CLAIM))


_BILLING = action("check_billing_status", "GET /v1/billing/status")
_fix = contract(action("fix_request", why="Mend what `errors` names, then send it again."))
_list = contract(action("list_tasks", LIST, best=True))

_ERRORS: dict[str, Callable[[str | None, int | None], Contract]] = {
    "wrong_method": lambda *_: _authenticate(retryable=True),
    "missing_api_key": lambda *_: _authenticate(retryable=True),
    "invalid_api_key": lambda *_: _authenticate(retryable=False),
    "invalid_request": lambda *_: _fix,
    "value_refused": lambda *_: _fix,
    "too_large": lambda *_: _fix,
    "wrong_token": lambda *_: _fix,
    "method_not_allowed": lambda *_: _fix,
    "forbidden": lambda *_: _fix,
    "insecure_transport": lambda *_: contract(
        action("fix_request", best=True, why="Use the server's https address, and replace this key.")
    ),
    "task_not_found": lambda *_: _list,
    "not_found": lambda *_: _list,
    "invalid_transition": lambda task_id, _: _list if task_id is None else contract(_look(task_id)),
    "lease_expired": lambda task_id, _: (
        contract(action("claim_task", CLAIM, best=True)) if task_id is None else contract(_look(task_id))
    ),
    "lease_superseded": _superseded,
    "lease_lost": _superseded,
    "task_currently_claimed": _claimed_elsewhere,
    "not_yet_claimable": _not_yet,
    "session_not_found": lambda *_: contract(action("begin_session", "POST /v1/sessions", best=True)),
    "session_expired": lambda *_: contract(action("begin_session", "POST /v1/sessions", best=True)),
    "session_busy": lambda *_: contract(
        action("list_tasks", f"{LIST}?status=claimed", best=True, why="Finish the task in flight first.")
    ),
    "idempotency_conflict": lambda *_: contract(action("create_task", CREATE, best=True)),
    "idempotency_in_flight": lambda *_: _wait(2),
    "outcome_unknown": lambda task_id, _: _list if task_id is None else contract(_look(task_id)),
    "rate_limited": lambda _, wait: _wait(60 if wait is None else wait),
    "quota_exceeded": lambda *_: contract(action("upgrade_plan", CHECKOUT, best=True), _BILLING),
    "plan_expired": lambda *_: contract(action("renew_plan", CHECKOUT, best=True), _BILLING),
    "payment_failed": lambda *_: contract(action("retry_checkout", CHECKOUT, best=True), _BILLING),
    "purchase_not_found": lambda *_: contract(action("retry_checkout", CHECKOUT, best=True)),
    "max_workers_reached": lambda *_: contract(
        action("retry_after_wait", best=True, wait=30), action("upgrade_plan", CHECKOUT), retryable=True
    ),
}
