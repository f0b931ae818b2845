"""`agent_contract` of refusals: the next actions for each error code.

It is the advice of every API except two: on the routes of Orchestrion V1 some rows are fixed (`orchestrion.py`), and
OctoStore's routes have codes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.core.lease import BY_HOLDER
from holdfast.operations.table import HOLDER_OPERATIONS, OPERATIONS_BY_NAME
from holdfast.transport.advice import jobs, reservations, sessions
from holdfast.transport.advice.contract import (
    Action,
    Contract,
    action,
    ask_operator,
    authenticate,
    check_state,
    contract,
    fix_request,
    not_installed,
    retry_after,
    stop_work,
    work_over,
)


class Refusal(msgspec.Struct, frozen=True):
    """A refused request, as far as the advice depends on it."""

    code: str
    operation: str = ""
    """Empty if no operation has the path."""
    subject: str = ""
    """The id or name in the path."""
    request_id: str = ""
    wait: int | None = None
    """Seconds after which it may be sent again."""
    hint: str = ""
    """What to do, in words."""
    facts: Mapping[str, Any] = {}
    billing: dict[str, Any] | None = None


def for_refusal(refusal: Refusal) -> Contract:
    """What to do after a refusal. A code that is not listed is a wrong request, or a trouble that passes."""
    advise = _ADVICE.get(refusal.code)
    if advise is None:
        advise = _fix if refusal.wait is None else _retry
    advice = advise(refusal)
    return advice if refusal.billing is None else advice | {"billing_context": refusal.billing}


def for_payment(code: str) -> Contract:
    """A person must pay."""
    why = "A person must pay: tell your user."
    return contract(
        action(code, operation="checkout", best=True, why=why),
        action("check_billing_status", operation="billing_status"),
    )


def workers_limited() -> Contract:
    """The plan's limit of held tasks is reached."""
    later = action("retry_after_wait", best=True, wait=30)
    return contract(later, action("upgrade_plan", operation="checkout"), retryable=True)


# -- leases ------------------------------------------------------------------------------------------------------


def _lease_lost(refusal: Refusal) -> Contract:
    if _is_about(refusal, "/v1/sessions"):
        return stop_work("read_session", refusal.subject)
    if _is_about(refusal, "/v1/reservations"):
        return reservations.lost(refusal.subject or refusal.facts.get("reservation_id"))
    job = refusal.subject or refusal.facts.get("job_id", "")
    released = refusal.facts.get("ended") in BY_HOLDER and "held_by" not in refusal.facts
    return jobs.already_released(job) if released else jobs.lost(job)


def _task_lost(refusal: Refusal) -> Contract:
    why = "You do not hold the task: abandon what you have not published."
    return work_over(why, _look_at_task(refusal), action("claim_task", why="Only for other work."))


def _not_held(refusal: Refusal) -> Contract:
    if _is_about(refusal, "/v1/reservations"):
        return reservations.not_held(refusal.subject)
    return jobs.not_held(refusal.subject)


def _wrong_state(refusal: Refusal) -> Contract:
    state = refusal.facts.get("state")
    now = f"The task is {state}: there is nothing to do here." if state else refusal.hint
    return work_over(now, _look_at_task(refusal))


def _wait_for_task(refusal: Refusal) -> Contract:
    wait = 30 if refusal.wait is None else refusal.wait
    return contract(action("retry_after_wait", best=True, wait=wait), _look_at_task(refusal), retryable=True)


def _cannot_do(refusal: Refusal) -> Contract:
    return contract(action("fix_request", best=True, why=refusal.hint), _look_at_task(refusal))


def _look_at_task(refusal: Refusal) -> Action:
    return action("check_task_status", refusal.subject) if refusal.subject else action("list_tasks")


# -- sessions, events --------------------------------------------------------------------------------------------


def _read_from(refusal: Refusal) -> Contract:
    """Where to read on: in the log after the gap or at its end, in any other list from its beginning."""
    after = refusal.facts["oldest"] - 1 if "oldest" in refusal.facts else refusal.facts.get("last", 0)
    if refusal.operation == "task_events":
        return check_state("task_events", refusal.subject, query=f"after={after}")
    if refusal.operation in {"", "list_events"}:
        return check_state("list_events", query=f"after={after}")
    if OPERATIONS_BY_NAME[refusal.operation].method != "GET":
        return fix_request(refusal.hint)
    return check_state(refusal.operation, refusal.subject or None)


# -- the request -------------------------------------------------------------------------------------------------


def _fix(refusal: Refusal) -> Contract:
    return fix_request(refusal.hint)


def _retry(refusal: Refusal) -> Contract:
    return retry_after(5 if refusal.wait is None else refusal.wait)


def _outcome_unknown(refusal: Refusal) -> Contract:
    """The events of the request tell whether it took effect. A holder's write can also be sent again."""
    look = action(
        "list_events",
        query=f"request_id={refusal.request_id}",
        best=True,
        why="If the request took effect, it has an event here. If it has none, send the request again.",
    )
    if refusal.operation in HOLDER_OPERATIONS:
        return contract(look, action("retry_after_wait", wait=1, why="Repeating it with your lease id is safe."))
    if refusal.operation == "begin_session":
        why = "Repeat it. If the name is taken then, open a session with another one."
        return contract(look, action("retry_after_wait", operation="begin_session", wait=1, why=why))
    reads = _READS.get(refusal.operation)
    return contract(look) if reads is None else contract(look, action(reads, refusal.subject or None))


_READS = {
    "claim_job": "get_job_owner",
    "claim_any_job": "list_claimed_jobs",
    "force_release_job": "get_job_owner",
    "reserve_files": "list_reservations",
    "force_release_reservation": "read_reservation",
    "create_task": "list_tasks",
    "claim_task": "list_tasks",
    "claim_task_by_id": "check_task_status",
    **dict.fromkeys(("requeue_task", "cancel_task", "resolve_task"), "check_task_status"),
}
"""What else shows whether an operation took effect."""


def _missing_task(_: Refusal) -> Contract:
    why = "This account has no such task: check its id."
    return contract(action("fix_request", best=True, why=why), action("list_tasks"))


def _operator(refusal: Refusal) -> Contract:
    return ask_operator(refusal.hint)


def _is_about(refusal: Refusal, path: str) -> bool:
    operation = OPERATIONS_BY_NAME.get(refusal.operation)
    return operation is not None and operation.path.startswith(path)


_ADVICE: dict[str, Callable[[Refusal], Contract]] = {
    "lease_lost": _lease_lost,
    "lease_superseded": _task_lost,
    "lease_expired": _task_lost,
    "not_held": _not_held,
    "invalid_transition": _wrong_state,
    "task_currently_claimed": _wait_for_task,
    "not_yet_claimable": _wait_for_task,
    "capability_missing": _cannot_do,
    "task_not_found": _missing_task,
    "session_not_found": lambda _: sessions.missing(),
    "session_expired": lambda _: sessions.expired(),
    "session_live": lambda _: sessions.live(),
    "context_conflict": lambda refusal: sessions.context_changed(refusal.subject),
    "cursor_too_old": _read_from,
    "cursor_ahead": _read_from,
    "reservation_not_found": lambda refusal: contract(
        action("list_reservations", best=True), action("fix_request", why=refusal.hint)
    ),
    "question_not_found": lambda _: check_state("list_questions"),
    "question_closed": lambda refusal: check_state("read_question", refusal.subject),
    "webhook_not_found": lambda _: check_state("list_webhooks"),
    "too_many_webhooks": lambda _: check_state("list_webhooks"),
    "purchase_not_found": lambda _: check_state("retry_checkout", operation="checkout"),
    "missing_api_key": lambda _: authenticate(retryable=True),
    "invalid_api_key": lambda _: authenticate(retryable=False),
    "registration_closed": lambda _: authenticate(retryable=False),
    "quota_exceeded": lambda _: for_payment("upgrade_plan"),
    "plan_expired": lambda _: for_payment("renew_plan"),
    "payment_failed": lambda _: for_payment("retry_checkout"),
    "payments_not_configured": _operator,
    "not_installed": lambda _: not_installed(),
    "damaged_row": _operator,
    "configured_key": _operator,
    "max_workers_reached": lambda _: workers_limited(),
    "rate_limited": lambda refusal: retry_after(60 if refusal.wait is None else refusal.wait),
    "outcome_unknown": _outcome_unknown,
    "value_refused": _fix,
    **dict.fromkeys(
        (
            *("server_error", "overloaded", "draining", "store_unavailable", "server_outdated", "storage_full"),
            *("idempotency_in_flight", "payment_unavailable", "too_many_waiters", "space_full"),
        ),
        _retry,
    ),
}
