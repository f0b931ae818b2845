"""Handlers of the API's documents: generated on first request, then served with an ETag."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

from holdfast.operations.operation import DISCOVERY
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Header, Request, Response, encode
from holdfast.transport.origins import known_address

CACHE = b"public, max-age=300"
JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"
MARKDOWN = b"text/markdown; charset=utf-8"


class StaticDocument(msgspec.Struct, frozen=True):
    """A document that does not change while the server runs."""

    body: bytes
    content_type: bytes
    etag: bytes


def static(body: bytes, content_type: bytes = b"application/json") -> StaticDocument:
    """A document with a strong ETag, the hash of its bytes."""
    return StaticDocument(body, content_type, b'"' + hashlib.sha256(body).hexdigest()[:32].encode() + b'"')


def show(document: StaticDocument, request: Request) -> Response:
    """The document, or 304 if the client already has it."""
    headers: tuple[Header, ...] = ((b"etag", document.etag), (b"cache-control", CACHE))
    if _matches_etag(request.headers.get(b"if-none-match", b""), document.etag):
        return Response(304, b"", headers)
    return Response(200, document.body, headers, document.content_type)


def _matches_etag(known: bytes, etag: bytes) -> bool:
    """Weak comparison, as RFC 9110 requires for If-None-Match."""
    return any(tag.strip().removeprefix(b"W/") in {etag, b"*"} for tag in known.split(b","))


async def _serve(ctx: HandlerContext, request: Request, make: Callable[[], bytes], content_type: bytes) -> Response:
    """Serve an operation's document, within the rate limit of the client's address."""
    await ctx.charge_address(request, DISCOVERY)
    assert request.operation is not None
    name = request.operation.path
    if name not in ctx.documents:
        # In a thread: the YAML document takes half a second, which the event loop cannot spare.
        ctx.documents[name] = static(await asyncio.to_thread(make), content_type)
    return show(ctx.documents[name], request)


async def openapi_json(ctx: HandlerContext, request: Request) -> Response:
    """The OpenAPI 3.1 document."""
    return await _serve(ctx, request, lambda: encode(_openapi(ctx)), JSON)


async def schema(ctx: HandlerContext, request: Request) -> Response:
    """The OpenAPI document at Orchestrion's path."""
    return await _serve(ctx, request, lambda: encode(_openapi(ctx)), JSON)


async def openapi_yaml(ctx: HandlerContext, request: Request) -> Response:
    """The OpenAPI document in YAML, at OctoStore's path."""
    return await _serve(ctx, request, lambda: encode_yaml(_openapi(ctx)), b"application/yaml")


def encode_yaml(document: dict[str, Any]) -> bytes:
    """A JSON document as YAML in block style, keys in their order.

    Decoded from JSON first, so that no two values are the same object: PyYAML would write the second as an alias.
    """
    yaml: Any = import_module("yaml")  # imported on first request to keep server start-up short
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the one in C, where there is one, is ten times as fast
    tree = msgspec.json.decode(encode(document))
    text: str = yaml.dump(tree, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)
    return text.encode()


async def agent_json(ctx: HandlerContext, request: Request) -> Response:
    """The entry document for agents."""
    return await _serve(ctx, request, lambda: encode(_document("agent_entry").agent_json(ctx.settings)), JSON)


async def agent_card(ctx: HandlerContext, request: Request) -> Response:
    """The A2A agent card."""
    return await _serve(ctx, request, lambda: encode(_document("agent_entry").agent_card(ctx.settings)), JSON)


async def capabilities(ctx: HandlerContext, request: Request) -> Response:
    """States, bounds, error codes, action codes and plans."""
    return await _serve(ctx, request, lambda: encode(_document("capabilities").capabilities(ctx.settings)), JSON)


async def tool(ctx: HandlerContext, request: Request) -> Response:
    """Every operation as a tool with its input schema."""
    return await _serve(ctx, request, lambda: encode(_document("tool_manifest").tool_manifest(_openapi(ctx))), JSON)


async def llms_txt(ctx: HandlerContext, request: Request) -> Response:
    """The link list for language models."""
    return await _serve(ctx, request, lambda: _document("guides").llms_txt(ctx.settings).encode(), TEXT)


async def agents_md(ctx: HandlerContext, request: Request) -> Response:
    """The guide for agents."""
    return await _serve(ctx, request, lambda: _document("guides").agents_md(ctx.settings).encode(), MARKDOWN)


async def skill_md(ctx: HandlerContext, request: Request) -> Response:
    """The guide as a skill."""
    return await _serve(ctx, request, lambda: _document("guides").skill_md(ctx.settings).encode(), MARKDOWN)


def _document(name: str) -> Any:
    """A module of documents, imported on first request to keep server start-up short."""
    return import_module(f"holdfast.transport.documents.{name}")


def _openapi(ctx: HandlerContext) -> Any:
    return import_module("holdfast.transport.http.system.openapi").openapi(known_address(ctx.settings) or "/")
