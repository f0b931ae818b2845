"""Commands of webhooks: create, update, disable, rotate the secret, remove."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.core.errors import TooManyWebhooks, WebhookMissing
from holdfast.core.row import Instant
from holdfast.core.webhooks import webhook as webhooks
from holdfast.core.webhooks.webhook import ACTIVE, DISABLED, LimitGroup, Webhook
from holdfast.engine.command import Command
from holdfast.engine.view import View
from holdfast.store.needs import Needs


class WebhookCommand(Command[Webhook], frozen=True, kw_only=True):
    """A command about one webhook of an account."""

    hook_id: str
    principal: str | None = None
    """Its required owner, where webhooks belong to users."""

    def needs(self) -> Needs:
        """The webhook."""
        return Needs(rows=((Webhook.table, self.account, self.hook_id),))

    def find(self, view: View) -> Webhook:
        """The webhook, or WebhookMissing if it is absent or another user's."""
        found = view.find(Webhook, self.account, self.hook_id)
        if found is None or self.principal not in {None, found.principal}:
            raise WebhookMissing("there is no such webhook")
        return found


class CreateWebhook(WebhookCommand, frozen=True, kw_only=True):
    """Create a webhook, which receives events from now on."""

    hook: Webhook
    """Everything but its times."""
    limit: int
    own: bool = False
    """Whether only its creator's webhooks count toward the limit, or all of the account's."""

    def needs(self) -> Needs:
        """The number of webhooks."""
        return Needs(webhook_counts=(self._group,))

    def decide(self, view: View) -> Webhook:
        """The new webhook."""
        live = view.webhooks(self._group)
        if live >= self.limit:
            raise TooManyWebhooks(f"there are {live} webhooks already, the limit is {self.limit}")
        return view.put(replace(self.hook, created_at=view.now), "created")

    @property
    def _group(self) -> LimitGroup:
        return (self.account, self.hook.family, self.hook.principal if self.own else "")


class UpdateWebhook(WebhookCommand, frozen=True, kw_only=True):
    """Change its URL, its filter or its state."""

    url: str | None = None
    events: str | None = None
    subject: str | None = None
    """Empty means every subject."""
    state: str | None = None
    reason: str | None = None

    def decide(self, view: View) -> Webhook:
        """The webhook as it is now; fields that are None stay."""
        before = self.find(view)
        after = replace(
            before,
            url=before.url if self.url is None else self.url,
            events=before.events if self.events is None else self.events,
            subject=before.subject if self.subject is None else self.subject or None,
        )
        kind = "updated"
        if self.state is not None and self.state != before.state:
            after = webhooks.set_state(after, self.state, self.reason)
            kind = "resumed" if self.state == ACTIVE else self.state
        return before if after == before else view.put(after, kind)


class DisableWebhook(WebhookCommand, frozen=True, kw_only=True):
    """Disable a webhook whose receiver answered 410, unless its URL was changed meanwhile."""

    url: str
    """The URL that answered."""
    reason: str

    def decide(self, view: View) -> Webhook:
        """The webhook as it is now."""
        hook = self.find(view)
        if hook.state != ACTIVE or hook.url != self.url:
            return hook
        return view.put(webhooks.set_state(hook, DISABLED, self.reason), DISABLED)


class RotateWebhookSecret(WebhookCommand, frozen=True, kw_only=True):
    """Replace the secret; the old one also signs during the grace period."""

    secret: str
    grace: Instant

    def decide(self, view: View) -> Webhook:
        """The webhook with its new secret."""
        return view.put(webhooks.rotate(self.find(view), self.secret, view.now + self.grace), "rotated")


class RemoveWebhook(WebhookCommand, frozen=True, kw_only=True):
    """Remove a webhook and its pending deliveries."""

    def decide(self, view: View) -> Webhook:
        """The webhook as it was."""
        hook = self.find(view)
        view.remove(hook, "removed")
        return hook
