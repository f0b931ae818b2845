"""Purchases over HTTP on both databases, with and without failures of PayPal: one charge and one plan each."""

import pytest

from tests.billing.conftest import PUBLIC_URL, shop
from tests.billing.fake_paypal import PAYPAL_MESSAGE, SECRET
from tests.billing.purchases import (
    PAID_PLANS,
    THIRTY_DAYS,
    approved_purchase,
    completed,
    event_kinds,
    expect_checkout,
    new_account,
    not_found,
    payment_failed,
    payments_off,
    request_checkout,
    status_of,
    unavailable,
    verify,
)
from tests.compat.octostore.server import Server
from tests.compat.orchestrion.account import all_at_once
from tests.compat.orchestrion.expect import assert_lasts, envelope, instant


def events_of(account, purchase):
    return event_kinds(account, f"purchase:{purchase['purchaseId']}")


@pytest.mark.parametrize("plan", PAID_PLANS)
def test_a_checkout_returns_the_address_for_the_payment(account, paypal, plan):
    purchase = expect_checkout(request_checkout(account, plan), plan)
    assert purchase["checkoutUrl"] == f"{paypal.url}/checkoutnow?token={purchase['orderId']}"
    assert_lasts(purchase["checkoutExpiresAt"], 3 * 3600)
    (unit,) = paypal.orders[purchase["orderId"]]["purchase_units"]
    assert unit["custom_id"] == purchase["purchaseId"]
    assert float(unit["amount"]["value"]) == purchase["priceUsd"]
    assert status_of(account)["planId"] == "free", "asking is not paying"


def test_the_payer_returns_to_the_public_address(account, paypal):
    seen = []
    create, paypal._create = paypal._create, lambda body: seen.append(body) or create(body)
    purchase = expect_checkout(request_checkout(account))
    paypal._create = create
    experience = seen[0]["payment_source"]["paypal"]["experience_context"]
    assert experience["return_url"] == f"{PUBLIC_URL}/?approved={purchase['purchaseId']}"
    assert experience["cancel_url"] == f"{PUBLIC_URL}/?cancelled={purchase['purchaseId']}"


BAD_PLANS = {
    "free": {"planId": "free"},
    "the server's own": {"planId": "self-hosted"},
    "unknown": {"planId": "platinum"},
    "empty": {"planId": ""},
    "a null": {"planId": "\0"},
    "a number": {"planId": 5},
    "none": {},
}


@pytest.mark.parametrize("body", BAD_PLANS.values(), ids=BAD_PLANS)
def test_a_plan_without_a_price_cannot_be_bought(account, paypal, body):
    requests = len(paypal.requests)
    refusal = envelope(account.post("/v1/billing/checkout", body), 400)
    assert refusal["error"] == "invalid_request"
    assert [error["pointer"] for error in refusal["errors"]] == ["/planId"]
    assert len(paypal.requests) == requests


def test_an_approved_payment_activates_the_plan(account, paypal):
    purchase = approved_purchase(account, paypal)
    body = completed(verify(account, purchase), purchase)
    assert_lasts(body["planExpiresAt"], THIRTY_DAYS)
    assert_lasts(body["cycleEndsAt"], THIRTY_DAYS)
    assert (body["limits"]["maxWorkers"], body["limits"]["retentionDays"]) == (25, 60)
    assert paypal.charged(purchase["orderId"]) == ["24.99 USD"]
    assert status_of(account) == {key: value for key, value in body.items() if key not in {"purchaseId", "status"}}
    assert events_of(account, purchase) == ["purchase.begun", "purchase.completed"]
    assert event_kinds(account, f"account:{account.id}") == ["account.registered", "account.upgraded"]


def test_camel_case_and_snake_case_fields_are_accepted(account, paypal):
    purchase = account.post("/v1/billing/checkout", {"plan_id": "basic"}).json
    paypal.approve(purchase["orderId"])
    completed(account.post("/v1/billing/verify", {"purchase_id": purchase["purchaseId"]}), purchase)


def test_verifying_again_answers_the_same_and_charges_nothing(account, paypal):
    purchase = approved_purchase(account, paypal)
    first = completed(verify(account, purchase), purchase)
    requests = len(paypal.requests)
    assert completed(verify(account, purchase), purchase) == first
    assert len(paypal.requests) == requests, "what is paid needs no provider"
    assert len(paypal.charged(purchase["orderId"])) == 1
    assert events_of(account, purchase) == ["purchase.begun", "purchase.completed"]


def test_concurrent_verifications_report_one_payment(account, paypal):
    purchase = approved_purchase(account, paypal)
    answers = all_at_once(8, lambda _: verify(account, purchase))
    ends = {completed(answer, purchase)["planExpiresAt"] for answer in answers}
    assert len(ends) == 1
    assert paypal.charged(purchase["orderId"]) == ["24.99 USD"]
    assert event_kinds(account, f"account:{account.id}") == ["account.registered", "account.upgraded"]


def test_buying_again_adds_thirty_days_and_activates_the_newest_plan(account, paypal):
    first = approved_purchase(account, paypal, "agency")
    ends = completed(verify(account, first), first)["planExpiresAt"]
    second = approved_purchase(account, paypal, "basic")
    body = completed(verify(account, second), second)
    assert instant(body["planExpiresAt"]) - instant(ends) == THIRTY_DAYS
    assert body["planId"] == "basic"


def test_a_payer_who_has_not_approved_yet_can_do_so_later(account, paypal):
    purchase = expect_checkout(request_checkout(account))
    payment_failed(verify(account, purchase), "not_approved")
    assert status_of(account)["planId"] == "free"
    assert events_of(account, purchase) == ["purchase.begun"]
    paypal.approve(purchase["orderId"])
    completed(verify(account, purchase), purchase)


def test_a_declined_payment_buys_nothing(account, paypal):
    paypal.declines = True
    purchase = approved_purchase(account, paypal)
    payment_failed(verify(account, purchase), "declined")
    assert status_of(account)["planId"] == "free"
    assert paypal.charged(purchase["orderId"]) == []
    assert events_of(account, purchase) == ["purchase.begun", "purchase.failed"]


@pytest.mark.parametrize(
    "amount",
    [{"currency_code": "USD", "value": "0.01"}, {"currency_code": "EUR", "value": "24.99"}],
    ids=["less", "another currency"],
)
def test_money_that_is_not_the_price_activates_nothing(server, account, paypal, amount):
    paypal.take_instead = amount
    purchase = approved_purchase(account, paypal)
    assert "match" in payment_failed(verify(account, purchase), "mismatch")["message"]
    payment_failed(verify(account, purchase), "mismatch")
    assert status_of(account)["planId"] == "free"
    assert events_of(account, purchase) == ["purchase.begun"]
    assert purchase["purchaseId"] in server.log(), "somebody must give the money back"


def test_an_order_that_pays_for_another_purchase_activates_nothing(account, paypal):
    purchase = approved_purchase(account, paypal)
    (unit,) = paypal.orders[purchase["orderId"]]["purchase_units"]
    unit["custom_id"] = "pur_of_somebody_else"
    payment_failed(verify(account, purchase), "mismatch")


def test_unknown_and_foreign_purchases_get_the_same_answer(account, stranger, paypal):
    purchase = approved_purchase(account, paypal)
    for answer in (
        verify(stranger, purchase),
        verify(account, {"purchaseId": "pur_01ARZ3NDEKTSV4RRFFQ69G5FAV"}),
        verify(account, {"purchaseId": "\0"}),
        verify(account, {"purchaseId": ""}),
    ):
        assert not_found(answer)["message"] == "there is no such purchase"
    assert paypal.charged(purchase["orderId"]) == []


@pytest.mark.parametrize("body", [{}, {"purchaseId": 5}, {"purchaseId": None}], ids=["none", "a number", "null"])
def test_verify_requires_a_purchase_id(account, body):
    refusal = envelope(account.post("/v1/billing/verify", body), 400)
    assert [error["pointer"] for error in refusal["errors"]] == ["/purchaseId"]


def gone(paypal):
    paypal.stop()


def failing(paypal):
    paypal.answer_with = 500


def losing_answers(paypal):
    paypal.lose_answers = True


def undecided(paypal):
    paypal.capture_status = "PENDING"


@pytest.mark.parametrize("trouble", [gone, failing, losing_answers])
def test_nothing_is_lost_while_paypal_does_not_answer(account, paypal, trouble):
    purchase = approved_purchase(account, paypal)
    trouble(paypal)
    told_them = unavailable(verify(account, purchase))
    assert PAYPAL_MESSAGE not in str(told_them)
    assert status_of(account)["planId"] == "free"
    paypal.reset()
    completed(verify(account, purchase), purchase)
    assert paypal.charged(purchase["orderId"]) == ["24.99 USD"]


@pytest.mark.parametrize("trouble", [gone, failing])
def test_a_checkout_that_paypal_did_not_answer_can_be_repeated(account, paypal, trouble):
    trouble(paypal)
    unavailable(request_checkout(account))
    paypal.reset()
    expect_checkout(request_checkout(account))


def test_a_payment_under_review_activates_when_it_is_decided(account, paypal):
    undecided(paypal)
    purchase = approved_purchase(account, paypal)
    unavailable(verify(account, purchase))
    (unit,) = paypal.orders[purchase["orderId"]]["purchase_units"]
    unit["payments"]["captures"][0]["status"] = "COMPLETED"
    completed(verify(account, purchase), purchase)


def test_the_merchants_secret_is_in_no_log(server, account, paypal):
    failing(paypal)
    unavailable(request_checkout(account))
    assert SECRET not in server.log()
    assert "token-canary" not in server.log()


def test_two_servers_that_verify_at_once_charge_once(postgres_shop, paypal):
    account = new_account(postgres_shop)
    other = shop(postgres_shop.store, paypal).start()
    try:
        beside = type(account)(other.port, account.headers, id=account.id)
        for _ in range(3):
            purchase = approved_purchase(account, paypal)
            answers = all_at_once(6, lambda n, purchase=purchase: verify(beside if n % 2 else account, purchase))
            assert len({completed(answer, purchase)["planExpiresAt"] for answer in answers}) == 1
            assert len(paypal.charged(purchase["orderId"])) == 1
        assert event_kinds(account, f"account:{account.id}") == ["account.registered", *["account.upgraded"] * 3]
    finally:
        other.close()


def test_a_paid_purchase_is_reported_by_a_server_without_a_merchant(server, account, paypal):
    """Another server on the same store, without the merchant."""
    purchase = approved_purchase(account, paypal)
    completed(verify(account, purchase), purchase)
    other = Server(server.store, PLAN="free", TRUSTED_PROXIES="127.0.0.1").start()
    try:
        beside = type(account)(other.port, account.headers, id=account.id)
        completed(verify(beside, purchase), purchase)
        payments_off(verify(beside, approved_purchase(account, paypal)))
    finally:
        other.close()
