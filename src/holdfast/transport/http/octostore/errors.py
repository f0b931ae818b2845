"""OctoStore's error envelope: statuses, codes, labels and details as in the original, plus an agent_contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.core import errors
from holdfast.operations.table import HOLDER_OPERATIONS
from holdfast.transport.advice import sessions as session_advice
from holdfast.transport.advice.contract import (
    Contract,
    action,
    authenticate,
    check_state,
    contract,
    fix_request,
    retry_after,
    stop_work,
)
from holdfast.transport.http.request import Header, HttpRefusal, Request, Response, encode, json_response


class InvalidTtl(errors.Invalid):
    """`ttl_seconds` is out of range."""


class InvalidLockName(errors.Invalid):
    """The lock name does not match the allowed syntax."""


_INTERNAL = (500, "internal_error", "Internal server error")
_CODES: dict[type[Exception], tuple[int, str, str]] = {
    errors.UnknownKey: (401, "authentication_failed", "Authentication failed"),
    errors.Unauthenticated: (401, "authentication_required", "Authorization header required"),
    errors.Forbidden: (403, "forbidden", "Forbidden"),
    errors.InsecureTransport: (403, "insecure_transport", "Insecure transport"),
    errors.LockLimit: (403, "lock_limit_exceeded", "Lock limit exceeded"),
    errors.Invalid: (400, "invalid_input", "Invalid input"),
    InvalidTtl: (400, "invalid_ttl", "Invalid TTL"),
    InvalidLockName: (400, "invalid_lock_name", "Invalid lock name"),
    errors.LeaseMismatch: (400, "lease_not_current", "Lease is not current"),
    errors.LeaseGone: (404, "lease_not_current", "Lease is not current"),
    errors.SessionMissing: (404, "not_found", "Session not found"),
    errors.Missing: (404, "not_found", "Lock not found"),
    errors.WebhookMissing: (404, "not_found", "Resource not found"),
    errors.TooManyWebhooks: (400, "invalid_input", "Invalid input"),
    errors.SessionExpired: (410, "session_expired", "Session expired"),
    errors.Conflict: (409, "conflict", "Conflict"),
    errors.TooManyElections: (409, "capacity_exceeded", "Capacity exceeded"),
    errors.Limited: (429, "rate_limited", "Rate limit exceeded"),
    errors.Trouble: (503, "internal_error", "Internal server error"),
    errors.DamagedRow: _INTERNAL,
    errors.StoreFull: (507, "internal_error", "Internal server error"),
}


_DETAILS: dict[str, str] = {
    "authentication_required": "Bearer token required",
    "authentication_failed": "Authentication failed",
    "session_expired": "Session expired",
    "internal_error": "Internal server error",
}
_PREFIXED = {"forbidden", "invalid_ttl", "invalid_lock_name", "invalid_input", "conflict", "capacity_exceeded"}
_FRAMEWORK: dict[int, tuple[str, str, str]] = {
    404: ("Resource not found", "not_found", "Resource not found"),
    409: ("Conflict", "conflict", "Conflict"),
}
_UNPARSED = {400, 405, 413, 415, 422}


def render_error(request: Request, error: Exception) -> Response:
    """Render an error in OctoStore's envelope, without internal details of the store."""
    if isinstance(error, HttpRefusal):
        return _framework_error(request, error)
    status, code, label = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), _INTERNAL)
    message = error.message if isinstance(error, errors.HoldfastError) else label
    details = _DETAILS.get(code) or _details(code, label, message, error)
    document: dict[str, Any] = {"code": code, "details": details, "error": label, "request_id": request.request_id}
    headers: tuple[Header, ...] = ((b"www-authenticate", b"Bearer"),) if status == 401 else ()
    wait = getattr(error, "retry_after", None)
    if wait is not None and not isinstance(error, errors.LockLimit):
        headers = ((b"retry-after", str(wait).encode()),)
        if isinstance(error, errors.Limited):
            document["retry_after_ms"] = wait * 1000
    if isinstance(error, errors.Trouble):
        document["applied"] = error.applied
    document["agent_contract"] = next(advise for kinds, advise in _CONTRACTS if isinstance(error, kinds))(
        request, error
    )
    return json_response(status, dict(sorted(document.items())), headers)


def status_and_code(refusal: type[Exception] | int) -> tuple[int, str]:
    """Status and code of an error class, or of an HTTP status that the HTTP layer itself answers. For OpenAPI."""
    if isinstance(refusal, int):
        return refusal, "invalid_input"
    return next(_CODES[kind][:2] for kind in refusal.__mro__ if kind in _CODES)


def _details(code: str, label: str, message: str, error: Exception) -> str:
    if isinstance(error, errors.LeaseMismatch):
        return "Invalid lease ID"
    if isinstance(error, errors.LeaseGone | errors.SessionMissing):
        return label
    if isinstance(error, errors.Missing):
        return f"{label}: {message}"
    return f"{label}: {message}" if code in _PREFIXED else message


def _framework_error(request: Request, error: HttpRefusal) -> Response:
    if error.status in _UNPARSED:
        label, code, details = (
            "Invalid input",
            "invalid_input",
            "The request cannot be parsed, or this route does not support it.",
        )
    elif error.status >= 500:
        label, code, details = "Internal server error", "internal_error", "Internal server error"
    else:
        label, code, details = _FRAMEWORK.get(error.status, ("Request failed", "invalid_input", "Request failed"))
    document = {
        "agent_contract": fix_request(error.message),
        "code": code,
        "details": details,
        "error": label,
        "request_id": request.request_id,
    }
    return Response(error.status, encode(document), error.headers)


def _outcome_unknown(request: Request, error: errors.OutcomeUnknown) -> Contract:
    """Read the lock, session or election. What nobody can read, or a holder wrote, can be sent again."""
    operation = "" if request.operation is None else request.operation.name
    if operation in HOLDER_OPERATIONS or operation not in _READABLE:
        later = action("retry_after_wait", best=True, wait=error.retry_after, why="Repeating the request is safe.")
        return contract(later)
    return check_state("check_status", endpoint=("GET", _subject(request)))


_READABLE = {"acquire_lock", "set_lock_acl", "campaign", "create_lock_webhook"}
"""Operations after which their subject shows whether they took effect."""


_CONTRACTS: tuple[tuple[tuple[type[Exception], ...], Callable[[Request, Any], Contract]], ...] = (
    ((errors.OutcomeUnknown,), _outcome_unknown),
    (
        (errors.Trouble, errors.TooManyElections, errors.RateLimited),
        lambda _, error: retry_after(error.retry_after),
    ),
    ((errors.UnknownKey,), lambda *_: authenticate(retryable=False)),
    ((errors.Unauthenticated,), lambda *_: authenticate(retryable=True)),
    ((errors.LeaseGone, errors.LeaseMismatch), lambda request, _: _claim_again(request)),
    ((errors.SessionExpired, errors.SessionMissing), lambda *_: session_advice.octostore_ended()),
    (
        (errors.WebhookMissing, errors.TooManyWebhooks),
        lambda *_: check_state("list_lock_webhooks"),
    ),
    ((errors.Invalid,), lambda _, error: fix_request(error.message)),
    ((errors.HoldfastError,), lambda _, error: fix_request(error.hint or error.message)),
    ((Exception,), lambda *_: retry_after(5)),
)
"""The agent_contract for each class of error; the first row that matches counts."""


def _claim_again(request: Request) -> Contract:
    """Advice after a lost lease: stop, then campaign or acquire again."""
    if request.scope["path"].startswith("/elections/"):
        return stop_work("campaign", endpoint=("POST", f"{_subject(request)}/campaign"))
    return stop_work("acquire_lock", endpoint=("POST", f"{_subject(request)}/acquire"))


def _subject(request: Request) -> str:
    """The path of the lock, election or webhook in the request, without the verb."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return "/".join(raw.decode("latin-1").split("/")[:3])
