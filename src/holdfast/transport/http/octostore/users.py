"""OctoStore's `/auth`: registration of users and rotation of their tokens."""

from __future__ import annotations

import re

import msgspec

from holdfast.core.acl import hash_token
from holdfast.core.errors import NameTaken, Unauthenticated
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import LOCAL, Principal, mask_key
from holdfast.engine.verbs.accounts import principal_id
from holdfast.engine.verbs.keys import RegisterUser, RotateKey
from holdfast.operations.bounds import LOCK_USERNAME
from holdfast.transport.advice import locks as lock_advice
from holdfast.transport.http.api.keys import new_key
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.octostore.bodies import read_body
from holdfast.transport.http.request import Header, HttpRefusal, Request, Response, json_response

NO_CACHE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))

_USERNAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LOCK_USERNAME.most}}}")
_NAMESPACE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_RESERVED = {"admin", "root"}
"""Names that look like the operator's."""


class UserBody(msgspec.Struct):
    """Body of register_user: the name and namespace of a new user."""

    username: str
    namespace: str | None = None


async def register_user(ctx: HandlerContext, request: Request) -> Response:
    """Register a user under an unused name and issue a token, if the settings allow registration."""
    if not ctx.settings.local_registration:
        raise HttpRefusal(404, "no operation has this path")
    ctx.network.count_registration(request)
    body = await read_body(ctx, request, UserBody)
    name, namespace = body.username, (body.namespace or "").strip("/") or None
    if not _USERNAME.fullmatch(name):
        raise HttpRefusal(400, f"`username` must be 1 to {LOCK_USERNAME.most} characters of A-Z a-z 0-9 - _")
    if namespace is not None and not _NAMESPACE.fullmatch(namespace):
        raise HttpRefusal(400, "`namespace` must be 1 to 64 characters of A-Z a-z 0-9 . - _")
    users = await ctx.read(lambda reader: reader.principals(DEFAULT_ACCOUNT))
    if name.lower() in {*_RESERVED, *(user.name.lower() for user in users)}:
        raise NameTaken("this name is taken")
    token = new_key()
    created = await ctx.run(
        RegisterUser(
            account=DEFAULT_ACCOUNT,
            cause=request.cause(),
            key_id=principal_id(LOCAL, name),
            name=name,
            namespace=namespace,
            key_hash=hash_token(token),
            shown=mask_key(token),
        )
    )
    return _token_response(token, created.key, "username")


async def rotate_token(ctx: HandlerContext, request: Request) -> Response:
    """Replace the caller's token at once; the user keeps its locks."""
    if not request.headers.get(b"authorization", b"").startswith(b"Bearer "):
        raise Unauthenticated("a bearer token is required")
    for name in (b"x-admin-key", b"x-octostore-admin-key"):
        request.headers.pop(name, None)
    await ctx.authenticate(request)
    token = new_key()
    rotated = await ctx.run(
        RotateKey(
            account=request.by.account,
            cause=request.cause(),
            by=request.by,
            by_hash=request.key_hash,
            key_id=request.by.id,
            key_hash=hash_token(token),
            shown=mask_key(token),
            grace=0,
        )
    )
    ctx.apply_key_change(rotated.key, rotated.now)
    return _token_response(token, rotated.key, "github_username")


def _token_response(token: str, user: Principal, name: str) -> Response:
    """The answer with a token, which is shown only here."""
    document = {"token": token, "user_id": user.id, name: user.name, "namespace": user.namespace}
    return json_response(200, document | {"agent_contract": lock_advice.token_issued()}, NO_CACHE)
