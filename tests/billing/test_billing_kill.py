"""`kill -9` between payment and activation: the payment is found again, and no purchase is charged twice."""

import http.client
import threading

import pytest

from tests.billing.conftest import shop
from tests.billing.purchases import approved_purchase, completed, event_kinds, new_account, status_of, verify
from tests.store_inspection import assert_store_is_consistent


@pytest.fixture
def killed_shop(new_store_url, new_paypal):
    server = shop(new_store_url, new_paypal).start()
    yield server
    server.kill()
    server.close_files()


def test_a_server_killed_between_payment_and_activation_loses_nothing(killed_shop, new_paypal):
    account = new_account(killed_shop)
    purchase = approved_purchase(account, new_paypal)
    new_paypal.may_answer.clear()

    def verify_in_vain():
        with pytest.raises((OSError, http.client.HTTPException)):
            verify(account, purchase)

    caller = threading.Thread(target=verify_in_vain)
    caller.start()
    assert new_paypal.taken.wait(10), "the money was never taken"
    killed_shop.kill()
    caller.join()
    new_paypal.may_answer.set()

    killed_shop.start()
    assert status_of(account)["planId"] == "free", "it was killed before the plan was written down"
    completed(verify(account, purchase), purchase)
    completed(verify(account, purchase), purchase)
    assert new_paypal.charges == [(purchase["orderId"], "24.99 USD")]
    assert event_kinds(account, f"account:{account.id}") == ["account.registered", "account.upgraded"]
    killed_shop.kill()
    assert_store_is_consistent(killed_shop.store)


def test_a_paid_plan_survives_the_server(killed_shop, new_paypal):
    account = new_account(killed_shop)
    purchase = approved_purchase(account, new_paypal)
    before = completed(verify(account, purchase), purchase)
    killed_shop.kill()
    killed_shop.start()
    assert status_of(account)["planExpiresAt"] == before["planExpiresAt"]
    assert_store_is_consistent(killed_shop.store)
