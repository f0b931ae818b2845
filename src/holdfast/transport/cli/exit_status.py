"""Exit statuses: what a script needs to know to decide what to do next."""

from __future__ import annotations

from typing import Any

OK, HELD, USAGE, MISSING, DENIED, STALE, LIMITED, UNREACHABLE = range(8)

MEANINGS = {
    OK: "done",
    HELD: "somebody else has it, or the time to wait is over (-E changes it)",
    USAGE: "wrong usage, or the server found the request wrong",
    MISSING: "no such thing, or nothing to do",
    DENIED: "no key, a wrong one, or one that may not do this",
    STALE: "your lease or cursor is over, or the thing is in another state",
    LIMITED: "a rate, a quota or a plan is used up",
    UNREACHABLE: "no server, or one that cannot answer now",
}

_BY_CODE = {
    "task_currently_claimed": HELD,
    "not_yet_claimable": HELD,
    "session_taken": HELD,
    "session_busy": HELD,
    "conflict": HELD,
    "not_held": MISSING,
    "lease_not_current": STALE,
    "capacity_exceeded": LIMITED,
    "lock_limit_exceeded": LIMITED,
    "idempotency_conflict": USAGE,
}
_BY_STATUS = {401: DENIED, 402: LIMITED, 403: DENIED, 404: MISSING, 409: STALE, 410: STALE, 429: LIMITED}
_SERVER_ERROR = 500


def of_error(code: str, status: int | None) -> int:
    """The exit status of a refusal, by its code where that says more than its HTTP status; or of no answer at all."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status is None:
        return UNREACHABLE
    return _BY_STATUS.get(status, UNREACHABLE if status >= _SERVER_ERROR else USAGE)


def of_claim(answer: dict[str, Any], held: int | None) -> int:
    """The exit status of a claim that was answered, but perhaps not granted."""
    if answer.get("status") == "held" or answer.get("message") == "busy":
        return HELD if held is None else held
    return MISSING if answer.get("message") == "no_tasks" else OK
