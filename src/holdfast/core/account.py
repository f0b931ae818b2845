"""An account: one tenant. Nothing ever crosses from one to another."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from holdfast.core.names import DEFAULT_ACCOUNT
from holdfast.core.plan import SELF_HOSTED, Allowance, Catalogue
from holdfast.core.row import Instant, Row


class Account(Row, frozen=True):
    """What a tenant has settled for itself. One that has settled nothing needs no row."""

    table: ClassVar[str] = "accounts"
    noun: ClassVar[str] = "account"
    booleans: ClassVar[frozenset[str]] = frozenset({"require_lease_id"})

    created_at: Instant = 0
    require_lease_id: bool = False
    """Workers must show their lease id: the rule of clients that know none is off."""
    plan: str = ""
    """What was bought; empty is what this server gives to everybody."""
    plan_expires_at: Instant | None = None
    cycle_anchor: Instant = 0
    """From when on its months are counted."""


def allowance(account: Account, plans: Catalogue, given: str) -> Allowance:
    """What an account may do; `given` is the plan of those that bought none. The server's own is never limited."""
    if account.id == DEFAULT_ACCOUNT:
        given = SELF_HOSTED
    fallback = plans[given]
    plan = plans.get(account.plan, fallback) if account.plan else fallback
    return Allowance(plan, fallback, account.plan_expires_at, account.cycle_anchor or account.created_at)


def change_settings(account: Account, *, require_lease_id: bool | None) -> Account:
    """Change what is given."""
    return account if require_lease_id is None else replace(account, require_lease_id=require_lease_id)
