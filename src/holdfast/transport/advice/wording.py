"""`agent_contract` for callers that do not send HTTP requests themselves: MCP tools and the command line.

An action is described once, as a request. A wording names it as its callers know it: as a tool or a command, with its
fields. What they cannot do is not advised to them. Advice that is fixed for Orchestrion's clients is replaced by
our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl

from holdfast.core import errors
from holdfast.core import task as tasks
from holdfast.core.errors import HoldfastError
from holdfast.operations.operation import Operation
from holdfast.transport.advice import orchestrion
from holdfast.transport.advice.contract import WITHOUT_KEY, Action, Contract, action, continue_work, contract, work_over
from holdfast.transport.advice.refusals import Refusal, for_refusal
from holdfast.transport.http.routing import Router

Document = dict[str, Any]

_ROUTER = Router()
_PAYMENTS = {"upgrade_plan", "renew_plan", "retry_checkout", "verify_payment"}
"""Actions that a person takes."""
_HOLDERS = {"claim_task", "claim_task_by_id", "heartbeat"}
"""Operations whose answer shows a task to its holder."""
_HINTS = {kind.code: kind.hint for kind in (errors.Invalid, errors.IdempotencyConflict, errors.InvalidTransition)}
_ASK_AGAIN_SECONDS = 30


SET_KEY = f"Set `HOLDFAST_API_KEY` in the environment, or where the host configures this MCP server. {WITHOUT_KEY}"
"""A program is given its key before it starts; over HTTP a caller sends it."""


class Wording(Protocol):
    """The names that MCP or the command line has for requests and their fields."""

    def call(self, operation: Operation, values: Mapping[str, str], known: Document, code: str) -> Document | None:
        """The name of a request, `values` being of its path and query; None if it cannot be sent there.

        `known` is the answer that has the advice, `code` that of the action.
        """

    def names(self, operation: str) -> Mapping[str, str]:
        """The name of each field of an operation, by its name in the request."""

    def operations(self) -> Mapping[str, str]:
        """The name of each operation that can be sent there."""


def advise(document: Document, wording: Wording, operation: str = "", subject: str = "") -> Document:
    """An answer with its advice in this wording; `operation` and `subject` are those of the request."""
    given = document.get("agent_contract")
    if not isinstance(given, dict) or not given.get("next_actions"):
        return document
    better = (
        _for_task_list(document, operation)
        or _for_task(document, operation)
        or _for_fixed_row(document, operation, subject)
    )
    advice = given | (better or {})
    steps = [_step(step, wording, document, operation) for step in advice["next_actions"]]
    advice["next_actions"] = _with_one_best([step for step in steps if step is not None], advice["next_actions"])
    listed = document.get("tasks")
    if isinstance(listed, list):
        document = document | {"tasks": [advise(one, wording, "check_task_status") for one in listed]}
    return document | {"agent_contract": advice}


def request_of(step: Action) -> tuple[Operation, dict[str, str]] | None:
    """The operation of an action, and what is known of its path and query; None if it is no request to this server."""
    endpoint: str = step.get("endpoint", "")
    if not endpoint.startswith("/"):
        return None
    path, _, query = endpoint.partition("?")
    try:
        operation, subject = _ROUTER.find(step["method"], path.encode())
    except HoldfastError:
        return None
    values = dict(parse_qsl(query))
    parameter = re.search(r"{(\w+)(\.\.\.)?}", operation.path)
    if parameter is not None and not subject.startswith("{"):
        values[parameter[1]] = subject
    return operation, values


# -- one action --------------------------------------------------------------------------------------------------


def _step(step: Action, wording: Wording, document: Document, called: str) -> Action | None:
    """An action in this wording; None if it has none."""
    plain = {name: value for name, value in step.items() if name not in {"method", "endpoint"}}
    request = request_of(step)
    if request is not None:
        operation, values = request
        call = wording.call(operation, values, document, step["action"])
        if call is None and step["action"] in _PAYMENTS:
            why = step.get("description") or operation.summary
            return plain | {"action": "ask_operator", "description": why} if step["recommended"] else None
        if call is None:
            return None
        plain |= call
        called = operation.name
    elif "endpoint" in step:
        plain["description"] = f"{step.get('description') or 'Fetch it from'}: {step['endpoint']}"
    if step["action"] == "authenticate":
        plain["description"] = SET_KEY
    if "description" in plain:
        plain["description"] = _reword(plain["description"], wording, called)
    return plain


def _with_one_best(steps: list[Action], before: list[Action]) -> list[Action]:
    """The remaining steps. If the best one is gone, the next that changes nothing is the best, else to go on."""
    if any(step["recommended"] for step in steps) or not any(step["recommended"] for step in before):
        return steps if any(step["recommended"] for step in steps) else [_recommend(step) for step in steps[:1]]
    harmless = [step for step in steps if step["action"] in _HARMLESS]
    if harmless:
        return [_recommend(harmless[0]), *(step for step in steps if step is not harmless[0])]
    return [action("continue_work", best=True, why="Go on with your own work."), *steps]


def _recommend(step: Action) -> Action:
    return step | {"recommended": True}


_HARMLESS = {
    *("retry_after_wait", "fix_request", "get_job_owner", "check_task_status", "list_tasks", "list_claimed_jobs"),
    *("list_reservations", "read_reservation", "read_session", "list_mine"),
}
"""Actions that change nothing."""


def _reword(text: str, wording: Wording, operation: str) -> str:
    """A description with this wording's names of fields and operations."""
    fields, operations = wording.names(operation), wording.operations()
    text = re.sub(r"`(\w+)`", lambda found: f"`{fields.get(found[1], found[1])}`", text)
    known = {**operations, **fields}
    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", lambda found: known.get(found[0], found[0]), text)


# -- rows that Orchestrion fixes ---------------------------------------------------------------------------------


def _for_fixed_row(document: Document, operation: str, subject: str) -> Contract | None:
    """The advice of our own for a refusal whose advice is fixed on Orchestrion's routes."""
    code, given = document.get("error"), document["agent_contract"]
    if code not in orchestrion.FIXED:
        return None
    waits = (step.get("retry_after_seconds") for step in given["next_actions"])
    says = (step.get("description") for step in given["next_actions"])
    return for_refusal(
        Refusal(
            code,
            operation=operation,
            subject=subject,
            request_id=document.get("request_id", ""),
            wait=next((wait for wait in waits if wait is not None), None),
            hint=_HINTS.get(code) or next((said for said in says if said), ""),
            facts=document,
            billing=given.get("billing_context"),
        )
    )


def _for_task(document: Document, operation: str) -> Contract | None:
    """The advice of our own for a task in its present state."""
    state, task_id = document.get("status"), document.get("id")
    if "leaseDurationSeconds" not in document or task_id is None or operation not in orchestrion.ROUTES:
        return None
    if state == tasks.CLAIMED:
        return None if operation in _HOLDERS else _held_by_another(task_id)
    return {
        tasks.PENDING: continue_work(
            "It waits in its queue for a worker.",
            action("check_task_status", task_id, why="Wait for its result with `wait_seconds`."),
            action("claim_task", why="To work on the next task yourself."),
        ),
        tasks.COMPLETED: continue_work(
            "It is completed; `result` has its result.", action("claim_task", why="For other work.")
        ),
        tasks.DEAD: continue_work(
            "It is a dead letter: tell your user why it failed.",
            action("requeue_task", task_id, why="Once the cause of its failure is fixed."),
        ),
        tasks.CANCELLED: work_over("It is cancelled: the work is no longer needed."),
    }.get(str(state))


def _held_by_another(task_id: str) -> Contract:
    why = "Its holder works on it. Wait for its result with `wait_seconds`."
    later = action(
        "retry_after_wait", task_id, operation="check_task_status", best=True, wait=_ASK_AGAIN_SECONDS, why=why
    )
    return contract(later, retryable=True)


def _for_task_list(document: Document, operation: str) -> Contract | None:
    """The advice of our own for a list of tasks."""
    if operation != "list_tasks" or "tasks" not in document:
        return None
    following = [step for step in document["agent_contract"]["next_actions"] if step["action"] == "list_tasks"]
    return continue_work("These are the tasks.", *following, action("claim_task", why="To work on the next one."))
