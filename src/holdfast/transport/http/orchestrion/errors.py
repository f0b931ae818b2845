"""Orchestrion's flat error envelope, with an agent_contract."""

from __future__ import annotations

from typing import Any

from holdfast.core import errors
from holdfast.transport.advice import orchestrion
from holdfast.transport.advice.contract import Contract
from holdfast.transport.http.api.errors import STATUS, TIME_FACTS, code_and_message, own_contract
from holdfast.transport.http.request import Header, HttpRefusal, Request, Response, encode
from holdfast.transport.times import milliseconds

REGISTER_PATH = "/v1/keys/register"
WRONG_METHOD = "wrong_method"

_OWN_STATUS = {errors.TooLarge, errors.IdempotencyConflict}
_STATUS = {kind: status for kind, status in STATUS.items() if kind not in _OWN_STATUS}
"""The statuses of the Holdfast API, but Orchestrion knows no 413 and 422."""
_HTTP_CODES = {404: "not_found", 405: "method_not_allowed"}
_FACT_NAMES = {"held_by": "heldBy", "held_since": "heldSince", "expires_at": "leaseExpiresAt", "ended_at": "endedAt"}


def render_error(request: Request, error: Exception) -> Response:
    """Render an error in the flat envelope, without internal details of the store."""
    status, document = error_document(request, error)
    headers: list[Header] = [*error.headers] if isinstance(error, HttpRefusal) else []
    wait = getattr(error, "retry_after", None)
    if wait is not None:
        headers.append((b"retry-after", str(wait).encode()))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return Response(status, encode(document), tuple(headers))


def error_document(request: Request, error: Exception, task_id: str | None = None) -> tuple[int, dict[str, Any]]:
    """(status, body) of an error."""
    status = _status(error)
    code, message = _code_and_message(request, error, status)
    document: dict[str, Any] = {"error": code, "message": message, "request_id": request.request_id}
    if isinstance(error, errors.Invalid) and error.errors:
        document["errors"] = error.errors
    if isinstance(error, errors.HoldfastError):
        for name, value in error.facts.items():
            rendered = milliseconds(value) if name in TIME_FACTS and value is not None else value
            document[_FACT_NAMES.get(name, name)] = rendered
    if isinstance(error, errors.Trouble):
        document["applied"] = error.applied
    task_id = task_id or request.parameter or None
    document["agent_contract"] = _contract(request, error, code, task_id)
    return status, document


def _contract(request: Request, error: Exception, code: str, task_id: str | None) -> Contract:
    """The advice that Orchestrion's clients rely on, else ours."""
    billing = error.billing if isinstance(error, errors.MaxWorkersReached) else None
    operation = "" if request.operation is None else request.operation.name
    if code == WRONG_METHOD:
        operation = "register"
    wait = getattr(error, "retry_after", None)
    fixed = orchestrion.for_error(code, task_id, wait, billing, operation=operation, can_register=request.can_register)
    return own_contract(request, error, code, task_id) if fixed is None else fixed


def status_and_code(refusal: type[Exception] | int) -> tuple[int, str]:
    """Status and code of an error class, or of an HTTP status that the HTTP layer itself answers. For OpenAPI."""
    if isinstance(refusal, int) or issubclass(refusal, errors.TooLarge):
        return 400, errors.Invalid.code
    return next(_STATUS[kind] for kind in refusal.__mro__ if kind in _STATUS), getattr(refusal, "code", "")


def _status(error: Exception) -> int:
    if isinstance(error, HttpRefusal):
        return 400 if error.status in {413, 415} else error.status
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


def _code_and_message(request: Request, error: Exception, status: int) -> tuple[str, str]:
    if isinstance(error, HttpRefusal):
        if status == 405 and request.scope["path"] == REGISTER_PATH:
            # Only here does the original answer another code, whose advice is to register.
            return WRONG_METHOD, error.message
        return _HTTP_CODES.get(status, "invalid_request"), error.message
    if isinstance(error, errors.TooLarge):
        return errors.Invalid.code, error.message
    return code_and_message(error, status)
