"""`/v1/keys`: the keys of an account. A key is shown once, when it is created; only its hash is stored."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.acl import hash_token
from holdfast.core.errors import Missing
from holdfast.core.event import Cause
from holdfast.core.names import is_storable
from holdfast.core.principal import SCOPES, Principal, format_key, mask_key, may_see_key
from holdfast.core.row import SECOND, Instant
from holdfast.engine.verbs.keys import CreateKey, RevokeKey, RotateKey
from holdfast.operations import bounds
from holdfast.transport.advice import accounts as account_advice
from holdfast.transport.http.bodies.checks import Checks
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response, with_warnings
from holdfast.transport.ids import ids
from holdfast.transport.times import milliseconds, milliseconds_or_none

KEY_BYTES = 24


class KeyBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Body of create_key."""

    name: str
    scopes: list[str]
    prefix: str | None = None
    expires_in_seconds: int | None = None
    test: bool = False


class RotateBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Body of a rotation: how long the old key still works."""

    grace_seconds: int = bounds.KEY_GRACE.default


def new_key(kind: str = "live") -> str:
    """A new random key."""
    return format_key(ids.draw() + ids.draw()[: KEY_BYTES - 16], kind)


async def list_keys(ctx: HandlerContext, request: Request) -> Response:
    """The account's keys."""
    await ctx.authenticate(request)
    account = request.by.account
    keys, uses = await ctx.read(lambda reader: (reader.principals(account), reader.key_uses(account)))
    documents = [key_document(key, uses.get(key.id)) for key in keys if may_see_key(request.by, key)]
    return json_response(200, {"keys": documents, "agent_contract": account_advice.keys_shown()})


async def read_key(ctx: HandlerContext, request: Request) -> Response:
    """One key."""
    await ctx.authenticate(request)
    account, key_id = request.by.account, _key_id(request)
    key, uses = await ctx.read(lambda reader: (reader.row(Principal, account, key_id), reader.key_uses(account)))
    if key is None or not may_see_key(request.by, key):
        raise Missing("there is no such key")
    return json_response(200, key_document(key, uses.get(key.id)) | {"agent_contract": account_advice.keys_shown()})


async def create_key(ctx: HandlerContext, request: Request) -> Response:
    """Create a key, with no more rights than the caller's key has."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, KeyBody)
    secret, key = await make(ctx, request.by, request.cause(), body, by_hash=request.key_hash)
    if key.name_prefix is not None and key.may("tasks:read"):
        warnings = [*warnings, "a key with a prefix may not use tasks, which have no names"]
    return _response_with_secret(201, secret, key, warnings)


async def make(
    ctx: HandlerContext, by: Principal, cause: Cause, body: KeyBody, *, by_hash: str
) -> tuple[str, Principal]:
    """Create a key; returns (the secret, which is not stored, and the key)."""
    checks = Checks()
    checks.require(body.name != "", "name", "`name` must not be empty")
    checks.check_text(body.name, "name", bounds.KEY_NAME)
    checks.check_text(body.prefix, "prefix", bounds.KEY_PREFIX)
    checks.require(body.prefix != "", "prefix", "`prefix` must not be empty; omit it for a key without a prefix")
    known = bool(body.scopes) and all(scope in SCOPES for scope in body.scopes)
    checks.require(known, "scopes", f"`scopes` must be one or more of {', '.join(SCOPES)}")
    lifetime = body.expires_in_seconds
    checks.check_range(lifetime, "expiresInSeconds", bounds.KEY_LIFETIME)
    checks.raise_errors()
    secret = new_key("test" if body.test else "live")
    key = Principal(
        by.account,
        ids.uuid(),
        name=body.name,
        key_hash=hash_token(secret),
        shown=mask_key(secret),
        scopes=" ".join(dict.fromkeys(body.scopes)),
        prefix=body.prefix,
    )
    command = CreateKey(
        account=by.account,
        cause=cause,
        by=by,
        by_hash=by_hash,
        key_id=key.id,
        key=key,
        lifetime=None if lifetime is None else lifetime * SECOND,
    )
    created = await ctx.run(command)
    return secret, created.key


async def rotate_key(ctx: HandlerContext, request: Request) -> Response:
    """Replace the secret of one of the account's keys."""
    await ctx.authenticate(request)
    account, key_id = request.by.account, _key_id(request)
    key = await ctx.read(lambda reader: reader.row(Principal, account, key_id))
    if key is None:
        raise Missing("there is no such key")
    return await _rotate(ctx, request, key)


async def rotate_own_key(ctx: HandlerContext, request: Request) -> Response:
    """Replace the secret of the key that was sent."""
    await ctx.authenticate(request)
    return await _rotate(ctx, request, request.by)


async def _rotate(ctx: HandlerContext, request: Request, key: Principal) -> Response:
    body, warnings, _ = await read_body(request, RotateBody)
    secret, rotated = await rotate(
        ctx, request.by, request.cause(), key, by_hash=request.key_hash, grace_seconds=body.grace_seconds
    )
    return _response_with_secret(200, secret, rotated, warnings)


async def rotate(
    ctx: HandlerContext, by: Principal, cause: Cause, key: Principal, *, by_hash: str, grace_seconds: int
) -> tuple[str, Principal]:
    """Replace a key's secret; returns (the new secret, which is not stored, and the key)."""
    checks = Checks()
    checks.check_range(grace_seconds, "graceSeconds", bounds.KEY_GRACE)
    checks.raise_errors()
    secret = new_key("test" if key.shown.startswith("hf_test_") else "live")
    command = RotateKey(
        account=by.account,
        cause=cause,
        by=by,
        by_hash=by_hash,
        key_id=key.id,
        key_hash=hash_token(secret),
        shown=mask_key(secret),
        grace=grace_seconds * SECOND,
    )
    rotated = await ctx.run(command)
    ctx.apply_key_change(rotated.key, rotated.now)
    return secret, rotated.key


async def revoke_key(ctx: HandlerContext, request: Request) -> Response:
    """Revoke a key: on this server at once, on others within five seconds."""
    await ctx.authenticate(request)
    revoked = await revoke(ctx, request.by, request.cause(), _key_id(request), by_hash=request.key_hash)
    return json_response(200, key_document(revoked, None) | {"agent_contract": account_advice.keys_shown()})


async def revoke(ctx: HandlerContext, by: Principal, cause: Cause, key_id: str, *, by_hash: str) -> Principal:
    """Revoke a key; returns it."""
    keys = await ctx.read(lambda reader: reader.principals(by.account))
    others = tuple(key.id for key in keys if key.id != key_id and key.may("admin"))
    command = RevokeKey(account=by.account, cause=cause, by=by, by_hash=by_hash, key_id=key_id, others=others)
    revoked = await ctx.run(command)
    ctx.apply_key_change(revoked.key, revoked.now)
    return revoked.key


def _key_id(request: Request) -> str:
    """The key id in the path. Text that cannot be stored is not found."""
    if not is_storable(request.parameter):
        raise Missing("there is no such key")
    return request.parameter


def key_document(key: Principal, used_at: Instant | None) -> dict[str, Any]:
    """A key as administrators see it: without its secret and hash."""
    return {
        "keyId": key.id,
        "name": key.name,
        "source": key.source,
        "shown": key.shown or None,
        "scopes": key.scopes.split(),
        "prefix": key.name_prefix,
        "createdAt": milliseconds(key.created_at),
        "expiresAt": milliseconds_or_none(key.expires_at),
        "oldKeyUntil": milliseconds_or_none(key.old_until),
        "revokedAt": milliseconds_or_none(key.revoked_at),
        "lastUsedAt": milliseconds_or_none(used_at),
    }


def _response_with_secret(status: int, secret: str, key: Principal, warnings: list[str]) -> Response:
    document: dict[str, Any] = {
        "apiKey": secret,
        **key_document(key, None),
        "agent_contract": account_advice.key_issued(),
    }
    return json_response(status, with_warnings(document, warnings), NO_STORE)
