"""Purchases on every store: plan and purchase change together, once for each payment, and are logged."""

from __future__ import annotations

import pytest

from holdfast.core.account import Account
from holdfast.core.errors import PaymentFailed, PurchaseMissing, ValueRefused
from holdfast.core.event import Event
from holdfast.core.plan import DAY, PLANS
from holdfast.core.purchase import COMPLETED, CREATED, FAILED, Capture, Purchase
from holdfast.core.row import SECOND
from holdfast.engine.cleanup import Cleanup
from holdfast.engine.retention import Retention
from holdfast.engine.verbs.accounts import ChangeAccountSettings
from holdfast.engine.verbs.billing import BeginPurchase, CompletePurchase, FailPurchase
from tests.support import CAUSE, START, check_log, every, run, transact

TENANT = "acct_1"


def begin(purchase_id="pur_1", plan="pro", account=TENANT):
    return BeginPurchase(
        account=account,
        cause=CAUSE,
        purchase_id=purchase_id,
        plan=PLANS[plan],
        provider="paypal",
        order_id=f"order of {purchase_id}",
        checkout_url="https://pay.test/1",
    )


def complete(purchase_id="pur_1", capture="cap_1", cents=2499, account=TENANT):
    money = Capture(capture, purchase_id, cents, "USD")
    return CompletePurchase(account=account, cause=CAUSE, purchase_id=purchase_id, capture=money)


def fail(purchase_id="pur_1", account=TENANT):
    return FailPurchase(account=account, cause=CAUSE, purchase_id=purchase_id)


def the_account(store):
    (account,) = every(store, Account)
    return account


def kinds(store):
    return [event.kind for event in every(store, Event)]


def test_a_payment_changes_purchase_and_plan_in_one_transaction(store, clock):
    ordered = run(store, begin())
    assert (ordered.state, ordered.created_at, ordered.expires_at) == (CREATED, START, START + 3 * 3600 * SECOND)
    clock.advance(60)
    paid = run(store, complete())
    assert (paid.state, paid.capture_id, paid.completed_at) == (COMPLETED, "cap_1", clock.now)
    account = the_account(store)
    assert (account.plan, account.plan_expires_at, account.cycle_anchor) == ("pro", clock.now + 30 * DAY, clock.now)
    assert every(store, Purchase) == [paid]
    assert kinds(store) == ["purchase.begun", "account.upgraded", "purchase.completed"]
    check_log(store)


def test_a_purchase_keeps_the_settings_of_the_account(store):
    run(store, ChangeAccountSettings(account=TENANT, cause=CAUSE, require_lease_id=True))
    run(store, begin())
    run(store, complete())
    assert the_account(store).require_lease_id is True
    check_log(store)


def test_completing_again_returns_the_purchase_and_changes_nothing(store, clock):
    run(store, begin())
    first = run(store, complete())
    kinds_before = kinds(store)
    clock.advance(3600)
    assert run(store, complete()) == first
    assert run(store, complete(capture="cap_2", cents=1)) == first
    assert kinds(store) == kinds_before
    assert the_account(store).plan_expires_at == START + 30 * DAY


def test_two_concurrent_reports_of_one_payment_activate_once(store):
    run(store, begin())
    first, second = transact(store, complete(), complete())
    assert first == second
    assert the_account(store).plan_expires_at == START + 30 * DAY
    check_log(store)


def test_two_purchases_add_their_time_and_the_newest_plan_applies(store, clock):
    run(store, begin("pur_1", "agency"))
    run(store, begin("pur_2", "basic"))
    run(store, complete("pur_1", "cap_1", 5999))
    clock.advance(86_400)
    run(store, complete("pur_2", "cap_2", 999))
    account = the_account(store)
    assert (account.plan, account.plan_expires_at, account.cycle_anchor) == ("basic", START + 60 * DAY, clock.now)
    check_log(store)


def test_a_payment_of_another_amount_changes_nothing(store):
    ordered = run(store, begin())
    with pytest.raises(PaymentFailed):
        run(store, complete(cents=1))
    assert every(store, Purchase) == [ordered]
    assert every(store, Account) == []
    assert run(store, complete()).state == COMPLETED


def test_a_purchase_of_another_account_is_missing(store):
    run(store, begin())
    for command in (complete(account="acct_2"), complete("pur_2"), fail(account="acct_2")):
        with pytest.raises(PurchaseMissing):
            run(store, command)
    assert every(store, Account) == []


def test_a_declined_payment_is_logged_once_and_can_still_be_paid(store):
    run(store, begin())
    assert run(store, fail()).state == FAILED
    assert run(store, fail()).state == FAILED
    assert run(store, complete()).state == COMPLETED
    assert run(store, fail()).state == COMPLETED
    assert kinds(store) == ["purchase.begun", "purchase.failed", "account.upgraded", "purchase.completed"]
    check_log(store)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_database_refuses_one_payment_for_two_purchases(opened, clock, kind):
    """Even if a provider answered two orders with one capture."""
    store = opened(kind, clock)
    run(store, begin("pur_1"))
    run(store, begin("pur_2", account="acct_2"))
    run(store, complete("pur_1", "cap_1"))
    with pytest.raises(ValueRefused):
        run(store, complete("pur_2", "cap_1", account="acct_2"))
    assert [row.state for row in every(store, Purchase)] == [COMPLETED, CREATED]
    assert len(every(store, Account)) == 1
    check_log(store)


def test_a_purchase_stays_valid_after_retention_removed_its_first_events(store, clock):
    """Retention removes the first events after it wrote a snapshot of the purchase."""
    run(store, begin())
    paid = run(store, complete())
    clock.advance(100 * 86_400)
    cleanup = Cleanup(store, lambda commands: transact(store, *commands) if commands else [], Retention())
    while cleanup.run():
        pass
    assert sorted(kinds(store)) == ["account.snapshot", "purchase.snapshot"]
    (kept,) = every(store, Purchase)
    assert (kept.state, kept.capture_id, kept.completed_at) == (paid.state, paid.capture_id, paid.completed_at)
    assert run(store, complete()).state == COMPLETED
    check_log(store)


def test_the_stored_purchase_is_the_one_that_was_returned(store):
    ordered = run(store, begin())
    assert every(store, Purchase) == [ordered]
