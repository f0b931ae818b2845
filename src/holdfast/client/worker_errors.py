"""How work says that it went wrong: by the class of its exception."""

from __future__ import annotations

from typing import Any

from holdfast.client.errors import CancelRequested

MAX_REASON, MAX_CODE = 500, 100


class Retry(Exception):
    """Try again later. `after` is in seconds; without it the task's own backoff decides."""

    def __init__(self, reason: str = "", *, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Permanent(Exception):
    """It will never work: no more attempts, a dead letter at once."""


def is_failure(error: BaseException) -> bool:
    """Whether the attempt counts. Being stopped from outside does not: the task is handed back as it is."""
    return isinstance(error, Exception) and not isinstance(error, CancelRequested)


def failure(error: BaseException) -> dict[str, Any]:
    """What to tell the server of an exception. Its class is the error code, so that lists can be searched by it."""
    told: dict[str, Any] = {
        "reason": (str(error) or type(error).__name__).replace("\0", "")[:MAX_REASON],
        "error_code": type(error).__name__[:MAX_CODE],
    }
    if isinstance(error, Permanent):
        told["permanent"] = True
    if isinstance(error, Retry) and error.after is not None:
        told["retry_after_seconds"] = round(error.after)
    return told
