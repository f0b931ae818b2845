"""`/v1/billing`: plans, an account's plan and usage, and payments.

The provider is called outside any transaction. The payment is then stored together with the plan, so a server
that dies in between has lost nothing: verifying again finds the payment at the provider.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from holdfast.billing.provider import (
    Declined,
    NotApproved,
    Order,
    OrderRequest,
    PaymentError,
    PaymentProvider,
    Unavailable,
)
from holdfast.core import account as accounts
from holdfast.core.account import Account
from holdfast.core.errors import Invalid, PaymentFailed, PaymentsOff, PaymentUnavailable, PurchaseMissing
from holdfast.core.names import is_storable
from holdfast.core.plan import SELF_HOSTED, Plan
from holdfast.core.purchase import COMPLETED, USD, Capture, Purchase, is_for_sale, is_unlimited
from holdfast.engine.verbs.billing import BeginPurchase, CompletePurchase, FailPurchase
from holdfast.operations.operation import DISCOVERY
from holdfast.store.contract import Reader
from holdfast.transport.advice import billing as billing_advice
from holdfast.transport.http.api.billing_documents import purchase_document, status_document
from holdfast.transport.http.bodies.checks import check_key_in_query
from holdfast.transport.http.bodies.parsing import read_body
from holdfast.transport.http.context import HandlerContext
from holdfast.transport.http.request import Request, Response, json_response, with_warnings
from holdfast.transport.ids import ids
from holdfast.transport.plans import plan_document

log = logging.getLogger("holdfast.billing")


class CheckoutBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The plan to buy."""

    plan_id: str


class VerifyBody(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The purchase to verify."""

    purchase_id: str


# -- reading -----------------------------------------------------------------------------------------------------


async def list_plans(ctx: HandlerContext, request: Request) -> Response:
    """Every plan except the one for self-hosted servers."""
    check_key_in_query(request)
    await ctx.charge_address(request, DISCOVERY)
    plans = [plan_document(plan) for plan in ctx.settings.plans.values() if plan.id != SELF_HOSTED]
    return json_response(200, {"plans": plans, "agent_contract": billing_advice.plans_listed()})


async def billing_status(ctx: HandlerContext, request: Request) -> Response:
    """The caller's plan, its limits and its usage."""
    await ctx.authenticate(request)
    return json_response(200, await _billing_status(ctx, request.by.account))


async def _billing_status(ctx: HandlerContext, account_id: str) -> dict[str, Any]:
    def query_status(reader: Reader) -> dict[str, Any]:
        account = reader.row(Account, account_id, account_id) or Account(account_id, account_id)
        allowance = accounts.allowance(account, ctx.settings.plans, ctx.settings.plan)
        return status_document(allowance, *reader.usage(account_id), reader.now)

    return await ctx.read(query_status)


# -- buying ------------------------------------------------------------------------------------------------------


async def checkout(ctx: HandlerContext, request: Request) -> Response:
    """Create an order with the provider. If the server dies before it is stored, its URL is lost and cannot be paid."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, CheckoutBody)
    plan = _find_plan(ctx, body.plan_id)
    payments = _payments(ctx)
    _check_has_limits(request)
    purchase_id = "pur_" + ids.ulid()
    order = await _create_order(ctx, payments, plan, purchase_id)
    purchase = await ctx.run(
        BeginPurchase(
            account=request.by.account,
            cause=request.cause(),
            purchase_id=purchase_id,
            plan=plan,
            provider=payments.name,
            order_id=order.id,
            checkout_url=order.approval_url,
        )
    )
    return json_response(200, with_warnings(purchase_document(purchase, plan), warnings))


async def verify_payment(ctx: HandlerContext, request: Request) -> Response:
    """Capture the payment of an approved order and activate its plan. Repeating the request is safe."""
    await ctx.authenticate(request)
    body, warnings, _ = await read_body(request, VerifyBody)
    purchase = await _find_purchase(ctx, request.by.account, body.purchase_id)
    if purchase is None or purchase.state != COMPLETED:
        payments = _payments(ctx)
        if purchase is None:
            raise PurchaseMissing("there is no such purchase")
        capture = await _capture(ctx, payments, request, purchase)
        await _complete(ctx, request, purchase, capture)
    document = await _billing_status(ctx, purchase.account)
    return json_response(200, with_warnings(document | {"purchaseId": purchase.id, "status": COMPLETED}, warnings))


def _find_plan(ctx: HandlerContext, plan_id: str) -> Plan:
    plan = ctx.settings.plans.get(plan_id)
    if plan is None or not is_for_sale(plan):
        message = "`planId` must be a plan that has a price"
        raise Invalid(message, [{"pointer": "/planId", "code": "unknown_plan", "message": message}])
    return plan


def _payments(ctx: HandlerContext) -> PaymentProvider:
    if ctx.payments is None:
        raise PaymentsOff("payments are not configured on this server", reason="not_set_up")
    return ctx.payments


def _check_has_limits(request: Request) -> None:
    """Refuse a purchase by an account that has no limits without it."""
    assert request.allowance is not None
    if is_unlimited(request.allowance.fallback):
        raise Invalid("this account has no limits, so there is nothing to buy")


async def _create_order(ctx: HandlerContext, payments: PaymentProvider, plan: Plan, purchase_id: str) -> Order:
    order_request = OrderRequest(
        purchase_id=purchase_id,
        description=f"Holdfast {plan.name}, {plan.duration_days} days",
        cents=plan.price_cents,
        currency=USD,
        return_url=f"{ctx.settings.home}/?approved={purchase_id}",
        cancel_url=f"{ctx.settings.home}/?cancelled={purchase_id}",
    )
    try:
        return await payments.create_order(order_request)
    except PaymentError as error:
        raise _unavailable(purchase_id, error) from None


async def _find_purchase(ctx: HandlerContext, account_id: str, purchase_id: str) -> Purchase | None:
    if not is_storable(purchase_id):
        return None
    return await ctx.read(lambda reader: reader.row(Purchase, account_id, purchase_id))


async def _capture(ctx: HandlerContext, payments: PaymentProvider, request: Request, purchase: Purchase) -> Capture:
    try:
        return await payments.capture(purchase.order_id)
    except Unavailable as error:
        raise _unavailable(purchase.id, error) from None
    except NotApproved as error:
        raise PaymentFailed(
            f"{error}; a person must approve the payment, then verify again", reason="not_approved"
        ) from None
    except Declined as error:
        await ctx.run(FailPurchase(account=purchase.account, cause=request.cause(), purchase_id=purchase.id))
        raise PaymentFailed(str(error), reason="declined") from None


async def _complete(ctx: HandlerContext, request: Request, purchase: Purchase, capture: Capture) -> None:
    command = CompletePurchase(
        account=purchase.account, cause=request.cause(), purchase_id=purchase.id, capture=capture
    )
    try:
        await ctx.run(command)
    except PaymentFailed:
        # The payment was taken but does not match the price: an operator must refund it.
        log.error("purchase %s: the amount of capture %s is not the price", purchase.id, capture.id)  # noqa: TRY400 - expected
        raise
    ctx.access.accounts.note_change()


def _unavailable(purchase_id: str, error: PaymentError) -> PaymentUnavailable:
    log.warning("purchase %s: %s", purchase_id, error)
    return PaymentUnavailable(str(error))
