"""Every action code and every error code of the API, with its meaning."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import errors
from holdfast.core.errors import HoldfastError
from holdfast.operations.table import OPERATIONS
from holdfast.transport.advice import tasks as task_advice

ACTIONS = {operation.name: operation.summary for operation in OPERATIONS} | {
    "authenticate": "Send `Authorization: Bearer <key>`; registering makes a key.",
    "check_billing_status": "See the plan, what is used of it and when it ends.",
    "check_status": "Look at the present state before doing anything again.",
    "download_artifact": "Fetch what the task made, where it was stored.",
    "fix_request": "Mend what the answer names, then send it again.",
    "renew_plan": "Somebody has to pay for the plan again.",
    "resume_session": "Open the session again by its name and secret.",
    "retry_after_wait": "Send the same request again, so many seconds later.",
    "retry_checkout": "Begin the payment again.",
    "stop_work": "What you held is not yours any more: publish nothing of it.",
    "upgrade_plan": "Somebody has to pay for a larger plan.",
    "verify_payment": "Tell the server that the payment was approved.",
}
"""Every code that `next_actions` may contain. A code with the name of an operation means that operation."""


class ErrorCode(msgspec.Struct, frozen=True):
    """One error code."""

    code: str
    meaning: str
    retryable: bool
    actions: list[str]


def error_codes() -> list[ErrorCode]:
    """Every error code, with the actions that its agent_contract advises."""
    codes = {code: ErrorCode(code, meaning, *_advice(code)) for code, meaning in _HTTP_LAYER_CODES.items()}
    for kind in _subclasses(HoldfastError):
        if kind.code not in codes and kind.hint:
            codes[kind.code] = ErrorCode(kind.code, kind.hint, *_advice(kind.code))
    return [codes[code] for code in sorted(codes)]


def _advice(code: str) -> tuple[bool, list[str]]:
    contract = task_advice.for_error(code)
    return contract["retryable"], [step["action"] for step in contract["next_actions"]]


def _subclasses(root: type[HoldfastError]) -> list[type[Any]]:
    return [root, *(kind for child in root.__subclasses__() for kind in _subclasses(child))]


_HTTP_LAYER_CODES = {
    "wrong_method": "This path answers other methods.",
    "method_not_allowed": "This path answers other methods.",
    "unsupported_media_type": "The body must be application/json.",
    "not_found": errors.Missing.hint,
    "server_error": "Something went wrong on the server's side.",
}
"""Codes of the HTTP layer, which have no error class."""
