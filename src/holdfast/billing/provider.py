"""What Holdfast asks of a payment provider: an order that a person can approve, and the money once they have."""

from __future__ import annotations

from typing import Protocol

import msgspec

from holdfast.core.purchase import Capture


class Wish(msgspec.Struct, frozen=True):
    """What is to be paid for, and where the payer goes afterwards."""

    purchase_id: str
    what: str
    cents: int
    currency: str
    return_url: str
    cancel_url: str


class Order(msgspec.Struct, frozen=True):
    """The provider knows of it, and waits for the payer."""

    id: str
    approval_url: str
    """Only a person can say yes, and only there."""


class PaymentError(Exception):
    """There is no money. The text is safe to show: it never holds a secret or what the provider sent."""


class NotApproved(PaymentError):
    """The payer has not said yes, or said it too long ago. Nothing was taken."""


class Declined(PaymentError):
    """The payer said yes, but their means of payment did not. Nothing was kept."""


class Unavailable(PaymentError):
    """Nothing is known: the provider did not answer, or not in a way we understand. Asking again is safe."""


class Payments(Protocol):
    """A payment provider. Every question may be asked again: it never pays twice."""

    name: str

    async def create_order(self, wish: Wish) -> Order:
        """Prepare a payment. The same purchase gets the same order again."""

    async def capture(self, order_id: str) -> Capture:
        """Take the money of an approved order, or find that it was taken already."""

    async def close(self) -> None:
        """Hang up."""
