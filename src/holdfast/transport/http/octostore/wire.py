"""OctoStore's wire: its bodies, its error envelope, its names for things."""

from __future__ import annotations

import hashlib
import re
import types
import typing
import uuid
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from holdfast.core import errors
from holdfast.core.lease import Lease
from holdfast.core.row import Instant
from holdfast.transport.advice import contract as contracts
from holdfast.transport.advice.contract import Contract
from holdfast.transport.http.request import (
    OCTOSTORE_BODY_LIMIT,
    Header,
    HttpRefusal,
    Request,
    Response,
    encode,
    json_response,
)

METADATA_LIMIT = 1024
U32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]

B = TypeVar("B", bound=msgspec.Struct)

_UUID = re.compile(
    r"(?:[0-9a-f]{32}|(?P<open>\{)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?(open)\})"
    r"|urn:uuid:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")

# -- bodies ------------------------------------------------------------------------------------------------------


async def read_body(request: Request, shape: type[B]) -> B:
    """A JSON body. It is read before anybody is asked for a key: 415, 413, 400 and 422 come before 401."""
    kind = request.headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower()
    if kind != b"application/json" and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
        raise HttpRefusal(415, "the body must be application/json")
    return parse(await request.body(OCTOSTORE_BODY_LIMIT), shape)


def parse(raw: bytes, shape: type[B]) -> B:
    """Decode with the strictness and the leniency of the original."""
    try:
        try:
            body = msgspec.json.decode(raw, type=shape)
        except msgspec.ValidationError:
            body = _struct_of(msgspec.json.decode(raw), shape)
        _check_doubles(raw, shape)
    except msgspec.ValidationError as error:
        raise HttpRefusal(422, str(error)) from None
    except msgspec.DecodeError as error:
        # Bytes after the first complete value are not looked at.
        trailing = _TRAILING.search(str(error))
        if trailing and int(trailing[1]):
            return parse(raw[: _end_of_value(raw, int(trailing[1]))], shape)
        raise HttpRefusal(400, str(error)) from None
    except (ValueError, RecursionError):
        raise HttpRefusal(400, "the body is not JSON") from None
    return body


def _end_of_value(raw: bytes, reported: int) -> int:
    """Where the first value ends: the reported byte, or just before it if that belongs to the rest."""
    for end in (reported, reported - 1):
        try:
            msgspec.json.decode(raw[:end])
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        return end
    raise HttpRefusal(400, "the body is not JSON")


def _struct_of(value: Any, shape: type[B]) -> B:
    """Where an object is wanted, on any level, an array with one element per field, in order, stands for it."""
    fields = msgspec.structs.fields(shape)
    if isinstance(value, list) and len(value) == len(fields):
        value = {field.encode_name: element for field, element in zip(fields, value, strict=True)}
    if not isinstance(value, dict):
        raise msgspec.ValidationError("Expected `object`")
    for field in fields:
        inner = next(
            (kind for kind in _choices(field.type) if isinstance(kind, type) and issubclass(kind, msgspec.Struct)), None
        )
        if inner is not None and isinstance(value.get(field.encode_name), list):
            value[field.encode_name] = msgspec.to_builtins(_struct_of(value[field.encode_name], inner))
    return msgspec.convert(value, type=shape)


def _choices(kind: Any) -> tuple[Any, ...]:
    return (
        typing.get_args(kind)
        if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union
        else (kind,)
    )


def _check_doubles(raw: bytes, shape: type[msgspec.Struct]) -> None:
    """A known field that comes twice is refused; the cheap look first, the sure one only if it must be."""
    names = [*shape.__struct_fields__, "acquire"]
    if all(raw.count(b'"%b"' % name.encode()) < 2 for name in names) and b"\\u" not in raw:  # noqa: PLR2004 - twice
        return
    import json  # noqa: PLC0415 - rarely needed

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs if key in names]
        if len(keys) != len(set(keys)):
            raise msgspec.ValidationError("a field is repeated")
        return dict(pairs)

    json.loads(raw, object_pairs_hook=check)


def parse_uuid(text: str) -> str | None:
    """Any spelling of a UUID in its one shown form, or None."""
    return str(uuid.UUID(text)) if _UUID.fullmatch(text) else None


def path_uuid(text: str) -> str:
    """An id in a path: anything that is no UUID is refused before anybody is asked for a key."""
    found = parse_uuid(text)
    if found is None:
        raise HttpRefusal(400, "the id in the path is no UUID")
    return found


def body_uuid(text: str) -> str:
    """An id in a body."""
    found = parse_uuid(text)
    if found is None:
        raise HttpRefusal(422, "not a UUID")
    return found


# -- shown values ------------------------------------------------------------------------------------------------


def pseudonym(holder: str) -> str:
    """What is shown instead of a holder's id: stable, and of no use for anything else."""
    raw = uuid.UUID(holder).bytes
    digest = bytearray(hashlib.sha256(b"octostore.public-lock-holder.v1\0" + raw).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    if bytes(digest) == raw:
        digest[0] ^= 1
    return str(uuid.UUID(bytes=bytes(digest)))


def shown_metadata(lease: Lease) -> str | None:
    """Metadata as this API knows it: a string. A job's object is shown as JSON text, cut to size."""
    if lease.metadata is None:
        return None
    value = msgspec.json.decode(lease.metadata)
    return value if isinstance(value, str) else lease.metadata[:METADATA_LIMIT]


def milliseconds_left(until: Instant | None, now: Instant) -> int:
    """Whole milliseconds until then, never below zero."""
    return max((until or now) - now, 0) // 1000


# -- errors ------------------------------------------------------------------------------------------------------

_INTERNAL = (500, "internal_error", "Internal server error")
_CODES: dict[type[Exception], tuple[int, str, str]] = {
    errors.UnknownKey: (401, "authentication_failed", "Authentication failed"),
    errors.Unauthenticated: (401, "authentication_required", "Authorization header required"),
    errors.Forbidden: (403, "forbidden", "Forbidden"),
    errors.InsecureTransport: (403, "insecure_transport", "Insecure transport"),
    errors.LockLimit: (403, "lock_limit_exceeded", "Lock limit exceeded"),
    errors.Invalid: (400, "invalid_input", "Invalid input"),
    errors.LeaseMismatch: (400, "lease_not_current", "Lease is not current"),
    errors.LeaseGone: (404, "lease_not_current", "Lease is not current"),
    errors.SessionMissing: (404, "not_found", "Session not found"),
    errors.Missing: (404, "not_found", "Lock not found"),
    errors.WebhookMissing: (404, "not_found", "Resource not found"),
    errors.TooManyWebhooks: (400, "invalid_input", "Invalid input"),
    errors.SessionExpired: (410, "session_expired", "Session expired"),
    errors.Conflict: (409, "conflict", "Conflict"),
    errors.RoomsFull: (409, "capacity_exceeded", "Capacity exceeded"),
    errors.Limited: (429, "rate_limited", "Rate limit exceeded"),
    errors.Trouble: (503, "internal_error", "Internal server error"),
    errors.StoreFull: (507, "internal_error", "Internal server error"),
}


class InvalidTtl(errors.Invalid):
    """A time to live out of its range."""


class InvalidLockName(errors.Invalid):
    """A name outside the grammar."""


_CODES[InvalidTtl] = (400, "invalid_ttl", "Invalid TTL")
_CODES[InvalidLockName] = (400, "invalid_lock_name", "Invalid lock name")

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
    """OctoStore's envelope. Diagnostics of the store never leak into it."""
    if isinstance(error, HttpRefusal):
        return _framework_error(request, error)
    status, code, label = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), _INTERNAL)
    message = error.message if isinstance(error, errors.HoldfastError) else label
    details = _DETAILS.get(code) or _details(code, label, message, error)
    document: dict[str, Any] = {"code": code, "details": details, "error": label, "request_id": request.request_id}
    headers: tuple[Header, ...] = ((b"www-authenticate", b"Bearer"),) if status == 401 else ()  # noqa: PLR2004 - HTTP's
    wait = getattr(error, "retry_after", None)
    if wait is not None and not isinstance(error, errors.LockLimit):
        headers = ((b"retry-after", str(wait).encode()),)
        if isinstance(error, errors.Limited):
            document["retry_after_ms"] = wait * 1000
    if isinstance(error, errors.Trouble):
        document["applied"] = error.applied
    document["agent_contract"] = next(tell for kinds, tell in _NEXT if isinstance(error, kinds))(request, error)
    return json_response(status, dict(sorted(document.items())), headers)


def told(refusal: type[Exception] | int) -> tuple[int, str]:
    """Status and code of a kind of refusal; a number is what the door itself says. For the document of the API."""
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
    elif error.status >= 500:  # noqa: PLR2004 - HTTP's own border
        label, code, details = "Internal server error", "internal_error", "Internal server error"
    else:
        label, code, details = _FRAMEWORK.get(error.status, ("Request failed", "invalid_input", "Request failed"))
    document = {
        "agent_contract": contracts.fix_request(error.message),
        "code": code,
        "details": details,
        "error": label,
        "request_id": request.request_id,
    }
    return Response(error.status, encode(document), error.headers)


_NEXT: tuple[tuple[tuple[type[Exception], ...], Callable[[Request, Any], Contract]], ...] = (
    ((errors.OutcomeUnknown,), lambda request, _: contracts.look_first(f"GET {_subject(request)}", "check_status")),
    (
        (errors.Trouble, errors.RoomsFull, errors.RateLimited),
        lambda _, error: contracts.wait_and_retry(error.retry_after),
    ),
    ((errors.UnknownKey,), lambda *_: contracts.authenticate(retryable=False)),
    ((errors.Unauthenticated,), lambda *_: contracts.authenticate(retryable=True)),
    ((errors.LeaseGone, errors.LeaseMismatch), lambda request, _: contracts.stop_work(*_claim_again(request))),
    ((errors.SessionExpired, errors.SessionMissing), lambda *_: contracts.session_over()),
    ((errors.LockLimit,), lambda *_: contracts.lock_limit()),
    (
        (errors.WebhookMissing, errors.TooManyWebhooks),
        lambda *_: contracts.look_first("GET /webhooks", "list_lock_webhooks"),
    ),
    (
        (errors.NameTaken, errors.ConfiguredKey, errors.InsecureTransport),
        lambda _, error: contracts.fix_request(error.hint),
    ),
    (
        (errors.Conflict, errors.Missing, errors.Forbidden),
        lambda request, error: (
            contracts.fix_request(error.hint)
            if "scope" in error.facts
            else contracts.look_first(f"GET {_subject(request)}", "get_lock_status")
        ),
    ),
    ((errors.HoldfastError,), lambda _, error: contracts.fix_request(error.message)),
    ((Exception,), lambda *_: contracts.wait_and_retry(5)),
)
"""What to do after each refusal on these routes; the first row that fits."""


def _claim_again(request: Request) -> tuple[str, str]:
    if request.scope["path"].startswith("/elections/"):
        return f"POST {_subject(request)}/campaign", "campaign"
    return f"POST {_subject(request)}/acquire", "acquire_lock"


def _subject(request: Request) -> str:
    """The path of the thing the request is about, without its verb."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return "/".join(raw.decode("latin-1").split("/")[:3])
