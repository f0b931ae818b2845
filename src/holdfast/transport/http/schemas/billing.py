"""Schemas of `/v1/billing`."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from holdfast.core import errors
from holdfast.transport.http.api import billing
from holdfast.transport.http.schemas.accounts import PlanLimits
from holdfast.transport.http.schemas.agent_contract import AgentContract
from holdfast.transport.http.schemas.operation_schema import OperationSchema, Time, request_body


class PlanOffer(PlanLimits, rename="camel"):
    """A plan with its price and limits."""

    plan_id: str
    plan_name: str
    price_usd: float
    duration_days: int


class PlanList(Struct):
    """All plans."""

    plans: list[PlanOffer]
    agent_contract: AgentContract


class BillingUsage(Struct, rename="camel"):
    """Usage: tasks created in this cycle, and tasks held now."""

    tasks_created: int
    workers_in_use: int


_STATUS = {
    "plan_id": "planId",
    "plan_name": "planName",
    "plan_expires_at": "planExpiresAt",
    "cycle_started_at": "cycleStartedAt",
    "cycle_ends_at": "cycleEndsAt",
}


class BillingStatus(Struct, rename=_STATUS):
    """The plan that was bought and the limits that apply now, which are smaller once it has expired."""

    plan_id: str
    plan_name: str
    plan_expires_at: Time | None
    expired: bool
    cycle_started_at: Time
    cycle_ends_at: Time
    usage: BillingUsage
    limits: PlanLimits
    agent_contract: AgentContract


class PaidPurchase(BillingStatus, rename=_STATUS | {"purchase_id": "purchaseId"}, kw_only=True):
    """The purchase is paid and its plan is active."""

    purchase_id: str
    status: Literal["completed"]
    warnings: list[str] | UnsetType = UNSET


_CHECKOUT = {
    "purchase_id": "purchaseId",
    "order_id": "orderId",
    "checkout_url": "checkoutUrl",
    "plan_id": "planId",
    "plan_name": "planName",
    "price_usd": "priceUsd",
    "checkout_expires_at": "checkoutExpiresAt",
}


class Checkout(Struct, rename=_CHECKOUT):
    """A purchase that waits for a person to approve the payment at `checkoutUrl`."""

    purchase_id: str
    order_id: str
    checkout_url: str
    plan_id: str
    plan_name: str
    price_usd: float
    checkout_expires_at: Time
    agent_contract: AgentContract
    warnings: list[str] | UnsetType = UNSET


_UNPAID = (errors.PaymentFailed, errors.PaymentsOff, errors.PaymentUnavailable)

OPERATION_SCHEMAS = {
    "list_plans": OperationSchema({200: PlanList}, refusals=(errors.Invalid,)),
    "billing_status": OperationSchema({200: BillingStatus}),
    "checkout": OperationSchema(
        {200: Checkout}, body=request_body("CheckoutBody", billing.CheckoutBody, {}), refusals=_UNPAID
    ),
    "verify_payment": OperationSchema(
        {200: PaidPurchase},
        body=request_body("VerifyBody", billing.VerifyBody, {}),
        refusals=(*_UNPAID, errors.PurchaseMissing),
    ),
}
