"""Documents about the API: the same bytes for everybody, made once at the start."""

from __future__ import annotations

import hashlib

import msgspec

from holdfast.transport.http.door import Door
from holdfast.transport.http.message import Header, Request, Response, encode
from holdfast.transport.http.openapi import openapi
from holdfast.transport.yaml import encode_yaml

CACHE = b"public, max-age=300"


class StaticDocument(msgspec.Struct, frozen=True):
    """Bytes that do not change while this server runs."""

    body: bytes
    content_type: bytes
    etag: bytes


def static(body: bytes, content_type: bytes = b"application/json") -> StaticDocument:
    """A document under a strong ETag of its bytes."""
    return StaticDocument(body, content_type, b'"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"')


def show(document: StaticDocument, request: Request) -> Response:
    """The document, or 304 for a caller who has it."""
    headers: tuple[Header, ...] = ((b"etag", document.etag), (b"cache-control", CACHE))
    if _has_it(request.headers.get(b"if-none-match", b""), document.etag):
        return Response(304, b"", headers)
    return Response(200, document.body, headers, document.content_type)


def _has_it(known: bytes, etag: bytes) -> bool:
    """Compared weakly, as HTTP has it for this header."""
    return any(tag.strip().removeprefix(b"W/") in {etag, b"*"} for tag in known.split(b","))


_OPENAPI = openapi()
_OPENAPI_JSON = static(encode(_OPENAPI))
_OPENAPI_YAML = static(encode_yaml(_OPENAPI), b"application/yaml")


async def openapi_json(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """Every operation, as OpenAPI 3.1."""
    return show(_OPENAPI_JSON, request)


async def schema(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """The same, where clients of Orchestrion look for it."""
    return show(_OPENAPI_JSON, request)


async def openapi_yaml(door: Door, request: Request) -> Response:  # noqa: ARG001 - every handler has this shape
    """The same in YAML, where clients of OctoStore look for it."""
    return show(_OPENAPI_YAML, request)
