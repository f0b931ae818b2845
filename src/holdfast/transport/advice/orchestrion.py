"""`agent_contract` of refusals on the routes of Orchestrion V1, whose clients expect exactly this advice.

Codes, order, flags and waits are fixed; every other API and code has the advice of `refusals.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.transport.advice.contract import Action, Contract, action, authenticate, contract
from holdfast.transport.advice.refusals import for_payment, workers_limited

ROUTES = frozenset(
    {
        *("register", "create_task", "list_tasks", "claim_task", "check_task_status", "claim_task_by_id"),
        *("heartbeat", "complete_task", "fail_task", "cancel_task", "requeue_task"),
        *("list_plans", "billing_status", "checkout", "verify_payment"),
    }
)
"""The operations of Orchestrion V1."""

_LIST = contract(action("list_tasks", best=True))


def for_error(
    code: str,
    task_id: str | None = None,
    wait: int | None = None,
    billing: dict[str, Any] | None = None,
    *,
    operation: str = "",
    can_register: bool = False,
) -> Contract | None:
    """The fixed advice for a code on a route; None if the row is not fixed there."""
    only_on = _ONLY_ON.get(code)
    if code not in FIXED or operation not in (ROUTES if only_on is None else only_on):
        return None
    if code in _NEEDS_KEY:
        return authenticate(retryable=_NEEDS_KEY[code], can_register=can_register)
    advise = _ERRORS[code]
    advice = advise(task_id, wait)
    return advice if billing is None else advice | {"billing_context": billing}


def _retry(seconds: int) -> Contract:
    return contract(action("retry_after_wait", best=True, wait=seconds), retryable=True)


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


_FIX = contract(action("fix_request", why="Fix the fields listed in `errors`, then send it again."))
_ONLY_ON = {"wrong_method": frozenset({"register"}), "idempotency_conflict": frozenset({"create_task"})}
"""Codes whose advice makes sense on one route, the only one of the original that has them."""

_NEEDS_KEY = {"wrong_method": True, "missing_api_key": True, "invalid_api_key": False, "registration_closed": False}
"""Codes that a key helps against, and whether the same request may succeed with one."""
_ERRORS: dict[str, Callable[[str | None, int | None], Contract]] = {
    "invalid_request": lambda *_: _FIX,
    "task_not_found": lambda *_: _LIST,
    "invalid_transition": _check_or_list,
    "lease_expired": lambda task_id, _: contract(
        action("claim_task", best=True) if task_id is None else _check_status(task_id)
    ),
    "task_currently_claimed": _claimed_by_another,
    "not_yet_claimable": _not_yet_claimable,
    "idempotency_conflict": lambda *_: contract(action("create_task", best=True)),
    "idempotency_in_flight": lambda *_: _retry(2),
    "rate_limited": lambda _, wait: _retry(60 if wait is None else wait),
    "quota_exceeded": lambda *_: for_payment("upgrade_plan"),
    "plan_expired": lambda *_: for_payment("renew_plan"),
    "payment_failed": lambda *_: for_payment("retry_checkout"),
    "max_workers_reached": lambda *_: workers_limited(),
    "server_error": lambda *_: _retry(5),
}
FIXED = frozenset(_ERRORS) | _NEEDS_KEY.keys()
"""The codes whose rows are fixed."""
