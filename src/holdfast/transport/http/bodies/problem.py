"""Our own routes' wire: strict bodies with every error at once, and RFC 9457 problems."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from holdfast.core import errors
from holdfast.core.errors import Invalid, TooLarge
from holdfast.core.lease import RELEASED
from holdfast.core.names import storable
from holdfast.engine.command import Once
from holdfast.transport.advice import contract as contracts
from holdfast.transport.advice.contract import Contract
from holdfast.transport.http.request import HOUSE_BODY_LIMIT, Header, HttpRefusal, Request, Response, encode
from holdfast.transport.times import rfc3339

NOTHING = msgspec.Raw(b"null")
"""A field of any JSON that was left out."""
MAX_DEPTH = 32
MAX_KEY = 255
TYPE_PREFIX = "urn:holdfast:problem:"
QUOTA_TYPE = "https://iana.org/assignments/http-problem-types#quota-exceeded"

B = TypeVar("B", bound=msgspec.Struct)

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that are not the JSON we can take."""

# -- bodies ------------------------------------------------------------------------------------------------------


async def read_body(request: Request, shape: type[B], limit: int = HOUSE_BODY_LIMIT) -> tuple[B, list[str], bytes]:
    """(the body, warnings about fields nobody knows, the raw bytes). An empty body means {}."""
    kind = request.headers.get(b"content-type", b"application/json").split(b";", 1)[0].strip().lower()
    raw = await request.body(limit)
    if raw and kind != b"application/json":
        raise HttpRefusal(415, "the body must be application/json")
    return *parse_body(raw or b"{}", shape), raw or b"{}"


def parse_body(raw: bytes, shape: type[B]) -> tuple[B, list[str]]:
    """(the body, warnings about fields nobody knows)."""
    try:
        return msgspec.json.decode(raw, type=shape), []
    except msgspec.ValidationError:
        return _leniently(raw, shape)
    except _UNREADABLE as error:
        raise Invalid(f"the body is not JSON: {error}", [_error("", "malformed_json", str(error))]) from None


def _leniently(raw: bytes, shape: type[B]) -> tuple[B, list[str]]:
    """The body without the fields nobody knows, and a warning for each; or every error there is."""
    try:
        given = _respelled(msgspec.json.decode(raw, type=dict[str, msgspec.Raw]), shape)
        known = {name: given[name] for name in shape.__struct_encode_fields__ if name in given}
        return msgspec.json.decode(encode(known), type=shape), _warnings(given, shape)
    except _UNREADABLE:
        raise Invalid("the body does not have the right form", _all_errors(raw, shape)) from None


def _respelled(given: dict[str, Any], shape: type[msgspec.Struct]) -> dict[str, Any]:
    """Fields may be spelled in camelCase or in snake_case; where both are there, the usual spelling counts."""
    usual = {_bare(name): name for name in shape.__struct_encode_fields__}
    respelled: dict[str, Any] = {}
    for name, value in given.items():
        known = usual.get(_bare(name), name)
        if known == name or known not in given:
            respelled[known] = value
    return respelled


def _bare(name: str) -> str:
    """What both spellings of a name share."""
    return name.replace("_", "").lower()


def _all_errors(raw: bytes, shape: type[msgspec.Struct]) -> list[dict[str, str]]:
    """Every field that is wrong, not only the first."""
    try:
        document = msgspec.json.decode(raw)
    except _UNREADABLE as error:
        return [_error("", "malformed_json", str(error))]
    if not isinstance(document, dict):
        return [_error("", "wrong_type", "the body must be a JSON object")]
    document = _respelled(document, shape)
    found = []
    for field in msgspec.structs.fields(shape):
        if field.encode_name not in document:
            if field.required:
                near = difflib.get_close_matches(field.encode_name, document, n=1)
                hint = f"; you sent `{near[0]}`" if near else ""
                found.append(_error(f"/{field.encode_name}", "missing", f"`{field.encode_name}` is required{hint}"))
            continue
        if field.type is msgspec.Raw:  # any JSON will do
            continue
        try:
            msgspec.convert(document[field.encode_name], type=field.type)
        except msgspec.ValidationError as error:
            found.append(_error(f"/{field.encode_name}", "invalid", str(error)))
    return found


def _warnings(given: dict[str, Any], shape: type[msgspec.Struct]) -> list[str]:
    known = shape.__struct_encode_fields__
    warnings = []
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            warnings.append(f"unknown field {name[:64]!r} was ignored{hint}")
    return warnings


class Checks:
    """Gathers what is wrong with the values, so that all of it is told at once."""

    def __init__(self) -> None:
        self.errors: list[dict[str, str]] = []

    def that(self, holds: bool, field: str, message: str) -> None:  # noqa: FBT001 - reads as a sentence
        """Note a value that is out of bounds."""
        if not holds:
            self.errors.append(_error(f"/{field}", "out_of_range", message))

    def text(self, value: str | None, field: str, limit: int) -> None:
        """A text within its limit that every store keeps as it is."""
        if value is None:
            return
        self.that(len(value) <= limit, field, f"`{field}` has at most {limit} characters, this one has {len(value)}")
        self.that(storable(value), field, f"`{field}` must not contain U+0000")

    def json(self, raw: msgspec.Raw, field: str, limit: int, depth: int = MAX_DEPTH) -> str | None:
        """A JSON value as compact text, within its limits of size and depth; null is as good as nothing."""
        if raw == NOTHING:
            return None
        text = msgspec.json.format(bytes(raw), indent=-1)
        if len(text) > limit:
            raise TooLarge(
                f"`{field}` is {len(text)} bytes, the limit is {limit}",
                [_error(f"/{field}", "too_large", f"at most {limit} bytes of compact JSON")],
            )
        try:
            value = msgspec.json.decode(text)
        except _UNREADABLE as error:
            raise Invalid(f"`{field}` is not JSON", [_error(f"/{field}", "malformed_json", str(error))]) from None
        # Every level costs an opening bracket, so text with few of them need not be walked through.
        shallow = text.count(b"{") + text.count(b"[") <= depth or _depth(value) <= depth
        self.that(shallow, field, f"`{field}` is nested deeper than {depth} levels")
        if shallow and b"\\u" in text:
            self.that(_storable(value), field, f"`{field}` must not contain U+0000")
        return text.decode()

    def document(self, raw: msgspec.Raw, field: str, limit: int, depth: int = MAX_DEPTH) -> str | None:
        """The same for a value that must be a JSON object."""
        text = self.json(raw, field, limit, depth)
        self.that(text is None or text.startswith("{"), field, f"`{field}` is a JSON object")
        return text

    def done(self) -> None:
        """Refuse if anything was noted."""
        if self.errors:
            raise Invalid("; ".join(error["message"] for error in self.errors), self.errors)


def _depth(value: Any, level: int = 1) -> int:
    if level > MAX_DEPTH:
        return level
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(
        (_depth(element, level + 1) for element in inner),
        default=level - 1 if not isinstance(value, dict | list) else level,
    )


def _storable(value: Any) -> bool:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return all(storable(key) and _storable(element) for key, element in value.items())
    return all(map(_storable, value)) if isinstance(value, list) else True


def _error(pointer: str, code: str, message: str) -> dict[str, str]:
    return {"pointer": pointer, "code": code, "message": message}


def check_key_in_query(request: Request) -> None:
    """Addresses end up in logs: a credential there is refused, so that it is noticed at once."""
    if not request.scope["query_string"]:
        return
    for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), errors="replace"):
        if name in _KEY_NAMES or value.startswith(("hf_live_", "hf_test_", "orch_live_")):
            message = "a key does not belong in an address; send `Authorization: Bearer <key>`"
            raise Invalid(message, [_error(f"/{name[:64]}", "key_in_query", message)])


_KEY_NAMES = {"api_key", "apiKey", "apikey", "access_token", "authorization"}


def once(request: Request, raw: bytes, render: Callable[[Any], tuple[int, bytes]]) -> Once | None:
    """The request's Idempotency-Key, bound to its method, path and body."""
    key = request.headers.get(b"idempotency-key")
    if key is None:
        return None
    if not 1 <= len(key) <= MAX_KEY or not all(0x20 < byte < 0x7F for byte in key):  # noqa: PLR2004 - visible ASCII
        message = f"Idempotency-Key is 1 to {MAX_KEY} visible ASCII characters"
        raise Invalid(message, [_error("", "invalid_header", message)])
    # Whoever guesses another's key must not be shown that one's lease: the caller is part of the request.
    head = f"{request.by.id} {request.scope['method']} {request.scope['path']}\n".encode()
    return Once(key.decode(), hashlib.sha256(head + raw).hexdigest(), render)


# -- errors ------------------------------------------------------------------------------------------------------

_STATUS: dict[type[Exception], int] = {
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
    errors.Trouble: 503,
}
_TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    402: "Not in the plan",
    403: "Not allowed",
    404: "Not found",
    405: "Wrong method",
    408: "Too slow",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    415: "Not JSON",
    422: "Key used for another request",
    429: "Too many",
    500: "Internal error",
    503: "Not available just now",
    507: "Disk full",
}
_DOOR_CODES = {
    404: "not_found",
    405: "wrong_method",
    413: "too_large",
    415: "unsupported_media_type",
}
_TIMES = {"ended_at", "held_since", "expires_at"}


def render_error(request: Request, error: Exception) -> Response:
    """A problem document. What the store says about itself never leaks into it."""
    status = status_of(error)
    code, message = words_of(error, status)
    document: dict[str, Any] = {
        "type": QUOTA_TYPE if isinstance(error, errors.RateLimited) else TYPE_PREFIX + code,
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "detail": message,
        "instance": f"{TYPE_PREFIX}request:{request.request_id}",
        "error": code,
        "message": message,
        "request_id": request.request_id,
    }
    if isinstance(error, Invalid) and error.errors:
        document["errors"] = error.errors
    if isinstance(error, errors.HoldfastError):
        document |= {
            name: rfc3339(value) if name in _TIMES and value is not None else value
            for name, value in error.facts.items()
        }
    headers: list[Header] = [*error.headers] if isinstance(error, HttpRefusal) else []
    wait = getattr(error, "retry_after", None)
    if wait is not None:
        document["retry_after"] = wait
        headers.append((b"retry-after", str(wait).encode()))
    if isinstance(error, errors.Trouble):
        document["applied"] = error.applied
    if status == 401:  # noqa: PLR2004 - HTTP's own number
        headers.append((b"www-authenticate", b"Bearer"))
    elif isinstance(error, errors.Forbidden) and "scope" in error.facts:
        headers.append((b"www-authenticate", b'Bearer error="insufficient_scope"'))
    document["agent_contract"] = next(tell for kinds, tell in _NEXT if isinstance(error, kinds))(request, error)
    return Response(status, encode(document), tuple(headers), b"application/problem+json")


def told(refusal: type[Exception] | int) -> tuple[int, str]:
    """Status and code of a kind of refusal; a number is what the door itself says. For the document of the API."""
    if isinstance(refusal, int):
        return refusal, _DOOR_CODES.get(refusal, "invalid_request")
    return next(_STATUS[kind] for kind in refusal.__mro__ if kind in _STATUS), getattr(refusal, "code", "")


def status_of(error: Exception) -> int:
    """The number of a refusal."""
    if isinstance(error, HttpRefusal):
        return error.status
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


def words_of(error: Exception, status: int) -> tuple[str, str]:
    """Its code and what it says; what the store says about itself is not repeated."""
    if isinstance(error, HttpRefusal):
        return _DOOR_CODES.get(status, "invalid_request"), error.message
    if isinstance(error, errors.Trouble):
        return error.code, error.hint
    if isinstance(error, errors.HoldfastError):
        return error.code, error.message
    return "server_error", "Something went wrong on our side; it is in the server's log under this request id."


def _is_life(request: Request) -> bool:
    return bool(request.scope["path"].startswith("/v1/sessions"))


def _session_of(request: Request) -> str:
    return request.parameter or "{session_id}"


def _after_loss(request: Request, error: errors.LeaseLost) -> Contract:
    if _is_life(request):
        return contracts.stop_work(f"GET /v1/sessions/{_session_of(request)}", "read_session")
    released = error.facts.get("ended") == RELEASED and "held_by" not in error.facts
    return (contracts.job_released_before if released else contracts.job_lost)(request.parameter)


_NEXT: tuple[tuple[tuple[type[Exception], ...], Callable[[Request, Any], Contract]], ...] = (
    ((errors.LeaseLost,), _after_loss),
    ((errors.SessionTaken, errors.ContextConflict), lambda request, _: contracts.life_over(_session_of(request))),
    (
        (errors.CursorTooOld,),
        lambda _, error: contracts.look_first(f"GET /v1/events?after={error.facts['oldest'] - 1}", "list_events"),
    ),
    ((errors.UnknownKey,), lambda *_: contracts.authenticate(retryable=False)),
    ((errors.Unauthenticated,), lambda *_: contracts.authenticate(retryable=True)),
    (
        (errors.OutcomeUnknown,),
        lambda request, _: contracts.look_first(f"GET /v1/jobs/{request.parameter}", "get_job_owner"),
    ),
    (
        (errors.SessionExpired, errors.SessionMissing),
        lambda request, _: contracts.life_over(_session_of(request)) if _is_life(request) else contracts.session_over(),
    ),
    ((errors.NotHeld,), lambda request, _: contracts.look_first(f"GET /v1/jobs/{request.parameter}", "get_job_owner")),
    ((errors.ValueRefused,), lambda _, error: contracts.fix_request(error.hint)),
    ((errors.Trouble, errors.Limited), lambda _, error: contracts.wait_and_retry(error.retry_after or 5)),
    ((HttpRefusal,), lambda _, error: contracts.fix_request(error.message)),
    ((errors.HoldfastError,), lambda _, error: contracts.fix_request(error.hint)),
    ((Exception,), lambda *_: contracts.wait_and_retry(5)),
)
"""What to do after each refusal on these routes; the first row that fits."""
