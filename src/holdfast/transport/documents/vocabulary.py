"""Every action code and every error code of the API, with its meaning."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import errors
from holdfast.core.errors import HoldfastError
from holdfast.operations.table import OPERATIONS
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.advice.contract import WITHOUT_KEY

ACTIONS = {operation.name: operation.summary for operation in OPERATIONS} | {
    "authenticate": f"Send `Authorization: Bearer <key>`. {WITHOUT_KEY}",
    "check_billing_status": "Read your plan, its limits and your usage.",
    "check_status": "Read the present state before you repeat the request.",
    "download_artifact": "Fetch the task's output from where it was stored.",
    "fix_request": "Fix the fields listed in `errors`, then send it again.",
    "renew_plan": "A person must pay for the plan again.",
    "resume_session": "Resume the session by its name and secret.",
    "retry_after_wait": "Send the same request again after `retry_after_seconds`.",
    "retry_checkout": "Start the payment again.",
    "stop_work": "You no longer hold it: stop and publish nothing.",
    "upgrade_plan": "A person must pay for a larger plan.",
    "verify_payment": "Report that the payment was approved.",
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
    "wrong_method": "Use one of the methods in the `Allow` header.",
    "method_not_allowed": "Use one of the methods in the `Allow` header.",
    "unsupported_media_type": "The body must be application/json.",
    "not_found": errors.Missing.hint,
    "server_error": "Internal error; the server's log has the details under the request id.",
}
"""Codes of the HTTP layer, which have no error class."""
