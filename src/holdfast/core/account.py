"""Accounts: one per tenant. No data is shared between accounts."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from holdfast.core.errors import Invalid
from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.plan import SELF_HOSTED, Allowance, Catalogue
from holdfast.core.row import Instant, Row


class Account(Row, frozen=True):
    """The settings and the plan of an account. An account with default settings needs no row."""

    table: ClassVar[str] = "accounts"
    noun: ClassVar[str] = "account"
    booleans: ClassVar[frozenset[str]] = frozenset({"require_lease_id"})

    created_at: Instant = 0
    require_lease_id: bool = False
    """Whether an admin made lease ids mandatory; `requires_lease_id` is the rule."""
    plan: str = ""
    """The plan that was bought; empty means the server's default plan."""
    plan_expires_at: Instant | None = None
    cycle_anchor: Instant = 0
    """When its first quota cycle began."""


def allowance(account: Account, plans: Catalogue, default_plan: str) -> Allowance:
    """The limits of an account. The server's own account is never limited."""
    fallback = plans[SELF_HOSTED if account.id == DEFAULT_ACCOUNT else default_plan]
    plan = plans.get(account.plan, fallback) if account.plan else fallback
    return Allowance(plan, fallback, account.plan_expires_at, account.cycle_anchor or account.created_at)


def requires_lease_id(account: Account) -> bool:
    """Whether workers must send their lease id.

    In the server's own account always. Registered accounts may omit it, as Orchestrion's clients do, until an admin
    makes it mandatory.
    """
    return account.id == DEFAULT_ACCOUNT or account.require_lease_id


def change_settings(account: Account, *, require_lease_id: bool | None) -> Account:
    """Change the settings of an account; None leaves a setting unchanged."""
    if require_lease_id is False and account.id == DEFAULT_ACCOUNT:
        message = "`requireLeaseId` is always true in the server's own account"
        raise Invalid(message, [{"pointer": "/requireLeaseId", "code": "not_allowed", "message": message}])
    return account if require_lease_id is None else replace(account, require_lease_id=require_lease_id)
