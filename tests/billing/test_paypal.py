"""The PayPal provider over HTTP: a purchase is charged once, and each failure raises its own error."""

import asyncio
import logging
import traceback
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from holdfast.billing.paypal import PayPal
from holdfast.billing.provider import Declined, NotApproved, OrderRequest, Unavailable
from holdfast.core.purchase import Capture
from tests.billing.fake_paypal import CLIENT_ID, PAYPAL_MESSAGE, SECRET

ORDER_REQUEST = OrderRequest(
    "pur_1", "Holdfast Pro, 30 days", 2499, "USD", "http://here.test/?paid", "http://here.test/?cancelled"
)
TOKEN = ("POST", "/v1/oauth2/token")


@asynccontextmanager
async def merchant(new_paypal, secret=SECRET, seconds=5.0):
    """The provider, closed after the test."""
    provider = PayPal(CLIENT_ID, secret, new_paypal.url, seconds)
    try:
        yield provider
    finally:
        await provider.close()


def talk(new_paypal, *steps, **how):
    """Run steps one after the other with one provider; their results."""

    async def run():
        async with merchant(new_paypal, **how) as provider:
            return [await step(provider) for step in steps]

    return asyncio.run(run())


def create(order=ORDER_REQUEST):
    return lambda provider: provider.create_order(order)


def capture(order_id):
    return lambda provider: provider.capture(order_id)


@pytest.fixture
def order(new_paypal):
    """An order that is not approved."""
    return talk(new_paypal, create())[0]


@pytest.fixture
def approved_purchase(new_paypal, order):
    new_paypal.approve(order.id)
    return order


def test_an_order_names_the_purchase_its_price_and_where_to_approve(new_paypal, order):
    (unit,) = new_paypal.orders[order.id]["purchase_units"]
    assert unit["custom_id"] == unit["invoice_id"] == "pur_1"
    assert unit["amount"] == {"currency_code": "USD", "value": "24.99"}
    assert order.approval_url == f"{new_paypal.url}/checkoutnow?token={order.id}"


def test_the_older_name_of_the_approval_link_is_understood(new_paypal):
    new_paypal.approve_rel = "approve"
    assert talk(new_paypal, create())[0].approval_url.startswith(f"{new_paypal.url}/checkoutnow")


def test_an_order_without_an_approval_link_is_no_order(new_paypal):
    new_paypal.approve_rel = "update"
    with pytest.raises(Unavailable):
        talk(new_paypal, create())


@pytest.mark.parametrize(("cents", "value"), [(999, "9.99"), (5999, "59.99"), (1000, "10.00"), (5, "0.05")])
def test_prices_keep_their_cents(new_paypal, cents, value):
    (order,) = talk(new_paypal, create(replace(ORDER_REQUEST, cents=cents)))
    assert new_paypal.orders[order.id]["purchase_units"][0]["amount"]["value"] == value
    new_paypal.approve(order.id)
    assert talk(new_paypal, capture(order.id))[0].cents == cents


def test_the_same_purchase_gets_the_same_order(new_paypal):
    first, second = talk(new_paypal, create(), create())
    assert first == second
    assert len(new_paypal.orders) == 1
    assert talk(new_paypal, create(replace(ORDER_REQUEST, purchase_id="pur_2")))[0] != first


def test_an_approved_order_is_captured_once(new_paypal, approved_purchase):
    first, second = talk(new_paypal, capture(approved_purchase.id), capture(approved_purchase.id))
    assert first == second == Capture(first.id, "pur_1", 2499, "USD")
    assert new_paypal.charges == [(approved_purchase.id, "24.99 USD")]


def test_captures_at_the_same_time_take_money_once(new_paypal, approved_purchase):
    async def run():
        async with merchant(new_paypal) as one, merchant(new_paypal) as other:
            return await asyncio.gather(
                *(side.capture(approved_purchase.id) for side in (one, other) for _ in range(4))
            )

    captures = asyncio.run(run())
    assert len(set(captures)) == 1
    assert len(new_paypal.charges) == 1


def test_a_payer_who_has_not_approved_is_not_charged(new_paypal, order):
    with pytest.raises(NotApproved):
        talk(new_paypal, capture(order.id))
    assert new_paypal.charges == []
    new_paypal.approve(order.id)
    assert talk(new_paypal, capture(order.id))[0].cents == 2499, "asking too early must not spoil the order"


def test_an_approval_withdrawn_before_the_capture_is_noticed(new_paypal, approved_purchase):
    """The order is approved when it is read, and no longer when the payment is captured."""
    seen = new_paypal._read_order

    def check(order_id):
        status, order = seen(order_id)
        found = dict(order)
        new_paypal.orders[order_id]["status"] = "PAYER_ACTION_REQUIRED"
        return status, found

    new_paypal._read_order = check
    with pytest.raises(NotApproved):
        talk(new_paypal, capture(approved_purchase.id))
    assert ("POST", f"/v2/checkout/orders/{approved_purchase.id}/capture") in new_paypal.requests


def test_an_order_that_paypal_no_longer_has_is_not_approved(new_paypal):
    with pytest.raises(NotApproved):
        talk(new_paypal, capture("ORDER-OF-LAST-YEAR"))


def test_a_declined_card_raises_declined(new_paypal, approved_purchase):
    new_paypal.declines = True
    with pytest.raises(Declined):
        talk(new_paypal, capture(approved_purchase.id))
    assert new_paypal.charges == []


@pytest.mark.parametrize("status", ["DECLINED", "FAILED", "REFUNDED"])
def test_a_completed_order_without_the_money_is_declined(new_paypal, approved_purchase, status):
    new_paypal.capture_status = status
    with pytest.raises(Declined):
        talk(new_paypal, capture(approved_purchase.id))


def test_a_payment_under_review_has_an_unknown_outcome(new_paypal, approved_purchase):
    new_paypal.capture_status = "PENDING"
    with pytest.raises(Unavailable):
        talk(new_paypal, capture(approved_purchase.id))


def test_a_capture_whose_answer_was_lost_is_found_again(new_paypal, approved_purchase):
    new_paypal.lose_answers = True
    with pytest.raises(Unavailable):
        talk(new_paypal, capture(approved_purchase.id))
    new_paypal.lose_answers = False
    (found,) = talk(new_paypal, capture(approved_purchase.id))
    assert found.purchase_id == "pur_1"
    assert len(new_paypal.charges) == 1


def test_a_capture_that_paypal_refuses_to_repeat_is_read_from_the_order(new_paypal, approved_purchase):
    """Another server captured the payment after this one read the order, with a request id that PayPal forgot."""
    talk(new_paypal, capture(approved_purchase.id))
    new_paypal.forgets_request_ids = True
    real, looks = new_paypal._read_order, []

    def check(order_id):
        looks.append(order_id)
        status, found = real(order_id)
        return (status, found | {"status": "APPROVED"}) if len(looks) == 1 else (status, found)

    new_paypal._read_order = check
    (found,) = talk(new_paypal, capture(approved_purchase.id))
    assert found.cents == 2499
    assert len(looks) == 2
    assert len(new_paypal.charges) == 1


def test_a_capture_reports_the_captured_amount(new_paypal, approved_purchase):
    new_paypal.take_instead = {"currency_code": "EUR", "value": "0.01"}
    (found,) = talk(new_paypal, capture(approved_purchase.id))
    assert (found.cents, found.currency) == (1, "EUR")


@pytest.mark.parametrize("value", ["24.999", "-24.99", "24,99", "", "1e3", "NaN"])
def test_an_invalid_amount_is_refused(new_paypal, approved_purchase, value):
    new_paypal.take_instead = {"currency_code": "USD", "value": value}
    with pytest.raises(Unavailable):
        talk(new_paypal, capture(approved_purchase.id))


def test_one_token_serves_many_requests(new_paypal, order):
    new_paypal.requests.clear()
    talk(new_paypal, create(), create(), create())
    assert new_paypal.requests.count(TOKEN) == 1


def test_a_token_that_ends_soon_is_replaced_before_it_is_used(new_paypal):
    new_paypal.token_seconds = 30
    talk(new_paypal, create(), create())
    assert new_paypal.requests.count(TOKEN) == 2


def test_a_revoked_token_is_replaced(new_paypal, approved_purchase):
    async def run():
        async with merchant(new_paypal) as provider:
            await provider.create_order(ORDER_REQUEST)
            new_paypal.expire_tokens()
            return await provider.capture(approved_purchase.id)

    assert asyncio.run(run()).cents == 2499


def test_wrong_credentials_are_unavailable_after_at_most_two_attempts(new_paypal, order):
    new_paypal.requests.clear()
    with pytest.raises(Unavailable):
        talk(new_paypal, create(), secret="another secret")
    assert new_paypal.requests.count(TOKEN) <= 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_provider_that_fails_is_unavailable(new_paypal, approved_purchase, status):
    new_paypal.answer_with = status
    with pytest.raises(Unavailable):
        talk(new_paypal, capture(approved_purchase.id))
    new_paypal.answer_with = None
    assert talk(new_paypal, capture(approved_purchase.id))[0].cents == 2499


def test_a_provider_that_is_gone_is_unavailable(new_paypal, approved_purchase):
    new_paypal.stop()
    with pytest.raises(Unavailable):
        talk(new_paypal, capture(approved_purchase.id))
    new_paypal.start()
    assert talk(new_paypal, capture(approved_purchase.id))[0].cents == 2499


def test_a_slow_provider_is_unavailable_after_the_timeout(new_paypal, approved_purchase):
    new_paypal.delay = 1.0
    with pytest.raises(Unavailable):
        talk(new_paypal, capture(approved_purchase.id), seconds=0.3)


@pytest.mark.parametrize("trouble", ["gone", "slow", "refusing", "in trouble"])
def test_no_error_contains_a_secret_or_text_from_paypal(new_paypal, approved_purchase, trouble, caplog):
    caplog.set_level(logging.DEBUG)

    async def run():
        async with merchant(new_paypal, seconds=0.5) as provider:
            await provider.create_order(ORDER_REQUEST)
            if trouble == "gone":
                new_paypal.stop()
            new_paypal.delay = 1.0 if trouble == "slow" else 0.0
            new_paypal.declines = trouble == "refusing"
            new_paypal.answer_with = 500 if trouble == "in trouble" else None
            try:
                await provider.capture(approved_purchase.id)
            except (Declined, Unavailable):
                return traceback.format_exc() + repr(vars(provider))
            raise AssertionError("it went well")

    output = asyncio.run(run()) + caplog.text
    for secret in (SECRET, "token-canary", PAYPAL_MESSAGE):
        assert secret not in output
