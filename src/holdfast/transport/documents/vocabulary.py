"""The words of the API: every action code and every error code, with what each means."""

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
"""Every code that may stand in `next_actions`. Those named like an operation are that operation."""


class ErrorWord(msgspec.Struct, frozen=True):
    """One error code."""

    code: str
    meaning: str
    retryable: bool
    actions: list[str]


def error_words() -> list[ErrorWord]:
    """Every code that a refusal may carry, and what its contract advises."""
    words = {code: ErrorWord(code, meaning, *_advice(code)) for code, meaning in _DOOR_WORDS.items()}
    for kind in _tree(HoldfastError):
        if kind.code not in words and kind.hint:
            words[kind.code] = ErrorWord(kind.code, kind.hint, *_advice(kind.code))
    return [words[code] for code in sorted(words)]


def _advice(code: str) -> tuple[bool, list[str]]:
    contract = task_advice.for_error(code)
    return contract["retryable"], [step["action"] for step in contract["next_actions"]]


def _tree(root: type[HoldfastError]) -> list[type[Any]]:
    return [root, *(kind for child in root.__subclasses__() for kind in _tree(child))]


_DOOR_WORDS = {
    "wrong_method": "This path answers other methods.",
    "method_not_allowed": "This path answers other methods.",
    "unsupported_media_type": "The body must be application/json.",
    "not_found": errors.Missing.hint,
    "server_error": "Something went wrong on the server's side.",
}
"""What the door itself says, before any rule is asked."""
