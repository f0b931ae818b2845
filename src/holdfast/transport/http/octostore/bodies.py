"""OctoStore's request bodies, parsed as leniently as the original server does, and its representation of values."""

from __future__ import annotations

import hashlib
import json
import re
import types
import typing
import uuid
from typing import Annotated, Any, TypeVar

import msgspec

from holdfast.core.lease import Lease
from holdfast.core.row import Instant
from holdfast.decoding import convert, decode
from holdfast.operations.bounds import LOCK_METADATA, OCTOSTORE_BODY_BYTES, PUBLIC_BODY_BYTES
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.overload.large_work import run_sized
from holdfast.transport.http.request import HttpRefusal, Request

U32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]

B = TypeVar("B", bound=msgspec.Struct)

_UUID = re.compile(
    r"(?:[0-9a-f]{32}|(?P<open>\{)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?(open)\})"
    r"|urn:uuid:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


async def read_body(ctx: HandlerContext, request: Request, body_type: type[B]) -> B:
    """Read a JSON body. As in the original, 415, 413, 400 and 422 precede 401.

    The key is checked first, by the head, but refused after the body was checked: of a caller without a valid key only
    a small body is read.
    """
    media_type = request.headers.get(b"content-type", b"").split(b";", 1)[0].strip().lower()
    if media_type != b"application/json" and not (
        media_type.startswith(b"application/") and media_type.endswith(b"+json")
    ):
        raise HttpRefusal(415, "the body must be application/json")
    if request.operation is not None and request.operation.scope is not None:
        await ctx.identify(request)
    try:
        raw = await request.body(PUBLIC_BODY_BYTES if request.principal is None else OCTOSTORE_BODY_BYTES)
    except HttpRefusal as error:
        if error.status == 413 and request.refusal is not None and request.declared_bytes <= OCTOSTORE_BODY_BYTES:
            raise request.refusal from None
        raise
    return await run_sized(len(raw), lambda: parse_body(raw, body_type))


def parse_body(raw: bytes, body_type: type[B]) -> B:
    """Decode a body, accepting and refusing exactly what the original server does."""
    try:
        try:
            body = decode(raw, body_type)
        except msgspec.ValidationError:
            body = _struct_from(msgspec.json.decode(raw), body_type)
        _check_repeated_fields(raw, body_type)
    except msgspec.ValidationError as error:
        raise HttpRefusal(422, str(error)) from None
    except msgspec.DecodeError as error:
        # Bytes after the first complete value are ignored.
        trailing = _TRAILING.search(str(error))
        if trailing and int(trailing[1]):
            return parse_body(raw[: _end_of_value(raw, int(trailing[1]))], body_type)
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


def _struct_from(value: Any, body_type: type[B]) -> B:
    """Build a struct; on any level an array with one element per field, in order, is accepted instead of an object."""
    fields = msgspec.structs.fields(body_type)
    if isinstance(value, list) and len(value) == len(fields):
        value = {field.encode_name: element for field, element in zip(fields, value, strict=True)}
    if not isinstance(value, dict):
        raise msgspec.ValidationError("Expected `object`")
    for field in fields:
        inner = next(
            (
                kind
                for kind in _union_members(field.type)
                if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
            ),
            None,
        )
        if inner is not None and isinstance(value.get(field.encode_name), list):
            value[field.encode_name] = msgspec.to_builtins(_struct_from(value[field.encode_name], inner))
    return convert(value, body_type)


def _union_members(kind: Any) -> tuple[Any, ...]:
    return (
        typing.get_args(kind)
        if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union
        else (kind,)
    )


def _check_repeated_fields(raw: bytes, body_type: type[msgspec.Struct]) -> None:
    """Refuse a repeated known field. Counting bytes is cheap and clears most bodies without a second parse."""
    names = [*body_type.__struct_fields__, "acquire"]
    if all(raw.count(b'"%b"' % name.encode()) < 2 for name in names) and b"\\u" not in raw:
        return

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs if key in names]
        if len(keys) != len(set(keys)):
            raise msgspec.ValidationError("a field is repeated")
        return dict(pairs)

    json.loads(raw, object_pairs_hook=check)


def parse_uuid(text: str) -> str | None:
    """A UUID in any spelling, normalized to lower case with dashes; None if it is not a UUID."""
    return str(uuid.UUID(text)) if _UUID.fullmatch(text) else None


def path_uuid(text: str) -> str:
    """An id in a path: 400 if it is not a UUID, before authentication."""
    found = parse_uuid(text)
    if found is None:
        raise HttpRefusal(400, "the id in the path is not a UUID")
    return found


def body_uuid(text: str) -> str:
    """An id in a body: 422 if it is not a UUID."""
    found = parse_uuid(text)
    if found is None:
        raise HttpRefusal(422, "not a UUID")
    return found


def pseudonym(holder: str) -> str:
    """The public id of a holder: derived from the real id, stable, and accepted by no operation.

    Every holder has a UUID, but a row that was written by another program must not make a whole list unreadable.
    """
    known = parse_uuid(holder)
    raw = holder.encode() if known is None else uuid.UUID(known).bytes
    digest = bytearray(hashlib.sha256(b"octostore.public-lock-holder.v1\0" + raw).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    if bytes(digest) == raw:
        digest[0] ^= 1
    return str(uuid.UUID(bytes=bytes(digest)))


def metadata_text(lease: Lease) -> str | None:
    """Metadata as a string, the only form OctoStore has. A job's JSON object becomes truncated JSON text."""
    if lease.metadata is None:
        return None
    value = msgspec.json.decode(lease.metadata)
    return value if isinstance(value, str) else lease.metadata[: LOCK_METADATA.most]


def milliseconds_left(until: Instant | None, now: Instant) -> int:
    """Whole milliseconds from `now` until then, at least 0."""
    return max((until or now) - now, 0) // 1000
