"""Errors that calls raise, as one tree.

HoldfastError
├── Invalid            the request is invalid; `errors` in `document` lists each field
├── AuthError          no valid key
│   └── Forbidden      the key lacks the needed scope
├── PaymentRequired    the plan does not allow it; retrying does not help
├── NotFound           it does not exist, or belongs to another account
├── Conflict           the current state does not allow it
│   ├── LeaseLost      you held it and no longer do, or that is no longer certain
│   ├── Held           another holder has it: `owner`, and for files `conflicts`
│   ├── Done           the work is done already: `result`
│   ├── CursorAhead    the log ends before the cursor: it is of another log
│   ├── CursorTooOld   the next events were removed; `oldest` in `document` is the first that is left
│   └── CancelRequested  cancellation of the held task was requested
├── Limited            a rate or quota is used up; `retry_after` says when to retry
├── ServerError        the server failed; `applied` says whether the write happened
├── Unreachable        no server received the request
├── WrongProcess       it belongs to the parent process, from before a fork
└── OutcomeUnknown     the request was sent and its answer lost: it may have been applied
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]

_SERVER_ERROR = 500
"""Statuses from here on are failures of the server."""


class HoldfastError(Exception):
    """Base of all errors: `code` is for programs, `hint` says what to do next, `document` is the whole answer."""

    code = "error"
    hint = ""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        document: Document | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.hint = hint or self.hint
        self.status = status
        """HTTP status of the answer; None if there was no answer."""
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds after which the same request may succeed."""
        self.document: Document = document or {}

    @property
    def next_actions(self) -> list[Document]:
        """Actions that the server advises, the recommended one first."""
        actions: list[Document] = (self.document.get("agent_contract") or {}).get("next_actions") or []
        return sorted(actions, key=lambda action: not action.get("recommended"))

    @property
    def applied(self) -> str:
        """Whether a failed write was applied: "no" is certain; otherwise "unknown"."""
        is_refused = self.status is None or self.status < _SERVER_ERROR
        return str(self.document.get("applied", "no" if is_refused else "unknown"))

    def __str__(self) -> str:
        """The message, the code and the hint."""
        return f"{self.message} ({self.code})" + (f". {self.hint}" if self.hint else "")


class Invalid(HoldfastError):
    """The request is invalid."""

    code = "invalid_request"


class AuthError(HoldfastError):
    """The request had no valid key."""

    code = "missing_api_key"
    hint = "Pass `key` or set HOLDFAST_API_KEY. `holdfast doctor` says which key is used; ask the operator for one."


class Forbidden(AuthError):
    """The key is valid but lacks the needed scope."""

    code = "forbidden"


class PaymentRequired(HoldfastError):
    """The account's plan does not allow it."""

    code = "payment_required"


class NotFound(HoldfastError):
    """It does not exist, or belongs to another account."""

    code = "not_found"


class Conflict(HoldfastError):
    """The current state does not allow the request."""

    code = "conflict"


class LeaseLost(Conflict):
    """The lease was yours and no longer is, or that is no longer certain."""

    code = "lease_lost"
    hint = "Stop work on it. Claim again if the work still needs doing."


class Held(Conflict):
    """Another holder has it."""

    code = "held"
    hint = "Take other work, or wait for it."

    @property
    def owner(self) -> str | None:
        """The holder, by the name it gave itself."""
        leader = self.document.get("leader") or {}
        first = self.conflicts[0] if self.conflicts else {}
        found: str | None = self.document.get("owner") or self.document.get("heldBy") or leader.get("candidate_id")
        return found or first.get("owner")

    @property
    def conflicts(self) -> list[Document]:
        """The conflicting reservations of a refused reservation; empty for anything else."""
        conflicts: list[Document] = self.document.get("conflicts") or []
        return conflicts


class Done(Conflict):
    """The work is done already."""

    code = "done"
    hint = "Use its result, or claim it with `again=True`."

    @property
    def result(self) -> Any:
        """What was left as the result."""
        return self.document.get("result")


class CancelRequested(Conflict):
    """Cancellation of the task was requested."""

    code = "cancel_requested"
    hint = "Stop work on it and release the task."


class CursorTooOld(Conflict):
    """Retention has removed the events after the cursor: continuing would skip them."""

    code = "cursor_too_old"
    hint = "Read the current state, then follow from `oldest`."


class CursorAhead(Conflict):
    """The log ends before the cursor: it is of another account, or of a store that was lost."""

    code = "cursor_ahead"
    hint = "Follow from 0, or from `last` for new events only."


class Limited(HoldfastError):
    """A rate limit or quota is used up."""

    code = "rate_limited"
    hint = "Wait, then send the same request again."


class ServerError(HoldfastError):
    """The server failed to handle the request."""

    code = "server_error"


class Unreachable(HoldfastError):
    """No server received the request: nothing was applied."""

    code = "unreachable"
    hint = "Check the address, and that the server is running."


class WrongProcess(HoldfastError):
    """It was opened by the parent process before a fork, and does not work in this child."""

    code = "forked"
    hint = "Open it again in the child process."


class OutcomeUnknown(HoldfastError):
    """The request was sent, but its answer was lost."""

    code = "outcome_unknown"
    hint = "It may have been applied. Read the current state before you repeat it."

    @property
    def applied(self) -> str:
        """Always "unknown"."""
        return "unknown"


_LOST = ("lease_lost", "lease_expired", "lease_superseded", "lease_not_current", "lease_gone", "lease_mismatch")
_BY_CODE: dict[str, type[HoldfastError]] = {
    **dict.fromkeys(_LOST, LeaseLost),
    "task_currently_claimed": Held,
    "cursor_too_old": CursorTooOld,
    "cursor_ahead": CursorAhead,
    "outcome_unknown": OutcomeUnknown,
    "lock_limit_exceeded": Limited,
    "capacity_exceeded": Limited,
}
_BY_STATUS: dict[int, type[HoldfastError]] = {
    401: AuthError,
    402: PaymentRequired,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Conflict,
    429: Limited,
}


def error_of(status: int, document: Document, headers: Mapping[str, str]) -> HoldfastError:
    """The error for a refused request, from any of the server's error formats."""
    code = document.get("code") or document.get("error") or f"http_{status}"
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or (ServerError if status >= _SERVER_ERROR else Invalid)
    said = (document.get(name) for name in ("message", "detail", "details", "error"))  # `details` is OctoStore's
    message = next((text for text in said if isinstance(text, str) and text), f"the answer was {status}")
    actions = (document.get("agent_contract") or {}).get("next_actions") or []
    hints = [action.get("description") or f"Next: {action['action']}." for action in actions if action["recommended"]]
    return kind(
        str(message),
        code=str(code),
        hint=hints[0] if hints else None,
        status=status,
        request_id=headers.get("x-request-id") or document.get("request_id"),
        retry_after=_retry_after(document, headers),
        document=document,
    )


def _retry_after(document: Document, headers: Mapping[str, str]) -> float | None:
    sent = headers.get("retry-after")
    if sent is not None and sent.isdigit():
        return float(sent)
    if isinstance(document.get("retry_after_ms"), int | float):
        return float(document["retry_after_ms"]) / 1000
    value = document.get("retry_after")
    return float(value) if isinstance(value, int | float) else None
