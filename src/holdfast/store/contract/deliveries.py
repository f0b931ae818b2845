"""The interface of webhook deliveries, which are stored beside the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from holdfast.core.row import Instant
from holdfast.core.webhooks.delivery import (
    Delivery,
    DeliveryFailure,
    FinishedAttempt,
    WebhookKey,
    choose_fairly,
)
from holdfast.core.webhooks.webhook import Webhook

START: WebhookKey = ("", "")
"""Sorts before every webhook."""

MAX_CANDIDATES = 256
"""How many due deliveries are read at once."""


class LaggingWebhook(msgspec.Struct, frozen=True):
    """A webhook whose cursor is not at the end of its account's log."""

    hook: Webhook
    cursor: int | None
    """The last event it has read; None if it has not started."""
    floor: int
    """The last event removed by retention."""
    last: int


class CursorMove(msgspec.Struct, frozen=True):
    """A webhook's cursor moved over a part of the log, and the deliveries found there."""

    hook: WebhookKey
    cursor: int | None
    """Where the cursor was: if it has moved since, another server has read this part."""
    seq: int
    deliveries: tuple[Delivery, ...] = ()


class Capacity(msgspec.Struct, frozen=True):
    """How many more deliveries this server can attempt."""

    busy: Mapping[WebhookKey, int]
    """Attempts under way."""
    per_hook: int
    per_account: int
    in_all: int
    claim_ttl: Instant
    """How long a claimed delivery belongs to the server that claimed it."""


class PendingWork(msgspec.Struct, frozen=True):
    """The work of the dispatcher: webhooks that are behind the log, and whether a delivery is due."""

    active: list[WebhookKey]
    behind: list[LaggingWebhook]
    is_due: bool
    """Whether a delivery can be sent now."""


class Deliveries(Protocol):
    """The deliveries of all webhooks. A delivery waits until the earlier ones of the same subject are settled."""

    def pending_work(self, limit: int, after: WebhookKey = START) -> PendingWork:
        """All active webhooks, at most `limit` lagging ones after `after`, and whether a delivery is due."""

    def advance_cursors(self, moves: Sequence[CursorMove]) -> list[WebhookKey]:
        """Move cursors and insert the deliveries, in one transaction. Returns the webhooks whose cursor moved."""

    def save_outcomes_and_claim(self, outcomes: Sequence[FinishedAttempt], capacity: Capacity) -> list[Delivery]:
        """Save the outcomes of attempts, then claim as many due deliveries as fit, in one transaction."""

    def add(self, delivery: Delivery) -> Delivery:
        """Insert a delivery that belongs to no event; the store sets its times and its number."""

    def page(
        self, hook: WebhookKey, state: str | None, before: int, limit: int, max_bytes: int | None = None
    ) -> list[Delivery]:
        """A webhook's deliveries with a number below `before`, newest first, about `max_bytes` bytes of them."""

    def counts(self, hook: WebhookKey) -> dict[str, int]:
        """How many deliveries are in each state."""

    def failure(self, hook: WebhookKey) -> DeliveryFailure | None:
        """Whether the receiver fails now, since when and how (`core.webhooks.delivery.find_failure`)."""

    def replay(self, hook: WebhookKey, *, seq: int | None, after: int | None, limit: int) -> list[int]:
        """Send again: one, or all settled ones after a number, or else all dead ones. Returns their numbers, sorted."""

    def retry_now(self, hook: WebhookKey) -> None:
        """Make all pending deliveries of a webhook due now, because its address or state has changed."""

    def delete_old(self, delivered_before: Instant, dead_before: Instant, limit: int) -> int:
        """Delete old settled deliveries, and those of deleted webhooks, at most `limit` of each; the larger count."""


def claim_within(
    capacity: Capacity,
    find: Callable[[Counter[WebhookKey]], list[Delivery]],
    claim: Callable[[list[Delivery]], list[Delivery]],
) -> list[Delivery]:
    """Claim due deliveries until the capacity is used up.

    Webhooks and accounts at their limit are left out of the next search, so that it finds deliveries of others.
    """
    busy, claimed = Counter(capacity.busy), list[Delivery]()
    while len(claimed) < capacity.in_all:
        found = find(busy)
        chosen = choose_fairly(found, busy, capacity.per_hook, capacity.per_account, capacity.in_all - len(claimed))
        if chosen:
            claimed += claim(chosen)
            busy.update(delivery.webhook_key for delivery in chosen)
        if len(found) < MAX_CANDIDATES:
            break
    return claimed
