"""A stand-in for PayPal, fresh for every test."""

import pytest

from tests.payments.stand_in import PayPalStandIn


@pytest.fixture
def paypal():
    stand_in = PayPalStandIn().start()
    yield stand_in
    stand_in.stop()
