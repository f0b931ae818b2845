"""Exit statuses, by which a script decides what to do next."""

from __future__ import annotations

from typing import Any

OK, HELD, USAGE, MISSING, DENIED, STALE, LIMITED, UNREACHABLE, DONE, NOT_ALLOWED = range(10)

MEANINGS = {
    OK: "success",
    HELD: "another holder has it, or the wait timed out (-E changes this status)",
    USAGE: "wrong usage, or the server found the request invalid",
    MISSING: "not found, or no task is ready",
    DENIED: "no key, a wrong key, or a key without the needed scope",
    STALE: "your lease is lost, your cursor is too old, or the state does not allow it",
    LIMITED: "a rate limit, a quota or the plan is exhausted",
    UNREACHABLE: "no server answered, or it cannot serve now",
    DONE: "the job is done already",
    NOT_ALLOWED: "`files check`, `guard`: another owner has claimed a file (-E changes this status)",
}

WORDS = ("ok", "held", "usage", "missing", "key", "lost", "limit", "unreachable", "done", "file claimed")
"""The same in a word or two, by number."""

_BY_CODE = {
    "task_currently_claimed": HELD,
    "not_yet_claimable": HELD,
    "session_taken": HELD,
    "session_live": HELD,
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
    """Exit status of a refused request: by its code if that is more exact than the HTTP status (None: no answer)."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status is None:
        return UNREACHABLE
    return _BY_STATUS.get(status, UNREACHABLE if status >= _SERVER_ERROR else USAGE)


def of_claim(answer: dict[str, Any], held: int) -> int:
    """Exit status of an answered claim; `held` if another holder has it."""
    if answer.get("status") == "held" or answer.get("message") == "busy":
        return held
    if answer.get("status") == "done":
        return DONE
    return MISSING if answer.get("message") == "no_tasks" else OK
