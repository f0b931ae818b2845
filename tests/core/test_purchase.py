"""Purchases: exactly the price activates a plan, once, and the time left of the previous plan is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.core.account import Account
from holdfast.core.errors import PaymentFailed
from holdfast.core.plan import DAY, FREE, PLANS, SELF_HOSTED, Plan
from holdfast.core.purchase import (
    COMPLETED,
    CREATED,
    FAILED,
    Capture,
    Purchase,
    begin,
    complete,
    fail,
    is_for_sale,
    is_unlimited,
)
from holdfast.core.row import SECOND

NOW = 1_700_000_000 * SECOND
PRO = PLANS["pro"]
ORDERED = begin(Purchase("acct_1", "pur_1", provider="paypal", order_id="o1"), PRO, NOW)
PAID = Capture("cap_1", "pur_1", 2499, "USD")
NEW_ACCOUNT = Account("acct_1", "acct_1", version=1)


def test_a_purchase_keeps_the_price_at_which_it_began():
    assert (ORDERED.plan, ORDERED.price_cents, ORDERED.currency, ORDERED.days) == ("pro", 2499, "USD", 30)
    assert (ORDERED.state, ORDERED.created_at, ORDERED.expires_at) == (CREATED, NOW, NOW + 3 * 3600 * SECOND)


def test_a_capture_of_the_price_activates_the_plan_for_its_days():
    later = NOW + 60 * SECOND
    purchase, account = complete(ORDERED, PAID, NEW_ACCOUNT, later)
    assert (purchase.state, purchase.capture_id, purchase.completed_at) == (COMPLETED, "cap_1", later)
    assert (account.plan, account.plan_expires_at, account.cycle_anchor) == ("pro", later + 30 * DAY, later)


@pytest.mark.parametrize(("left", "expected"), [(10 * DAY, 40 * DAY), (0, 30 * DAY), (-10 * DAY, 30 * DAY)])
def test_a_second_purchase_adds_the_time_left_but_no_lapsed_time(left, expected):
    account = replace(NEW_ACCOUNT, plan="basic", plan_expires_at=NOW + left, cycle_anchor=NOW - 20 * DAY)
    _, account = complete(ORDERED, PAID, account, NOW)
    assert (account.plan, account.plan_expires_at, account.cycle_anchor) == ("pro", NOW + expected, NOW)


WRONG = {
    "a cent less": replace(PAID, cents=2498),
    "a cent more": replace(PAID, cents=2500),
    "nothing": replace(PAID, cents=0),
    "another currency": replace(PAID, currency="EUR"),
    "the money of another purchase": replace(PAID, purchase_id="pur_2"),
}


@pytest.mark.parametrize("capture", WRONG.values(), ids=WRONG)
def test_a_capture_of_another_amount_activates_nothing(capture):
    with pytest.raises(PaymentFailed) as refusal:
        complete(ORDERED, capture, NEW_ACCOUNT, NOW)
    assert refusal.value.facts == {"reason": "mismatch"}


def test_a_declined_purchase_can_still_be_paid_and_a_paid_one_never_fails():
    declined = fail(ORDERED)
    assert declined.state == FAILED
    paid, _ = complete(declined, PAID, NEW_ACCOUNT, NOW)
    assert paid.state == COMPLETED
    assert fail(paid) == paid


@given(left=st.integers(-400 * DAY, 400 * DAY), days=st.integers(1, 365), wait=st.integers(0, 400 * DAY))
def test_a_second_purchase_never_shortens_a_plan(left, days, wait):
    now = NOW + wait
    before = replace(NEW_ACCOUNT, plan="basic", plan_expires_at=NOW + left)
    _, after = complete(replace(ORDERED, days=days), PAID, before, now)
    assert after.plan_expires_at == max(before.plan_expires_at, now) + days * DAY


def test_only_plans_with_a_price_are_for_sale():
    assert {plan.id for plan in PLANS.values() if is_for_sale(plan)} == {"basic", "pro", "agency"}


def test_a_plan_is_unlimited_if_it_has_no_limit():
    assert is_unlimited(PLANS[SELF_HOSTED])
    assert not is_unlimited(PLANS[FREE])
    assert not is_unlimited(Plan(id="x", name="X", heartbeats_per_hour=1))
