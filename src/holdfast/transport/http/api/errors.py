"""Errors of the Holdfast API as RFC 9457 problem documents, each with an agent_contract."""

from __future__ import annotations

from typing import Any

from holdfast.core import errors
from holdfast.transport.advice.contract import Contract
from holdfast.transport.advice.refusals import Refusal, for_refusal
from holdfast.transport.http.request import Header, HttpRefusal, Request, Response, encode
from holdfast.transport.times import rfc3339

TYPE_PREFIX = "urn:holdfast:problem:"
QUOTA_TYPE = "https://iana.org/assignments/http-problem-types#quota-exceeded"
SERVER_ERROR = "server_error"
SERVER_ERROR_MESSAGE = "Internal error; the server's log has the details under this request id."

STATUS: dict[type[Exception], int] = {
    errors.TooLarge: 413,
    errors.Invalid: 400,
    errors.Unauthenticated: 401,
    errors.PaymentRequired: 402,
    errors.Forbidden: 403,
    errors.Missing: 404,
    errors.SessionExpired: 410,
    errors.CursorTooOld: 410,
    errors.IdempotencyConflict: 422,
    errors.Conflict: 409,
    errors.Limited: 429,
    errors.StoreFull: 507,
    errors.ValueRefused: 400,
    errors.DamagedRow: 500,
    errors.Trouble: 503,
}
"""HTTP status of each error class; a class without an entry has its parent's."""
_TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    402: "Not in the plan",
    403: "Not allowed",
    404: "Not found",
    405: "Wrong method",
    408: "Request timeout",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    415: "Not JSON",
    422: "Idempotency key used for another request",
    429: "Too many requests",
    500: "Internal error",
    501: "Not installed",
    503: "Temporarily unavailable",
    507: "Disk full",
}
HTTP_CODES = {
    404: "not_found",
    405: "wrong_method",
    413: "too_large",
    415: "unsupported_media_type",
    501: "not_installed",
}
"""Codes of refusals by the HTTP layer itself (routing, body size, media type); others are `invalid_request`."""
TIME_FACTS = {"ended_at", "held_since", "expires_at"}
"""Facts of an error that are times."""


def render_error(request: Request, error: Exception) -> Response:
    """Render an error as a problem document, without internal details of the store."""
    status = status_of(error)
    code, message = code_and_message(error, status)
    document: dict[str, Any] = {
        "type": QUOTA_TYPE if isinstance(error, errors.RateLimited) else TYPE_PREFIX + code,
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "detail": message,
        "instance": f"{TYPE_PREFIX}request:{request.request_id}",
        "error": code,
        "message": message,
        "request_id": request.request_id,
        **error_facts(error),
    }
    headers: list[Header] = [*error.headers] if isinstance(error, HttpRefusal) else []
    wait = getattr(error, "retry_after", None)
    if wait is not None:
        document["retry_after"] = wait
        headers.append((b"retry-after", str(wait).encode()))
    if isinstance(error, errors.Trouble):
        document["applied"] = error.applied
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    elif isinstance(error, errors.Forbidden) and "scope" in error.facts:
        headers.append((b"www-authenticate", b'Bearer error="insufficient_scope"'))
    document["agent_contract"] = own_contract(request, error, code)
    return Response(status, encode(document), tuple(headers), b"application/problem+json")


def error_facts(error: Exception) -> dict[str, Any]:
    """What an error says beyond its code and message: the invalid fields, or who holds it now and since when."""
    facts: dict[str, Any] = {}
    if isinstance(error, errors.Invalid) and error.errors:
        facts["errors"] = error.errors
    if isinstance(error, errors.HoldfastError):
        facts |= {
            name: rfc3339(value) if name in TIME_FACTS and value is not None else value
            for name, value in error.facts.items()
        }
    return facts


def status_and_code(refusal: type[Exception] | int) -> tuple[int, str]:
    """Status and code of an error class, or of an HTTP status that the HTTP layer itself answers. For OpenAPI."""
    if isinstance(refusal, int):
        return refusal, HTTP_CODES.get(refusal, "invalid_request")
    return next(STATUS[kind] for kind in refusal.__mro__ if kind in STATUS), getattr(refusal, "code", "")


def status_of(error: Exception) -> int:
    """The HTTP status of an error; 500 for anything unexpected."""
    if isinstance(error, HttpRefusal):
        return error.status
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def code_and_message(error: Exception, status: int) -> tuple[str, str]:
    """The error's code and message. Messages of the store are replaced by the hint: they may contain internals."""
    if isinstance(error, HttpRefusal):
        return HTTP_CODES.get(status, "invalid_request"), error.message
    if isinstance(error, errors.Trouble):
        return error.code, error.hint
    if isinstance(error, errors.HoldfastError):
        return error.code, error.message
    return SERVER_ERROR, SERVER_ERROR_MESSAGE


def own_contract(request: Request, error: Exception, code: str, task_id: str | None = None) -> Contract:
    """The advice for a refusal, where no other API fixes it."""
    return for_refusal(
        Refusal(
            code=code,
            operation="" if request.operation is None else request.operation.name,
            subject=task_id or request.parameter,
            request_id=request.request_id,
            wait=getattr(error, "retry_after", None),
            hint=_hint(error),
            facts=error.facts if isinstance(error, errors.HoldfastError) else {},
            billing=error.billing if isinstance(error, errors.MaxWorkersReached) else None,
        )
    )


def _hint(error: Exception) -> str:
    """What to do, in words; the message itself where it says what is wrong and no field does."""
    if isinstance(error, HttpRefusal):
        return f"{error.message}. `GET /` lists every operation." if error.status == 404 else error.message
    if isinstance(error, errors.Invalid) and not error.errors:
        return error.message
    return error.hint if isinstance(error, errors.HoldfastError) else ""
