"""`/v1/keys`, `/v1/account`, `/v1/recover`."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from holdfast.transport.http import accounts
from holdfast.transport.http.schemas.contract import AgentContract
from holdfast.transport.http.schemas.shape import Shape, Time, described
from holdfast.transport.http.schemas.tasks import Task


class Registration(Struct, rename={"api_key": "apiKey", "account_id": "accountId"}):
    """A new account and its first key, which is shown this once."""

    api_key: str
    account_id: str
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class AccountSettings(
    Struct, rename={"account_id": "accountId", "require_lease_id": "requireLeaseId", "created_at": "createdAt"}
):
    """How an account is served."""

    account_id: str
    require_lease_id: bool
    agent_contract: AgentContract
    created_at: Time | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class Recovery(Struct):
    """What had run out and is over now."""

    recovered: int
    tasks: list[Task]
    sessions: list[str]
    jobs: list[str]
    agent_contract: AgentContract


SHAPES = {
    "register": Shape({201: Registration}, body=described("RegisterBody", accounts.NoBody)),
    "settle_account": Shape({200: AccountSettings}, body=described("SettleAccountBody", accounts.AccountBody)),
    "recover": Shape({200: Recovery}, body=described("RecoverBody", accounts.NoBody)),
}
