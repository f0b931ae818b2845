"""`/v1/keys/register`, `/v1/account` and `/v1/recover`."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.account import Account, requires_lease_id
from holdfast.core.acl import hash_token
from holdfast.core.browser_session import LINK_LIFETIME
from holdfast.core.errors import RegistrationClosed
from holdfast.core.lease import Lease
from holdfast.core.plan import CYCLE
from holdfast.core.principal import mask_key
from holdfast.core.row import SECOND
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.verbs.accounts import ChangeAccountSettings, RegisterAccount
from holdfast.engine.verbs.recovery import Recover
from holdfast.operations.bounds import PUBLIC_BODY_BYTES
from holdfast.operations.operation import REGISTRATION
from holdfast.transport.advice import accounts as account_advice
from holdfast.transport.dashboard.access.link import make_link
from holdfast.transport.http.api.keys import new_key
from holdfast.transport.http.bodies.checks import check_key_in_query
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.bodies.query import NO_STORE
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.orchestrion.documents import task_document
from holdfast.transport.http.request import Request, Response, json_response, with_warnings
from holdfast.transport.ids import ids
from holdfast.transport.plans import limits_document
from holdfast.transport.times import milliseconds, milliseconds_or_none

MAX_RECOVERED = 1_000


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    """An empty body."""


class AccountBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The settings of an account."""

    require_lease_id: bool | None = None


async def register(ctx: HandlerContext, request: Request) -> Response:
    """Create an account and its first key, which is shown only in this answer, if the settings allow it."""
    check_key_in_query(request)
    if not ctx.settings.is_registration_open:
        raise RegistrationClosed("this server creates no accounts: its agents share one")
    _, warnings, _ = await read_body(request, NoBody, PUBLIC_BODY_BYTES)
    await ctx.charge_address(request, REGISTRATION)
    key = new_key()
    account = await ctx.run(
        RegisterAccount(
            account="acct_" + ids.ulid(),
            cause=request.cause(),
            principal_id=ids.uuid(),
            key_hash=hash_token(key),
            shown=mask_key(key),
        )
    )
    document: dict[str, Any] = {"apiKey": key, "accountId": account.id}
    document["agent_contract"] = account_advice.registered()
    return json_response(201, with_warnings(document, warnings), NO_STORE)


async def settle_account(ctx: HandlerContext, request: Request) -> Response:
    """Change the account's settings."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, AccountBody)
    account = await ctx.run(
        ChangeAccountSettings(account=request.by.account, cause=request.cause(), require_lease_id=body.require_lease_id)
    )
    ctx.access.accounts.note_change()
    return json_response(200, with_warnings(await _account_document(ctx, request, account), warnings))


async def read_account(ctx: HandlerContext, request: Request) -> Response:
    """The plan, its usage, and when the usage starts again at zero."""
    await ctx.authenticate(request)
    account_id = request.by.account
    found = await ctx.read(lambda reader: reader.row(Account, account_id, account_id))
    return json_response(200, await _account_document(ctx, request, found or Account(account_id, account_id)))


async def _account_document(ctx: HandlerContext, request: Request, account: Account) -> dict[str, Any]:
    allowance = await ctx.allowance(account.id)
    (used, held), now = await ctx.read(lambda reader: (reader.usage(account.id), reader.now))
    plan, cycle = allowance.in_force(now), allowance.cycle(now)
    created = used.in_cycle(cycle)
    left = None if plan.tasks_per_month is None else max(plan.tasks_per_month - created, 0)
    return {
        "accountId": account.id,
        "createdAt": milliseconds(account.created_at) if account.created_at else None,
        "requireLeaseId": requires_lease_id(account),
        "plan": {
            "planId": plan.id,
            "planName": plan.name,
            "expiresAt": milliseconds_or_none(account.plan_expires_at),
            "expired": allowance.is_expired(now),
        },
        "usage": {"tasksCreated": created, "tasksLeft": left, "workersInUse": held},
        "limits": limits_document(plan),
        "cycle": {"startedAt": milliseconds(cycle), "endsAt": milliseconds(cycle + CYCLE)},
        "key": {"keyId": request.by.id, "name": request.by.name, "scopes": request.by.scopes.split()},
        "agent_contract": account_advice.shown(),
    }


async def recover(ctx: HandlerContext, request: Request) -> Response:
    """End everything in this account that has expired, without waiting for the sweep."""
    await ctx.authenticate(request)
    await read_body(request, NoBody)
    account = request.by.account
    due = await ctx.read(lambda reader: reader.due(MAX_RECOVERED, account))
    recovered = await ctx.run(Recover(account=account, cause=request.cause(), due=tuple(due)))
    return json_response(
        200,
        {
            "recovered": len(recovered.ended),
            "tasks": [task_document(row, recovered.now) for row in recovered.ended if isinstance(row, Task)],
            "sessions": [row.id for row in recovered.ended if isinstance(row, Session)],
            "jobs": [row.id for row in recovered.ended if isinstance(row, Lease)],
            "agent_contract": account_advice.recovered(),
        },
    )


async def link_dashboard(ctx: HandlerContext, request: Request) -> Response:
    """A link that signs a browser in once, as the caller, for as long as the key that was sent works."""
    await ctx.authenticate(request)
    _, warnings, _ = await read_body(request, NoBody)
    caller, key_hash = request.by, hash_token(request.secret.decode("latin-1"))
    now = await ctx.read(lambda reader: reader.now)
    url = await ctx.use_store(lambda store: make_link(store, ctx.settings, caller, key_hash, now))
    document = {
        "url": url,
        "expires_in_seconds": LINK_LIFETIME // SECOND,
        "agent_contract": account_advice.dashboard_linked(),
    }
    return json_response(201, with_warnings(document, warnings), NO_STORE)
