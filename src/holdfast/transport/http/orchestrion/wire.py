"""Orchestrion's wire: its error envelope, its idempotency, how a task is shown."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from holdfast.core import errors
from holdfast.core import task as tasks
from holdfast.core.errors import Invalid
from holdfast.core.row import SECOND, Instant
from holdfast.core.task import Task
from holdfast.engine.command import Once
from holdfast.engine.verbs.tasks.queueing import Taken
from holdfast.transport.advice import tasks as task_advice
from holdfast.transport.advice.contract import Contract
from holdfast.transport.http.request import Header, HttpRefusal, Render, Request, Response, encode, raw_json
from holdfast.transport.times import milliseconds, milliseconds_or_none

MAX_KEY = 255
REGISTER_PATH = "/v1/keys/register"

# -- tasks -------------------------------------------------------------------------------------------------------


def task_document(task: Task, now: Instant, contract: Contract | None = None) -> dict[str, Any]:
    """A task as its users see it. What it was never given is left out, except what every client expects."""
    document: dict[str, Any] = {
        "id": task.id,
        "type": task.type,
        "status": task.state,
        "payload": msgspec.Raw(task.payload.encode()),
        "result": raw_json(task.result),
        "priority": task.priority,
        "maxAttempts": task.max_attempts,
        "attemptCount": task.attempt_count,
        "scheduledAt": milliseconds_or_none(task.scheduled_at),
        "leaseDurationSeconds": task.lease_duration // SECOND,
        "leaseExpiresAt": milliseconds_or_none(task.expires_at),
        "createdAt": milliseconds(task.created_at),
        "updatedAt": milliseconds(task.changed_at),
        "failureReason": task.failure_reason,
        "outputId": task.output_id,
        "claimedBy": task.worker,
    }
    if task.state == tasks.CLAIMED:
        document["cancelRequested"] = task.cancel_requested
    cancelled = task.cancel_requested or task.state == tasks.CANCELLED
    more = (
        ("uniqueKey", task.unique_key),
        ("tag", task.tag),
        ("createdBy", task.created_by),
        ("reviewedBy", task.reviewed_by),
        ("source", task.source),
        ("backoff", raw_json(task.backoff)),
        ("sessionId", task.session),
        ("deadLetterCause", task.dead_cause),
        ("resolvedAt", milliseconds_or_none(task.resolved_at)),
        ("cancelReason", task.cancel_reason if cancelled else None),
        ("note", task.note),
        ("progress", raw_json(task.progress)),
        ("checkpoint", raw_json(task.checkpoint)),
    )
    document |= {name: value for name, value in more if value is not None}
    if task.ended is not None:
        document["previousAttempt"] = _previous(task)
    if contract is None:
        contract = task_advice.of_task(task, now)
    if contract:
        document["agent_contract"] = contract
    return document


def taken_document(taken: Taken, now: Instant, contract: Contract | None = None) -> dict[str, Any]:
    """A task for whoever just claimed it: with the lease id, and what the last attempt left."""
    document = task_document(taken.task, now, contract)
    document["leaseId"] = taken.lease_id
    document["fencingToken"] = taken.task.token
    document["attempt"] = taken.task.attempt
    document.setdefault("previousAttempt", None)
    if taken.task.traceparent is not None:
        document["traceparent"] = taken.task.traceparent
    return document


def _previous(task: Task) -> dict[str, Any] | None:
    story = tasks.last_attempt(task)
    if story is None:
        return None
    return {
        "worker": story.worker,
        "endedAt": milliseconds(story.at),
        "outcome": story.outcome,
        "reason": story.reason,
        "errorCode": story.code,
        "checkpoint": raw_json(task.ended_checkpoint),
        "note": story.note,
        "attempt": story.attempt,
        "contextFrom": story.context_from,
    }


# -- idempotency -------------------------------------------------------------------------------------------------


def once(request: Request, raw: bytes, render: Render, *, in_body: str | None = None, own: bool = False) -> Once | None:
    """The Idempotency-Key of header or body, bound to the request.

    `own`: its answer proves something, so only the same caller may hear it again.
    """
    header = request.headers.get(b"idempotency-key")
    in_header = None if header is None else header.decode("latin-1")
    if in_header is not None and in_body is not None and in_header != in_body:
        raise _invalid("/idempotencyKey", "`idempotencyKey` and the header `Idempotency-Key` differ")
    key = in_body if in_header is None else in_header
    if key is None:
        return None
    head = f"{request.by.id if own else ''} {request.scope['method']} {request.scope['path']}\n"
    return once_for(key, head, raw, render)


def once_for(key: str, head: str, raw: bytes, render: Render) -> Once:
    """An Idempotency-Key, bound to what was asked for: however the JSON was laid out."""
    if not 1 <= len(key) <= MAX_KEY or not all(" " <= character <= "~" for character in key):
        raise _invalid("/idempotencyKey", f"an idempotency key is 1 to {MAX_KEY} printable ASCII characters")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise _invalid("", "the body is not JSON that can be repeated") from None
    body = {name: value for name, value in body.items() if name not in {"idempotencyKey", "idempotency_key"}}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return Once(key, hashlib.sha256((head + canonical).encode()).hexdigest(), render)


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(message, [{"pointer": pointer, "code": "invalid", "message": message}])


# -- errors ------------------------------------------------------------------------------------------------------

_STATUS: dict[type[Exception], int] = {
    errors.Invalid: 400,
    errors.Unauthenticated: 401,
    errors.PaymentRequired: 402,
    errors.Forbidden: 403,
    errors.Missing: 404,
    errors.SessionExpired: 410,
    errors.Conflict: 409,
    errors.Limited: 429,
    errors.StoreFull: 507,
    errors.ValueRefused: 400,
    errors.Trouble: 503,
}
_TIMES = {"ended_at", "held_since", "expires_at"}
_SPELLED = {"held_by": "heldBy", "held_since": "heldSince", "expires_at": "leaseExpiresAt", "ended_at": "endedAt"}


def render_error(request: Request, error: Exception) -> Response:
    """The flat envelope. What the store says about itself never leaks into it."""
    status, document = describe(request, error)
    headers: list[Header] = [*error.headers] if isinstance(error, HttpRefusal) else []
    wait = getattr(error, "retry_after", None)
    if wait is not None:
        headers.append((b"retry-after", str(wait).encode()))
    if status == 401:  # noqa: PLR2004 - HTTP's own number
        headers.append((b"www-authenticate", b"Bearer"))
    return Response(status, encode(document), tuple(headers))


def describe(request: Request, error: Exception, task_id: str | None = None) -> tuple[int, dict[str, Any]]:
    """(status, body) of a refusal."""
    status = _status(error)
    code, message = _words(request, error, status)
    document: dict[str, Any] = {"error": code, "message": message, "request_id": request.request_id}
    if isinstance(error, Invalid) and error.errors:
        document["errors"] = error.errors
    if isinstance(error, errors.HoldfastError):
        for name, value in error.facts.items():
            shown = milliseconds(value) if name in _TIMES and value is not None else value
            document[_SPELLED.get(name, name)] = shown
    if isinstance(error, errors.Trouble):
        document["applied"] = error.applied
    task_id = task_id or request.parameter or None
    billing = error.billing if isinstance(error, errors.MaxWorkersReached) else None
    document["agent_contract"] = task_advice.of_error(code, task_id, getattr(error, "retry_after", None), billing)
    return status, document


def told(refusal: type[Exception] | int) -> tuple[int, str]:
    """Status and code of a kind of refusal; a number is what the door itself says. For the document of the API."""
    if isinstance(refusal, int) or issubclass(refusal, errors.TooLarge):
        return 400, errors.Invalid.code
    return next(_STATUS[kind] for kind in refusal.__mro__ if kind in _STATUS), getattr(refusal, "code", "")


def _status(error: Exception) -> int:
    if isinstance(error, HttpRefusal):
        return 400 if error.status in {413, 415} else error.status
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


def _words(request: Request, error: Exception, status: int) -> tuple[str, str]:
    if isinstance(error, HttpRefusal):
        # Only on the way to a key does the original's code lead anywhere: it recommends to register.
        wrong = "wrong_method" if request.scope["path"] == REGISTER_PATH else "method_not_allowed"
        return {404: "not_found", 405: wrong}.get(status, "invalid_request"), error.message
    if isinstance(error, errors.TooLarge):
        return errors.Invalid.code, error.message
    if isinstance(error, errors.Trouble):
        return error.code, error.hint
    if isinstance(error, errors.HoldfastError):
        return error.code, error.message
    return "server_error", "Something went wrong on our side; it is in the server's log under this request id."
