"""Every action code and every error code of the API, with its meaning."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import errors
from holdfast.core.errors import HoldfastError
from holdfast.operations.table import OPERATIONS
from holdfast.transport.advice import orchestrion
from holdfast.transport.advice.contract import WITHOUT_KEY, Contract
from holdfast.transport.advice.refusals import Refusal, for_refusal

ACTIONS = {operation.name: operation.summary for operation in OPERATIONS} | {
    "ask_operator": "Only a person can do this: tell your user, or the operator of this server.",
    "authenticate": f"Send `Authorization: Bearer <key>`. {WITHOUT_KEY}",
    "check_billing_status": "Read your plan, its limits and your usage.",
    "check_status": "Read the present state before you repeat the request.",
    "continue_work": "The request is complete, and nothing follows from it: go on with your own work.",
    "download_artifact": "Fetch the task's output from where it was stored.",
    "fix_request": "Fix the fields listed in `errors`, then send it again.",
    "renew_plan": "A person must pay for the plan again.",
    "resume_session": "Resume the session by its name and secret.",
    "retry_after_wait": "Send the same request again after `retry_after_seconds`.",
    "retry_checkout": "Start the payment again.",
    "stop_work": "Nothing is left to do on it. Stop, and do not publish unfinished work.",
    "upgrade_plan": "A person must pay for a larger plan.",
    "verify_payment": "Report that the payment was approved.",
}
"""Every code that `next_actions` may contain. A code with the name of an operation means that operation."""


class Advised(msgspec.Struct, frozen=True):
    """What an agent_contract says: whether the same request can succeed later, and the actions, best first."""

    retryable: bool
    actions: list[str]


class ErrorCode(msgspec.Struct, frozen=True, omit_defaults=True):
    """One error code. `elsewhere` is the advice on routes that Orchestrion V1 does not have, where it differs."""

    code: str
    meaning: str
    retryable: bool
    actions: list[str]
    elsewhere: Advised | None = None


def error_codes() -> list[ErrorCode]:
    """Every error code of the routes below `/v1`, with the actions that its agent_contract advises."""
    meanings = {kind.code: kind for kind in reversed(_subclasses(HoldfastError)) if kind.hint}
    waits = {code: getattr(kind, "retry_after", None) for code, kind in meanings.items()}
    hints = {code: kind.hint for code, kind in meanings.items() if code not in _OCTOSTORE} | _HTTP_LAYER_CODES
    return [_error_code(code, hints[code], waits.get(code)) for code in sorted(hints)]


def _error_code(code: str, hint: str, wait: int | None) -> ErrorCode:
    own = _advised(for_refusal(Refusal(code, subject="{id}", wait=wait, hint=hint)))
    routes = ("register", "create_task", "check_task_status")
    fixed = (orchestrion.for_error(code, "{id}", wait, operation=route) for route in routes)
    first = next((_advised(advice) for advice in fixed if advice is not None), own)
    return ErrorCode(code, hint, first.retryable, first.actions, None if first == own else own)


def _advised(contract: Contract) -> Advised:
    return Advised(contract["retryable"], [step["action"] for step in contract["next_actions"]])


def _subclasses(root: type[HoldfastError]) -> list[type[Any]]:
    return [root, *(kind for child in root.__subclasses__() for kind in _subclasses(child))]


_OCTOSTORE = {
    *("lease_gone", "lease_mismatch", "acl_conflict", "lock_limit_exceeded", "capacity_exceeded", "conflict"),
}
"""Codes of refusals that only OctoStore's routes give, which have codes of their own for them."""

_HTTP_LAYER_CODES = {
    "wrong_method": "Use one of the methods in the `Allow` header.",
    "method_not_allowed": "Use one of the methods in the `Allow` header.",
    "unsupported_media_type": "The body must be application/json.",
    "not_found": errors.Missing.hint,
    "not_installed": "Use the HTTP operations, or ask the operator to install MCP.",
    "server_error": "Internal error; the server's log has the details under the request id.",
}
"""Codes of the HTTP layer, which have no error class."""
