"""`/v1/keys/register`, `/v1/account`, `/v1/recover`: who is served, and how."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import task_contract
from holdfast.core.acl import hash_token
from holdfast.core.lease import Lease
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.principal import format_key
from holdfast.core.session import Session
from holdfast.core.task import Task
from holdfast.engine.identity import RegisterAccount, SettleAccount
from holdfast.engine.recovery import Recover
from holdfast.transport.chance import chance
from holdfast.transport.http.door import Door
from holdfast.transport.http.message import Request, Response, json_response, warned
from holdfast.transport.http.orchestrion import task_document
from holdfast.transport.http.problem import check_key_in_query, read_body
from holdfast.transport.http.query import NO_STORE
from holdfast.transport.times import rfc3339

KEY_BYTES = 24
RECOVERED_AT_ONCE = 1_000


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing is asked."""


class AccountBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What an account can decide."""

    require_lease_id: bool | None = None


async def register(door: Door, request: Request) -> Response:
    """A new account and its first key, which is shown this once."""
    check_key_in_query(request)
    _, warnings, _ = await read_body(request, NoBody)
    key = format_key(chance.draw() + chance.draw()[: KEY_BYTES - 16])
    account = await door.run(
        RegisterAccount(
            account="acct_" + chance.ulid(),
            cause=request.cause(),
            principal_id=chance.uuid(),
            key_hash=hash_token(key),
        )
    )
    document: dict[str, Any] = {"apiKey": key, "accountId": account.id}
    document["agent_contract"] = task_contract.go_on()
    return json_response(201, warned(document, warnings), NO_STORE)


async def settle_account(door: Door, request: Request) -> Response:
    """Decide how the account is served."""
    await door.authenticate(request)
    body, warnings, _ = await read_body(request, AccountBody)
    account = await door.run(
        SettleAccount(account=request.by.account, cause=request.cause(), require_lease_id=body.require_lease_id)
    )
    door.remember_account(account)
    document: dict[str, Any] = {"accountId": account.id, "requireLeaseId": account.require_lease_id}
    if account.id != DEFAULT_ACCOUNT:
        document["createdAt"] = rfc3339(account.created_at)
    document["agent_contract"] = task_contract.go_on()
    return json_response(200, warned(document, warnings))


async def recover(door: Door, request: Request) -> Response:
    """End now whatever has run out in this account; the sweep does the same a moment later."""
    await door.authenticate(request)
    await read_body(request, NoBody)
    account = request.by.account
    due = await door.read(lambda reader: reader.due(RECOVERED_AT_ONCE, account))
    recovered = await door.run(Recover(account=account, cause=request.cause(), due=tuple(due)))
    return json_response(
        200,
        {
            "recovered": len(recovered.over),
            "tasks": [task_document(row, recovered.now) for row in recovered.over if isinstance(row, Task)],
            "sessions": [row.id for row in recovered.over if isinstance(row, Session)],
            "jobs": [row.id for row in recovered.over if isinstance(row, Lease)],
            "agent_contract": task_contract.recovered(),
        },
    )
