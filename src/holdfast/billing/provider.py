"""Payment provider interface: create an order that a person approves, then capture its payment."""

from __future__ import annotations

from typing import Protocol

import msgspec

from holdfast.core.purchase import Capture


class OrderRequest(msgspec.Struct, frozen=True):
    """What is to be paid for, and where the payer is sent afterwards."""

    purchase_id: str
    description: str
    cents: int
    currency: str
    return_url: str
    cancel_url: str


class Order(msgspec.Struct, frozen=True):
    """An order at the provider that waits for the payer's approval."""

    id: str
    approval_url: str
    """The page on which a person approves the payment."""


class PaymentError(Exception):
    """No payment was made. Its message is safe to show: it contains no secret and nothing that the provider sent."""


class NotApproved(PaymentError):
    """The payer has not approved the payment, or the approval has expired. No money was taken."""


class Declined(PaymentError):
    """The payer approved the payment, but it was declined. No money was taken."""


class Unavailable(PaymentError):
    """The outcome is unknown: the provider did not answer, or not in a form we understand. A retry is safe."""


class PaymentProvider(Protocol):
    """A payment provider. Every call may be repeated: it never takes money twice."""

    name: str

    async def create_order(self, order: OrderRequest) -> Order:
        """Create an order. The same purchase gets the same order again."""

    async def capture(self, order_id: str) -> Capture:
        """Capture the payment of an approved order, or return the capture if that has happened already."""

    async def close(self) -> None:
        """Close the connections."""
