"""Purchases of plans, from the checkout to the payment.

A purchase is completed only by a capture of exactly its price. A capture that is reported twice changes nothing more.
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
    """A plan ordered at a price. Price and days are fixed when it begins: plans may change meanwhile."""

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
    """Only `completed` is final: a payer whose payment was declined may still pay the same order in another way."""
    capture_id: str | None = None
    created_at: Instant = 0
    expires_at: Instant = 0
    """Until when the provider keeps the checkout open."""
    completed_at: Instant | None = None


class Capture(msgspec.Struct, frozen=True):
    """A payment that the provider has taken."""

    id: str
    """Unique per payment, so that it activates a plan once."""
    purchase_id: str
    """The purchase that the provider recorded with the payment."""
    cents: int
    currency: str


def is_for_sale(plan: Plan) -> bool:
    """Whether the plan has a price."""
    return plan.price_cents > 0


def is_unlimited(plan: Plan) -> bool:
    """Whether the plan has no limits, so that any purchase would give less."""
    return all(getattr(plan, name) is None for name in _LIMITS)


def begin(purchase: Purchase, plan: Plan, now: Instant) -> Purchase:
    """Order a plan at its current price."""
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
    """Record that the payment was declined; a completed purchase stays completed."""
    return purchase if purchase.state == COMPLETED else replace(purchase, state=FAILED)


def complete(purchase: Purchase, capture: Capture, account: Account, now: Instant) -> tuple[Purchase, Account]:
    """Activate the plan from now on, and add the time left of the previous one.

    The new plan applies to the whole time, and its quota cycles are counted from now.
    """
    check_capture(purchase, capture)
    paid_until = now if account.plan_expires_at is None else max(now, account.plan_expires_at)
    return (
        replace(purchase, state=COMPLETED, capture_id=capture.id, completed_at=now),
        replace(
            account,
            plan=purchase.plan,
            plan_expires_at=paid_until + purchase.days * DAY,
            cycle_anchor=now,
        ),
    )


def check_capture(purchase: Purchase, capture: Capture) -> None:
    """Refuse a payment that does not match the price of this purchase."""
    paid, price = (capture.cents, capture.currency), (purchase.price_cents, purchase.currency)
    if paid != price or capture.purchase_id != purchase.id:
        message = "the payment does not match the price of this purchase; nothing was activated"
        raise PaymentFailed(message, reason="mismatch")
