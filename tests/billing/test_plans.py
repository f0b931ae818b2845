"""The list of plans and the billing status, with and without a merchant."""

import pytest
from msgspec.structs import replace

from holdfast.core.account import Account
from holdfast.core.row import SECOND
from tests.billing.purchases import (
    CHECKOUT,
    PAID_PLANS,
    THIRTY_DAYS,
    approved_purchase,
    completed,
    event_kinds,
    new_account,
    payments_off,
    request_checkout,
    status_of,
    verify,
)
from tests.compat.octostore.expect import assert_agent_contract
from tests.compat.octostore.server import bearer
from tests.compat.orchestrion import contracts
from tests.compat.orchestrion.expect import assert_lasts, claimed, envelope, instant, success
from tests.store_inspection import opened
from tests.support import put

FREE_LIMITS = {"maxWorkers": 2, "maxTasksPerMonth": 200, "createsPerHour": 120, "retentionDays": 7}
PRO_LIMITS = {"maxWorkers": 25, "maxTasksPerMonth": 25_000, "claimsPerHour": 4_000, "createsPerHour": 2_000}


def test_the_plans_can_be_read_without_a_key(server):
    body = success(server.anyone.get("/v1/billing/plans"))
    plans = {plan["planId"]: plan for plan in body["plans"]}
    assert list(plans) == ["free", *PAID_PLANS]
    prices = {plan_id: (plan["planName"], plan["priceUsd"]) for plan_id, plan in plans.items()}
    assert prices == {"free": ("Free", 0), **PAID_PLANS}
    assert plans["free"].items() >= FREE_LIMITS.items()
    assert plans["pro"].items() >= (PRO_LIMITS | {"retentionDays": 60, "durationDays": 30}).items()
    assert_agent_contract(body, error=False)


def test_a_key_in_the_address_of_the_plans_is_refused(server, account):
    assert envelope(server.anyone.get(f"/v1/billing/plans?key={account.token}"), 400)["error"] == "invalid_request"


@pytest.mark.parametrize(
    ("method", "path"), [("get", "status"), ("post", "checkout"), ("post", "verify")], ids=lambda word: word
)
def test_everything_else_needs_a_key(server, method, path):
    answer = getattr(server.anyone, method)(f"/v1/billing/{path}")
    assert envelope(answer, 401)["error"] == "missing_api_key"


def test_a_new_account_has_the_servers_default_plan(account):
    status = status_of(account)
    assert (status["planId"], status["planName"]) == ("free", "Free")
    assert (status["planExpiresAt"], status["expired"]) == (None, False)
    assert status["limits"].items() >= FREE_LIMITS.items()
    assert instant(status["cycleEndsAt"]) - instant(status["cycleStartedAt"]) == THIRTY_DAYS
    assert_lasts(status["cycleEndsAt"], THIRTY_DAYS)


def test_the_status_counts_what_is_used(account):
    assert status_of(account)["usage"] == {"tasksCreated": 0, "workersInUse": 0}
    account.create()
    account.create()
    held = account.claim().json
    assert status_of(account)["usage"] == {"tasksCreated": 2, "workersInUse": 1}
    account.complete(held["id"])
    assert status_of(account)["usage"] == {"tasksCreated": 2, "workersInUse": 0}


def test_a_bought_plan_starts_a_new_cycle_and_raises_the_limits_at_once(account, paypal):
    for _ in range(3):
        account.create()
    for _ in range(2):
        claimed(account.claim())
    refusal = envelope(account.claim(), 429)
    assert refusal["error"] == "max_workers_reached"
    assert refusal["agent_contract"]["billing_context"] == {"plan": "free", "workers_in_use": 2, "workers_limit": 2}
    body = completed(verify(account, purchase := approved_purchase(account, paypal)), purchase)
    assert body["usage"] == {"tasksCreated": 0, "workersInUse": 2}
    claimed(account.claim())


def test_an_expired_plan_is_reported_and_the_default_limits_apply(server, account, paypal):
    completed(verify(account, purchase := approved_purchase(account, paypal)), purchase)
    with opened(server.store) as store:
        with store.read() as reader:
            row = reader.row(Account, account.id, account.id)
            over = reader.now - SECOND
        put(store, replace(row, plan_expires_at=over))
    status = status_of(account)
    assert (status["planId"], status["expired"]) == ("pro", True)
    assert status["limits"].items() >= FREE_LIMITS.items()
    renew = contracts.action("renew_plan", CHECKOUT, best=True)
    assert contracts.plain(status["agent_contract"])["next_actions"][0] == renew
    again = completed(verify(account, purchase := approved_purchase(account, paypal)), purchase)
    assert_lasts(again["planExpiresAt"], THIRTY_DAYS)
    assert event_kinds(account, f"account:{account.id}")[-1] == "account.upgraded"


def test_a_server_without_a_merchant_lists_plans_and_refuses_payments(closed_shop):
    account = new_account(closed_shop)
    assert len(success(closed_shop.anyone.get("/v1/billing/plans"))["plans"]) == 4
    status = status_of(account)
    assert status["planId"] == "self-hosted"
    assert set(status["limits"].values()) == {None}
    for answer in (request_checkout(account), verify(account, {"purchaseId": "pur_1"})):
        assert "not configured" in payments_off(answer)["message"]


def test_an_account_without_limits_cannot_buy_a_plan(server, paypal):
    """The server's own account is never limited."""
    orders = len(paypal.orders)
    answer = request_checkout(server.user("alice-1"))
    assert "nothing to buy" in envelope(answer, 400)["message"]
    assert len(paypal.orders) == orders


def test_a_verification_with_an_unknown_key_is_refused(account, paypal, server):
    impostor = bearer(server.port, "hf_live_" + "0" * 32 + "_000000")
    assert envelope(verify(impostor, approved_purchase(account, paypal)), 401)["error"] == "invalid_api_key"
