"""Schemas of registration, `/v1/account` and `/v1/recover`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from holdfast.core import errors
from holdfast.operations.bounds import EXPORT_PAGE
from holdfast.transport.http.api import accounts, export
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Time, request_body, within
from holdfast.transport.http.schemas.tasks import Task


class Registration(Struct, rename={"api_key": "apiKey", "account_id": "accountId"}):
    """A new account and its first key, which is shown only once."""

    api_key: str
    account_id: str
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class AccountPlan(Struct, rename="camel"):
    """The current plan and when it expires."""

    plan_id: str
    plan_name: str
    expires_at: Time | None
    expired: bool


class AccountUsage(Struct, rename="camel"):
    """Usage in this cycle; `tasksLeft` is null if there is no limit."""

    tasks_created: int
    tasks_left: int | None
    workers_in_use: int


class PlanLimits(Struct, rename="camel"):
    """Limits of a plan; null means unlimited."""

    max_workers: int | None
    max_tasks_per_month: int | None
    creates_per_hour: int | None
    claims_per_hour: int | None
    reads_per_hour: int | None
    mutations_per_hour: int | None
    heartbeats_per_hour: int | None
    retention_days: int | None


class AccountCycle(Struct, rename="camel"):
    """The billing cycle that usage is counted in."""

    started_at: Time
    ends_at: Time


class CallerKey(Struct, rename="camel"):
    """The key of this request."""

    key_id: str
    name: str
    scopes: list[str]


class Account(
    Struct, rename={"account_id": "accountId", "require_lease_id": "requireLeaseId", "created_at": "createdAt"}
):
    """An account: its settings, plan and usage."""

    account_id: str
    created_at: Time | None
    require_lease_id: bool
    plan: AccountPlan
    usage: AccountUsage
    limits: PlanLimits
    cycle: AccountCycle
    key: CallerKey
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class DashboardLink(Struct):
    """A link that signs one browser in, once."""

    url: str
    expires_in_seconds: int
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


class ExportPage(Struct, rename={"next_cursor": "nextCursor", "has_more": "hasMore"}):
    """One page of the account's data."""

    records: list[dict[str, Any]]
    next_cursor: str | None
    has_more: bool
    agent_contract: AgentContract


class ExportQuery(Struct):
    """Page size and cursor."""

    limit: Annotated[int, within(EXPORT_PAGE)] = EXPORT_PAGE.default
    cursor: str = ""


class Deleted(Struct, rename={"account_id": "accountId"}):
    """The account was deleted."""

    account_id: str
    deleted: Literal[True]
    agent_contract: AgentContract


class Recovery(Struct):
    """The leases that had expired and were ended now."""

    recovered: int
    tasks: list[Task]
    sessions: list[str]
    jobs: list[str]
    agent_contract: AgentContract


OPERATION_SCHEMAS = {
    "register": OperationSchema(
        {201: Registration},
        body=request_body("RegisterBody", accounts.NoBody, {}),
        refusals=(errors.RegistrationClosed,),
    ),
    "settle_account": OperationSchema({200: Account}, body=request_body("SettleAccountBody", accounts.AccountBody, {})),
    "read_account": OperationSchema({200: Account}),
    "link_dashboard": OperationSchema(
        {201: DashboardLink}, body=request_body("DashboardLinkBody", accounts.NoBody, {})
    ),
    "export_account": OperationSchema(
        {200: ExportPage}, query=ExportQuery, refusals=(errors.CursorTooOld, errors.CursorAhead)
    ),
    "delete_account": OperationSchema({200: Deleted}, body=request_body("DeleteAccountBody", export.DeleteBody, {})),
    "recover": OperationSchema({200: Recovery}, body=request_body("RecoverBody", accounts.NoBody, {})),
}
