"""The verbs of webhooks: make one, change it, rotate its secret, remove it. What they are told is not decided here."""

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
    """Something about one webhook of an account."""

    hook_id: str
    principal: str | None = None
    """Whose it must be, where webhooks belong to somebody."""

    def needs(self) -> Needs:
        """The webhook."""
        return Needs(rows=((Webhook.table, self.account, self.hook_id),))

    def find(self, view: View) -> Webhook:
        """The webhook; another's is as good as none."""
        found = view.find(Webhook, self.account, self.hook_id)
        if found is None or self.principal not in {None, found.principal}:
            raise WebhookMissing("there is no such webhook")
        return found


class CreateWebhook(WebhookCommand, frozen=True, kw_only=True):
    """Somebody wants to be told from now on."""

    hook: Webhook
    """Everything but its times."""
    limit: int
    own: bool = False
    """Whether only its maker's count towards the limit, or all of the account's."""

    def needs(self) -> Needs:
        """How many there are already."""
        return Needs(webhook_counts=(self._peers,))

    def decide(self, view: View) -> Webhook:
        """The webhook as it was made."""
        live = view.webhooks(self._peers)
        if live >= self.limit:
            raise TooManyWebhooks(f"there are {live} webhooks already, the limit is {self.limit}")
        return view.put(replace(self.hook, created_at=view.now), "created")

    @property
    def _peers(self) -> LimitGroup:
        return (self.account, self.hook.family, self.hook.principal if self.own else "")


class UpdateWebhook(WebhookCommand, frozen=True, kw_only=True):
    """Change where it leads, what it is told of, or whether it is told at all."""

    url: str | None = None
    events: str | None = None
    subject: str | None = None
    """Empty for: about everything."""
    state: str | None = None
    reason: str | None = None

    def decide(self, view: View) -> Webhook:
        """The webhook as it is now; what is not given stays."""
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
    """Its receiver wants nothing from us. What the receiver at its old address said does not concern the new one."""

    url: str
    """Who said so."""
    reason: str

    def decide(self, view: View) -> Webhook:
        """The webhook as it is now."""
        hook = self.find(view)
        if hook.state != ACTIVE or hook.url != self.url:
            return hook
        return view.put(webhooks.set_state(hook, DISABLED, self.reason), DISABLED)


class RotateWebhookSecret(WebhookCommand, frozen=True, kw_only=True):
    """A new secret; the old one signs beside it for a while."""

    secret: str
    grace: Instant

    def decide(self, view: View) -> Webhook:
        """The webhook with its new secret."""
        return view.put(webhooks.rotate(self.find(view), self.secret, view.now + self.grace), "rotated")


class RemoveWebhook(WebhookCommand, frozen=True, kw_only=True):
    """Nobody wants to be told any more. What is still on its way goes with it."""

    def decide(self, view: View) -> Webhook:
        """The webhook as it was."""
        hook = self.find(view)
        view.remove(hook, "removed")
        return hook
