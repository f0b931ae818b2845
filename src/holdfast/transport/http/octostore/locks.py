"""OctoStore's `/locks`."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import acl as access
from holdfast.core import lease as leases
from holdfast.core.errors import Invalid
from holdfast.core.lease import Lease
from holdfast.core.names import check_reserved, is_storable, lock_name_problem
from holdfast.core.row import SECOND, Instant
from holdfast.engine.verbs.locks import Acquired, AcquireLock, Delayed, ReleaseLock, RenewLock, SetLockAcl
from holdfast.operations import bounds
from holdfast.store.contract import Reader
from holdfast.transport.advice import locks as lock_advice
from holdfast.transport.advice.contract import seconds_to_wait
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import (
    U32,
    body_uuid,
    milliseconds_left,
    read_body,
)
from holdfast.transport.http.octostore.errors import InvalidLockName, InvalidTtl
from holdfast.transport.http.octostore.lock_documents import (
    acquired_document,
    delayed_document,
    free_document,
    held_document,
    status_document,
)
from holdfast.transport.http.request import Request, Response, json_response
from holdfast.transport.times import rfc3339


class AclBody(msgspec.Struct):
    """Who may acquire."""

    acquire: list[str]


class AcquireBody(msgspec.Struct):
    """Body of acquire_lock."""

    ttl_seconds: U32 | None = None
    metadata: str | None = None
    session_id: str | None = None
    ephemeral: bool | None = None
    lock_delay_seconds: U32 | None = None
    acl: AclBody | None = None


class RenewBody(msgspec.Struct):
    """Body of renew_lock."""

    lease_id: str
    ttl_seconds: U32 | None = None


class ReleaseBody(msgspec.Struct):
    """Body of release_lock."""

    lease_id: str


class PutAclBody(msgspec.Struct):
    """Body of set_lock_acl."""

    acl: AclBody


async def acquire_lock(ctx: HandlerContext, request: Request) -> Response:
    """Acquire a lock, or extend it if the caller holds it."""
    body = await read_body(ctx, request, AcquireBody)
    session_id = None if body.session_id is None else body_uuid(body.session_id)
    await ctx.authenticate(request)
    name = usable_name(request)
    ttl = _check_ttl(body.ttl_seconds)
    if body.metadata is not None:
        check_metadata(body.metadata)
    delay = body.lock_delay_seconds or 0
    if not bounds.LOCK_DELAY.allows(delay):
        raise Invalid(f"lock_delay_seconds must be between 0 and {bounds.LOCK_DELAY.most}")
    ephemeral = bool(body.ephemeral)
    if ephemeral and session_id is None:
        raise Invalid("an ephemeral lock needs a session_id")
    outcome: Any = await ctx.run(
        AcquireLock(
            account=request.by.account,
            cause=request.cause(),
            by=request.by,
            name=name,
            secret=request.secret,
            ttl=ttl,
            limit=ctx.settings.max_locks_per_user,
            metadata=None if body.metadata is None else msgspec.json.encode(body.metadata).decode(),
            session_id=session_id,
            ephemeral=ephemeral,
            delay=delay * SECOND,
            acl=None if body.acl is None else access.normalise(body.acl.acquire),
        )
    )
    if isinstance(outcome, Acquired):
        ctx.stats.acquired()
        return json_response(200, acquired_document(outcome))
    if isinstance(outcome, Delayed):
        return json_response(409, delayed_document(outcome))
    return json_response(200, held_document(outcome))


async def renew_lock(ctx: HandlerContext, request: Request) -> Response:
    """Set how long the lock is held from now."""
    body = await read_body(ctx, request, RenewBody)
    lease_id = body_uuid(body.lease_id)
    await ctx.authenticate(request)
    name = usable_name(request)
    command = RenewLock(
        account=request.by.account,
        cause=request.cause(),
        by=request.by,
        name=name,
        lease_id=lease_id,
        ttl=_check_ttl(body.ttl_seconds),
    )
    outcome: Any = await ctx.run(command)
    lease, left = outcome.lease, milliseconds_left(outcome.lease.expires_at, outcome.now)
    return json_response(
        200,
        {
            "lease_id": lease_id,
            "expires_at": rfc3339(lease.expires_at),
            "renew_after_ms": left // 2,
            "agent_contract": lock_advice.acquired(name),
        },
    )


async def release_lock(ctx: HandlerContext, request: Request) -> Response:
    """Release a lock. Clients of this API expect the body `null` and nothing else."""
    body = await read_body(ctx, request, ReleaseBody)
    lease_id = body_uuid(body.lease_id)
    await ctx.authenticate(request)
    name = usable_name(request)
    await ctx.run(
        ReleaseLock(account=request.by.account, cause=request.cause(), by=request.by, name=name, lease_id=lease_id)
    )
    ctx.stats.released()
    return Response(200, b"null")


async def set_lock_acl(ctx: HandlerContext, request: Request) -> Response:
    """Set who may acquire a lock."""
    body = await read_body(ctx, request, PutAclBody)
    await ctx.authenticate(request)
    name = _lock_name(request)
    acl = access.normalise(body.acl.acquire)
    await ctx.run(SetLockAcl(account=request.by.account, cause=request.cause(), by=request.by, name=name, acl=acl))
    document = {"name": name, "acl": {"acquire": access.redact(acl)}, "agent_contract": lock_advice.acl_set(name)}
    return json_response(200, document)


async def get_lock_status(ctx: HandlerContext, request: Request) -> Response:
    """The state of a lock. A name that was never used is free."""
    await ctx.authenticate(request)
    name = usable_name(request)
    account = request.by.account

    def query_lock(reader: Reader) -> tuple[Lease, Instant, int]:
        return reader.row(Lease, account, name) or Lease(account, name), reader.now, reader.next_token()

    lease, now, next_token = await ctx.read(query_lock)
    live = leases.is_live(lease, now)
    document = (
        status_document(lease, next_token)
        if live
        else free_document(lease, lease.token if leases.is_held(lease) else next_token)
    )
    if lease.acl is not None:
        document["acl"] = {"acquire": access.redact(lease.acl)}
    wait = seconds_to_wait(lease.expires_at, now)
    document["agent_contract"] = lock_advice.held(name, wait) if live else lock_advice.free(name)
    return json_response(200, document)


def check_metadata(metadata: str) -> None:
    """Refuse metadata that is too long or cannot be stored."""
    if len(metadata) > bounds.LOCK_METADATA.most:
        raise Invalid(f"metadata must be at most {bounds.LOCK_METADATA.most} characters")
    if not is_storable(metadata):
        raise Invalid("metadata must not contain U+0000")


def _lock_name(request: Request) -> str:
    problem = lock_name_problem(request.parameter)
    if problem is not None:
        raise InvalidLockName(problem)
    return request.parameter


def usable_name(request: Request) -> str:
    """The lock name in the path, if it is valid and not reserved. Admission has checked the caller's prefix."""
    name = _lock_name(request)
    check_reserved(name)
    return name


def _check_ttl(seconds: int | None) -> Instant:
    ttl = bounds.LOCK_TTL.default if seconds is None else seconds
    if not bounds.LOCK_TTL.allows(ttl):
        raise InvalidTtl(f"must be between {bounds.LOCK_TTL.least} and {bounds.LOCK_TTL.most} seconds")
    return ttl * SECOND
