"""Documents about purchases and an account's plan."""

from __future__ import annotations

from typing import Any

from holdfast.core.plan import CYCLE, Allowance, Plan, Usage
from holdfast.core.purchase import Purchase
from holdfast.core.row import Instant
from holdfast.transport.advice import billing as billing_advice
from holdfast.transport.plans import limits_document
from holdfast.transport.times import milliseconds, milliseconds_or_none


def status_document(allowance: Allowance, usage: Usage, workers: int, now: Instant) -> dict[str, Any]:
    """The plan that was bought, whether it has expired, and the limits in force."""
    began, is_expired = allowance.cycle(now), allowance.is_expired(now)
    return {
        "planId": allowance.plan.id,
        "planName": allowance.plan.name,
        "planExpiresAt": milliseconds_or_none(allowance.until),
        "expired": is_expired,
        "cycleStartedAt": milliseconds(began),
        "cycleEndsAt": milliseconds(began + CYCLE),
        "usage": {"tasksCreated": usage.in_cycle(began), "workersInUse": workers},
        "limits": limits_document(allowance.in_force(now)),
        "agent_contract": billing_advice.plan_expired() if is_expired else billing_advice.plan_active(),
    }


def purchase_document(purchase: Purchase, plan: Plan) -> dict[str, Any]:
    """What a person must pay, and where."""
    return {
        "purchaseId": purchase.id,
        "orderId": purchase.order_id,
        "checkoutUrl": purchase.checkout_url,
        "planId": plan.id,
        "planName": plan.name,
        "priceUsd": purchase.price_cents / 100,
        "checkoutExpiresAt": milliseconds(purchase.expires_at),
        "agent_contract": billing_advice.checkout_created(),
    }
