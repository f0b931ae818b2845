"""What every store keeps of deliveries: a contract of its own, because none of it is in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from holdfast.core.row import Instant
from holdfast.core.webhooks.delivery import Delivery, FinishedAttempt, WebhookKey, choose_fairly
from holdfast.core.webhooks.webhook import Webhook

START: WebhookKey = ("", "")
"""Before every webhook."""


class Behind(msgspec.Struct, frozen=True):
    """A webhook that has not read its account's log to the end."""

    hook: Webhook
    cursor: int | None
    """How far it has read; None if it has not begun."""
    floor: int
    """Up to where retention has removed the log."""
    last: int


class Reading(msgspec.Struct, frozen=True):
    """How far a webhook has read on, and what it found to send."""

    hook: WebhookKey
    cursor: int | None
    """Where it stood: if it stands elsewhere now, another server has read this stretch."""
    seq: int
    found: tuple[Delivery, ...] = ()


class Room(msgspec.Struct, frozen=True):
    """How much more can be taken in hand."""

    busy: Mapping[WebhookKey, int]
    per_hook: int
    per_account: int
    in_all: int
    lasts: Instant
    """For how long what is taken belongs to whoever takes it."""


class Prospect(msgspec.Struct, frozen=True):
    """What there is to do."""

    active: list[WebhookKey]
    behind: list[Behind]
    is_due: bool


class Deliveries(Protocol):
    """The deliveries of all webhooks."""

    def look(self, limit: int, after: WebhookKey = START) -> Prospect:
        """Which webhooks are active, the next after one that can read on, and whether anything can be sent now."""

    def read_on(self, readings: Sequence[Reading]) -> list[WebhookKey]:
        """Move cursors and keep what was found, in one transaction. Which moved: one that stands elsewhere does not."""

    def turn(self, outcomes: Sequence[FinishedAttempt], room: Room) -> list[Delivery]:
        """Settle what is over, then take in hand what there is room for, in one transaction."""

    def add(self, delivery: Delivery) -> Delivery:
        """A delivery that comes from no event; its times and its number are given here."""

    def page(self, hook: WebhookKey, state: str | None, before: int, limit: int) -> list[Delivery]:
        """A webhook's deliveries before a number, the newest first."""

    def counts(self, hook: WebhookKey) -> dict[str, int]:
        """How many deliveries are in each state."""

    def replay(self, hook: WebhookKey, *, seq: int | None, after: int | None, limit: int) -> list[int]:
        """Send again: one, or all that are settled after a number, or else all dead ones. Which it were, in order."""

    def hasten(self, hook: WebhookKey) -> None:
        """Nothing of this webhook's waits for its time any longer: where it leads, or whether it does, has changed."""

    def forget(self, delivered_before: Instant, dead_before: Instant, limit: int) -> int:
        """Remove what was settled long ago, and what belongs to no webhook any more; how many at most it were."""


MOST_FOUND = 256
"""So many candidates are looked at at once."""


def fill(
    room: Room, find: Callable[[Counter[WebhookKey]], list[Delivery]], take: Callable[[list[Delivery]], list[Delivery]]
) -> list[Delivery]:
    """Take in hand what there is room for. Who has no place left is not found again, so that others come to light."""
    busy, taken = Counter(room.busy), list[Delivery]()
    while len(taken) < room.in_all:
        found = find(busy)
        chosen = choose_fairly(found, busy, room.per_hook, room.per_account, room.in_all - len(taken))
        if chosen:
            taken += take(chosen)
            busy.update(delivery.webhook_key for delivery in chosen)
        if len(found) < MOST_FOUND:
            break
    return taken
