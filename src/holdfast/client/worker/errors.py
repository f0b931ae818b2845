"""Exceptions by which a task handler says how it failed."""

from __future__ import annotations

from typing import Any

from holdfast.client.errors import CancelRequested
from holdfast.operations.bounds import REASON, TASK_ERROR_CODE


class Retry(Exception):
    """Fail the attempt and retry it after `after` seconds; without `after`, the task's backoff decides."""

    def __init__(self, reason: str = "", *, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Permanent(Exception):
    """Fail the task for good: no more attempts, it becomes a dead letter at once."""


class PayloadMismatch(Permanent):
    """The payload is not of the type that the handler asked for; its handler was not called."""


class Asked(BaseException):
    """Ends the attempt of a handler that asked a person: its task waits for the answer.

    `except Exception` of a handler does not catch it.
    """


def is_failure(error: BaseException) -> bool:
    """Whether an exception fails the attempt. A handler that was stopped has not failed: its task is released."""
    return isinstance(error, Exception) and not isinstance(error, CancelRequested)


def failure(error: BaseException) -> dict[str, Any]:
    """Fields of `fail_task` for an exception. The error code is its class, so that failures can be grouped by it."""
    fields: dict[str, Any] = {
        "reason": (str(error) or type(error).__name__).replace("\0", "")[: REASON.most],
        "error_code": type(error).__name__[: TASK_ERROR_CODE.most],
    }
    if isinstance(error, Permanent):
        fields["permanent"] = True
    if isinstance(error, Retry) and error.after is not None:
        fields["retry_after_seconds"] = round(error.after)
    return fields
