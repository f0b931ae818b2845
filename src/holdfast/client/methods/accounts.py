"""Accounts, API keys, plans and purchases."""

from __future__ import annotations

from holdfast.client.methods.base import Caller, R


class AccountMethods(Caller[R]):
    """Accounts, API keys, plans and purchases."""

    def register(self) -> R:
        """Create a separate account, which sees nothing of the others; the answer has its first key.

        Refused with `registration_closed` where the operator does not allow it.
        """
        return self.call("register")

    def list_plans(self) -> R:
        """List the plans with their prices and limits."""
        return self.call("list_plans")

    def billing_status(self) -> R:
        """Read the account's plan, its limits and its usage."""
        return self.call("billing_status")

    def checkout(self, plan_id: str) -> R:
        """Start the purchase of a plan; a person must approve the payment at the link in the answer."""
        return self.call("checkout", plan_id=plan_id)

    def verify_payment(self, purchase_id: str) -> R:
        """Activate the plan after the payment was approved."""
        return self.call("verify_payment", purchase_id=purchase_id)

    def list_keys(self) -> R:
        """List the account's keys, without their secrets."""
        return self.call("list_keys")

    def create_key(
        self,
        name: str,
        scopes: list[str],
        *,
        prefix: str | None = None,
        expires_in_seconds: int | None = None,
        test: bool | None = None,
    ) -> R:
        """Create a key, whose secret is shown only in this answer."""
        return self.call(
            "create_key", name=name, scopes=scopes, prefix=prefix, expires_in_seconds=expires_in_seconds, test=test
        )

    def rotate_own_key(self, *, grace_seconds: int | None = None) -> R:
        """Give the key of this request a new secret; the old one works for `grace_seconds`."""
        return self.call("rotate_own_key", grace_seconds=grace_seconds)

    def read_key(self, key_id: str) -> R:
        """Read one key, and when it was last used."""
        return self.call("read_key", id=key_id)

    def rotate_key(self, key_id: str, *, grace_seconds: int | None = None) -> R:
        """Give a key a new secret; the old one works for `grace_seconds`."""
        return self.call("rotate_key", id=key_id, grace_seconds=grace_seconds)

    def revoke_key(self, key_id: str) -> R:
        """Revoke a key: it stops working at once."""
        return self.call("revoke_key", id=key_id)

    def read_account(self) -> R:
        """Read the account: its key, plan, usage, and when the usage is reset."""
        return self.call("read_account")

    def link_dashboard(self) -> R:
        """Create a link that signs one browser in to the dashboard."""
        return self.call("link_dashboard")

    def export_account(self, *, limit: int | None = None, cursor: str | None = None) -> R:
        """Read all data of the account, one page at a time."""
        return self.call("export_account", limit=limit, cursor=cursor)

    def delete_account(self, confirm: str) -> R:
        """Delete the account and all its data, permanently."""
        return self.call("delete_account", confirm=confirm)

    def settle_account(self, *, require_lease_id: bool | None = None) -> R:
        """Change the settings of the account."""
        return self.call("settle_account", require_lease_id=require_lease_id)

    def recover(self) -> R:
        """End expired leases, tasks and sessions now, instead of at the next sweep."""
        return self.call("recover")
