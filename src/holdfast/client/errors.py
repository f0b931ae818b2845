"""What can go wrong for a caller, in one tree.

HoldfastError
├── Invalid            the request itself is wrong; `errors` in `document` names each place
├── AuthError          no usable key
│   └── Forbidden      a good key that may not do this
├── PaymentRequired    the plan does not allow it; waiting does not help
├── NotFound           no such thing, or not yours
├── Conflict           the thing is in another state than you think
│   ├── LeaseLost      it was yours and is no longer, or that cannot be proved any more
│   ├── Held           somebody else has it; `owner` says who
│   ├── CursorTooOld   the log no longer has what comes next; `oldest` in `document` is what it has
│   └── CancelRequested  somebody asked whoever holds the task to stop
├── Limited            too much at once; `retry_after` says when to come back
├── ServerError        the server could not do it; `applied` says whether it was done
├── Unreachable        no server heard the request
└── OutcomeUnknown     the request was sent and its answer was lost: it may have happened
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]

_FIRST_OF_SERVERS = 500
"""Statuses from here on are the server's own trouble."""


class HoldfastError(Exception):
    """The root. `code` is for programs, `hint` is the next step, `document` the whole answer."""

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
        """The answer's status; None if there was no answer."""
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds after which the same request may succeed."""
        self.document: Document = document or {}

    @property
    def next_actions(self) -> list[Document]:
        """What the server advises, the recommended first."""
        actions: list[Document] = (self.document.get("agent_contract") or {}).get("next_actions") or []
        return sorted(actions, key=lambda action: not action.get("recommended"))

    @property
    def applied(self) -> str:
        """Whether a failed write was done: "no" is a promise, "unknown" is all that can be said."""
        refused = self.status is None or self.status < _FIRST_OF_SERVERS
        return str(self.document.get("applied", "no" if refused else "unknown"))

    def __str__(self) -> str:
        """The sentence, the code, and what to do."""
        return f"{self.message} ({self.code})" + (f". {self.hint}" if self.hint else "")


class Invalid(HoldfastError):
    """The request is wrong as it stands."""

    code = "invalid_request"


class AuthError(HoldfastError):
    """No usable key came with the request."""

    code = "missing_api_key"
    hint = "Pass `key`, or set HOLDFAST_API_KEY."


class Forbidden(AuthError):
    """The key is good, but may not do this."""

    code = "forbidden"


class PaymentRequired(HoldfastError):
    """The account's plan does not allow it."""

    code = "payment_required"


class NotFound(HoldfastError):
    """There is no such thing, or it belongs to somebody else."""

    code = "not_found"


class Conflict(HoldfastError):
    """The thing is in another state than the caller thinks."""

    code = "conflict"


class LeaseLost(Conflict):
    """It was yours and is no longer, or nobody can prove that it still is."""

    code = "lease_lost"
    hint = "Stop work on it. Claim again if the work still needs doing."


class Held(Conflict):
    """Somebody else has it."""

    code = "held"
    hint = "Take other work, or wait for it."

    @property
    def owner(self) -> str | None:
        """Who has it, as they call themselves."""
        leader = self.document.get("leader") or {}
        return self.document.get("owner") or self.document.get("heldBy") or leader.get("candidate_id")


class CancelRequested(Conflict):
    """Somebody asked for this task to be called off."""

    code = "cancel_requested"
    hint = "Stop, and hand the task back."


class CursorTooOld(Conflict):
    """Retention has removed what comes after the cursor: going on would skip it."""

    code = "cursor_too_old"
    hint = "Look at the present state, then follow from `oldest` on."


class Limited(HoldfastError):
    """Too much at once."""

    code = "rate_limited"
    hint = "Wait, then send the same request again."


class ServerError(HoldfastError):
    """The server could not do it."""

    code = "server_error"


class Unreachable(HoldfastError):
    """No server heard the request: nothing happened."""

    code = "unreachable"
    hint = "Check the address, and whether the server runs."


class OutcomeUnknown(HoldfastError):
    """The request was sent, and its answer was lost."""

    code = "outcome_unknown"
    hint = "It may have happened. Look at the present state before you repeat it."

    @property
    def applied(self) -> str:
        """Nobody knows."""
        return "unknown"


_LOST = ("lease_lost", "lease_expired", "lease_superseded", "lease_not_current", "lease_gone", "lease_mismatch")
_BY_CODE: dict[str, type[HoldfastError]] = {
    **dict.fromkeys(_LOST, LeaseLost),
    "task_currently_claimed": Held,
    "cursor_too_old": CursorTooOld,
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


def of_answer(status: int, document: Document, headers: Mapping[str, str]) -> HoldfastError:
    """The refusal that an answer tells, in whichever of the server's envelopes it came."""
    code = document.get("code") or document.get("error") or f"http_{status}"
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or (ServerError if status >= _FIRST_OF_SERVERS else Invalid)
    message = document.get("message") or document.get("detail") or document.get("error") or f"the answer was {status}"
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
    told = document.get("retry_after")
    return float(told) if isinstance(told, int | float) else None
