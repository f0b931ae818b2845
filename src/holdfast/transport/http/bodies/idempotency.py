"""Idempotency keys: each is bound to a hash of its request, so that only the same request gets the stored answer."""

from __future__ import annotations

import hashlib
import json

from holdfast.core.errors import Invalid
from holdfast.engine.command import Once
from holdfast.operations.bounds import IDEMPOTENCY_KEY
from holdfast.transport.http.bodies.parsing import field_error
from holdfast.transport.http.request import Render, Request

_HEADER = b"idempotency-key"
_NOT_BOUND = {"idempotencyKey", "idempotency_key", "wait_seconds"}
"""Fields that the key of a task request is not bound to: a request that is repeated may wait longer, or not at all."""


def read_idempotency_key(request: Request, raw: bytes, render: Render) -> Once | None:
    """The Idempotency-Key header of the Holdfast API, bound to caller, method, path and the bytes of the body."""
    key = request.headers.get(_HEADER)
    if key is None:
        return None
    if not _is_length_allowed(key) or not all(0x20 < byte < 0x7F for byte in key):
        message = f"Idempotency-Key must be {IDEMPOTENCY_KEY}, visible ASCII only"
        raise Invalid(message, [field_error("", "invalid_header", message)])
    # The caller is part of the hash: guessing another caller's key must not reveal that caller's lease.
    head = f"{request.by.id} {request.scope['method']} {request.scope['path']}\n".encode()
    return Once(key.decode(), hashlib.sha256(head + raw).hexdigest(), render)


def read_task_idempotency_key(
    request: Request, raw: bytes, render: Render, *, in_body: str | None = None, per_caller: bool = False
) -> Once | None:
    """The key of a task request, from the header or the body field, bound to method, path and canonical body.

    `per_caller`: the answer contains a lease id, so only the same caller may have it replayed.
    """
    header = request.headers.get(_HEADER)
    in_header = None if header is None else header.decode("latin-1")
    if in_header is not None and in_body is not None and in_header != in_body:
        raise _invalid("/idempotencyKey", "`idempotencyKey` and the header `Idempotency-Key` differ")
    key = in_body if in_header is None else in_header
    if key is None:
        return None
    head = f"{request.by.id if per_caller else ''} {request.scope['method']} {request.scope['path']}\n"
    return bind_task_key(key, head, raw, render)


def bind_task_key(key: str, head: str, raw: bytes, render: Render) -> Once:
    """Bind a key to `head` and to the body, whatever its whitespace and the order of its fields."""
    if not _is_length_allowed(key) or not all(" " <= character <= "~" for character in key):
        raise _invalid("/idempotencyKey", f"an idempotency key must be {IDEMPOTENCY_KEY}, printable ASCII only")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise _invalid("", "the body cannot be parsed as JSON") from None
    body = {name: value for name, value in body.items() if name not in _NOT_BOUND}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return Once(key, hashlib.sha256((head + canonical).encode()).hexdigest(), render)


def _is_length_allowed(key: str | bytes) -> bool:
    return IDEMPOTENCY_KEY.least <= len(key) <= IDEMPOTENCY_KEY.most


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(message, [field_error(pointer, "invalid", message)])
