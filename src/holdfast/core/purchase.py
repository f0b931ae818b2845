"""A purchase: a plan that somebody wants to pay for, from the first ask to the money.

Money decides. A purchase is completed by a capture of exactly its price and by nothing else; the same capture heard
of twice changes nothing.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from holdfast.core.account import Account
from holdfast.core.errors import PaymentFailed
from holdfast.core.plan import CLAIM, CREATE, DAY, HEARTBEAT, MUTATION, READ, Plan
from holdfast.core.row import SECOND, Instant, Row

USD = "USD"
CREATED, COMPLETED, FAILED = "created", "completed", "failed"
TIME_TO_PAY: Instant = 3 * 3600 * SECOND

LIMIT_CLASSES = (CREATE, CLAIM, READ, MUTATION, HEARTBEAT)
_LIMITS = ("max_workers", "tasks_per_month", *(f"{name}s_per_hour" for name in LIMIT_CLASSES))


class Purchase(Row, frozen=True):
    """What was asked for at which price. The price and the days are those of the day: plans may change meanwhile."""

    table: ClassVar[str] = "purchases"
    noun: ClassVar[str] = "purchase"

    plan: str = ""
    price_cents: int = 0
    currency: str = USD
    days: int = 0
    provider: str = ""
    order_id: str = ""
    checkout_url: str = ""
    state: str = CREATED
    """Only `completed` is final: a payer who was declined may still find another way to pay the same order."""
    capture_id: str | None = None
    created_at: Instant = 0
    expires_at: Instant = 0
    """Until when the provider keeps the checkout open."""
    completed_at: Instant | None = None


class Capture(msgspec.Struct, frozen=True):
    """Money that a provider has taken."""

    id: str
    """One payment, one id: it activates a plan once."""
    purchase_id: str
    """What the provider was told the money is for."""
    cents: int
    currency: str


def is_for_sale(plan: Plan) -> bool:
    """Whether anybody can pay for it."""
    return plan.price_cents > 0


def is_unlimited(plan: Plan) -> bool:
    """Whoever has this would get less for their money."""
    return all(getattr(plan, name) is None for name in _LIMITS)


def begin(purchase: Purchase, plan: Plan, now: Instant) -> Purchase:
    """Somebody wants this plan, at today's price."""
    return replace(
        purchase,
        plan=plan.id,
        price_cents=plan.price_cents,
        days=plan.duration_days,
        state=CREATED,
        created_at=now,
        expires_at=now + TIME_TO_PAY,
    )


def fail(purchase: Purchase) -> Purchase:
    """The payment was declined."""
    return purchase if purchase.state == COMPLETED else replace(purchase, state=FAILED)


def complete(purchase: Purchase, capture: Capture, account: Account, now: Instant) -> tuple[Purchase, Account]:
    """The money is there: the plan holds from now on, and what was left of the last one is added to it.

    The newest tier applies to the whole time, and its months are counted from now.
    """
    check_capture(purchase, capture)
    left_until = now if account.plan_expires_at is None else max(now, account.plan_expires_at)
    return (
        replace(purchase, state=COMPLETED, capture_id=capture.id, completed_at=now),
        replace(
            account,
            plan=purchase.plan,
            plan_expires_at=left_until + purchase.days * DAY,
            cycle_anchor=now,
        ),
    )


def check_capture(purchase: Purchase, capture: Capture) -> None:
    """Money that is not the price of this purchase buys nothing."""
    paid, price = (capture.cents, capture.currency), (purchase.price_cents, purchase.currency)
    if paid != price or capture.purchase_id != purchase.id:
        message = "what was paid does not match the price of this purchase; nothing was activated"
        raise PaymentFailed(message, reason="mismatch")
