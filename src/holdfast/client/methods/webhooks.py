"""Webhooks and their deliveries."""

from __future__ import annotations

from holdfast.client.methods.base import Caller, R


class WebhookMethods(Caller[R]):
    """Webhooks and their deliveries."""

    def create_webhook(self, url: str, *, events: list[str] | None = None, subject: str | None = None) -> R:
        """Create a webhook, whose secret is shown only in this answer."""
        return self.call("create_webhook", url=url, events=events, subject=subject)

    def list_webhooks(self) -> R:
        """List the account's webhooks, without their secrets."""
        return self.call("list_webhooks")

    def read_webhook(self, webhook_id: str) -> R:
        """Read one webhook and the counts of its deliveries."""
        return self.call("read_webhook", id=webhook_id)

    def update_webhook(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: list[str] | None = None,
        subject: str | None = None,
        state: str | None = None,
    ) -> R:
        """Change the URL or the filters of a webhook; `state` pauses (`paused`) or resumes (`active`) it."""
        return self.call("update_webhook", id=webhook_id, url=url, events=events, subject=subject, state=state)

    def delete_webhook(self, webhook_id: str) -> R:
        """Delete a webhook."""
        return self.call("delete_webhook", id=webhook_id)

    def rotate_webhook_secret(self, webhook_id: str, *, grace_seconds: int | None = None) -> R:
        """Give a webhook a new secret; for `grace_seconds`, messages are also signed with the old one."""
        return self.call("rotate_webhook_secret", id=webhook_id, grace_seconds=grace_seconds)

    def test_webhook(self, webhook_id: str) -> R:
        """Send a test message."""
        return self.call("test_webhook", id=webhook_id)

    def list_deliveries(
        self, webhook_id: str, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> R:
        """List deliveries: sent, waiting or dead."""
        return self.call("list_deliveries", id=webhook_id, state=state, limit=limit, cursor=cursor)

    def replay_deliveries(self, webhook_id: str, *, seq: int | None = None, after: int | None = None) -> R:
        """Send deliveries again: one (`seq`), all after a number, or all dead ones. `nextAfter` continues."""
        return self.call("replay_deliveries", id=webhook_id, seq=seq, after=after)

    def create_lock_webhook(
        self,
        url: str,
        *,
        secret: str | None = None,
        events: list[str] | None = None,
        lock_pattern: str | None = None,
    ) -> R:
        """Create a webhook for the caller's locks."""
        return self.call("create_lock_webhook", url=url, secret=secret, events=events, lock_pattern=lock_pattern)

    def list_lock_webhooks(self) -> R:
        """List the webhooks for the caller's locks."""
        return self.call("list_lock_webhooks")

    def delete_lock_webhook(self, webhook_id: str) -> R:
        """Delete a webhook for the caller's locks."""
        return self.call("delete_lock_webhook", id=webhook_id)
