"""Accounts, API keys, plans and purchases."""

from __future__ import annotations

from holdfast.client.methods.base import Caller, R


class AccountMethods(Caller[R]):
    """Accounts, API keys, plans and purchases."""

    def register(self) -> R:
        """Get an account and its first key."""
        return self.call("register")

    def list_plans(self) -> R:
        """What can be bought, and what it allows."""
        return self.call("list_plans")

    def billing_status(self) -> R:
        """Your plan, its limits, and what is used of it."""
        return self.call("billing_status")

    def checkout(self, plan_id: str) -> R:
        """Ask for a plan; a person approves the payment."""
        return self.call("checkout", plan_id=plan_id)

    def verify_payment(self, purchase_id: str) -> R:
        """The person has approved: activate the plan."""
        return self.call("verify_payment", purchase_id=purchase_id)

    def list_keys(self) -> R:
        """The account's keys, without their secrets."""
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
        """A new key, shown this once."""
        return self.call(
            "create_key", name=name, scopes=scopes, prefix=prefix, expires_in_seconds=expires_in_seconds, test=test
        )

    def rotate_own_key(self, *, grace_seconds: int | None = None) -> R:
        """A new key for the caller; the old one works a while."""
        return self.call("rotate_own_key", grace_seconds=grace_seconds)

    def read_key(self, key_id: str) -> R:
        """One key, and when it was last used."""
        return self.call("read_key", id=key_id)

    def rotate_key(self, key_id: str, *, grace_seconds: int | None = None) -> R:
        """A new secret for a key; the old one works a while."""
        return self.call("rotate_key", id=key_id, grace_seconds=grace_seconds)

    def revoke_key(self, key_id: str) -> R:
        """A key stops working."""
        return self.call("revoke_key", id=key_id)

    def read_account(self) -> R:
        """The plan, what is used of it, and when it starts anew."""
        return self.call("read_account")

    def link_dashboard(self) -> R:
        """A link that signs a browser in at the dashboard, once."""
        return self.call("link_dashboard")

    def export_account(self, *, limit: int | None = None, cursor: str | None = None) -> R:
        """Everything the account has, a page at a time."""
        return self.call("export_account", limit=limit, cursor=cursor)

    def delete_account(self, confirm: str) -> R:
        """Erase the account and all it has, for good."""
        return self.call("delete_account", confirm=confirm)

    def settle_account(self, *, require_lease_id: bool | None = None) -> R:
        """Decide how your account is served."""
        return self.call("settle_account", require_lease_id=require_lease_id)

    def recover(self) -> R:
        """End now whatever has run out."""
        return self.call("recover")
