"""Commands of purchases: begin, complete, fail. The payment itself is made by the provider."""

from __future__ import annotations

from holdfast.core import purchase as purchases
from holdfast.core.account import Account
from holdfast.core.errors import PurchaseMissing
from holdfast.core.plan import Plan
from holdfast.core.purchase import COMPLETED, Capture, Purchase
from holdfast.engine.command import Command
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class BeginPurchase(Command[Purchase], frozen=True):
    """Record a purchase whose checkout is open at the provider."""

    purchase_id: str
    plan: Plan
    provider: str
    order_id: str
    checkout_url: str

    def needs(self) -> Needs:
        """Nothing: its id is new."""
        return Needs()

    def decide(self, view: View) -> Purchase:
        """The purchase, with its price."""
        purchase = Purchase(
            self.account,
            self.purchase_id,
            provider=self.provider,
            order_id=self.order_id,
            checkout_url=self.checkout_url,
        )
        return view.put(purchases.begin(purchase, self.plan, view.now), "begun")


class PurchaseCommand(Command[Purchase], frozen=True):
    """A command about one purchase and its account."""

    purchase_id: str

    def needs(self) -> Needs:
        """The purchase and the account."""
        rows = ((Purchase.table, self.account, self.purchase_id), (Account.table, self.account, self.account))
        return Needs(rows=rows)

    def purchase(self, view: View) -> Purchase:
        """The purchase, or PurchaseMissing."""
        found = view.find(Purchase, self.account, self.purchase_id)
        if found is None:
            raise PurchaseMissing("there is no such purchase")
        return found


class CompletePurchase(PurchaseCommand, frozen=True):
    """Complete a purchase that the provider has captured; completing it again changes nothing."""

    capture: Capture

    def decide(self, view: View) -> Purchase:
        """The completed purchase; plan and purchase change together or not at all."""
        purchase = self.purchase(view)
        if purchase.state == COMPLETED:
            return purchase
        found = view.find(Account, self.account, self.account)
        account = found or Account(self.account, self.account, created_at=view.now)
        completed, account = purchases.complete(purchase, self.capture, account, view.now)
        view.put(account, "upgraded")
        return view.put(completed, "completed")


class FailPurchase(PurchaseCommand, frozen=True):
    """Record that the provider declined the payment."""

    def decide(self, view: View) -> Purchase:
        """The purchase as it is now; one that was paid meanwhile stays paid."""
        purchase = self.purchase(view)
        failed = purchases.fail(purchase)
        return purchase if failed == purchase else view.put(failed, "failed")
