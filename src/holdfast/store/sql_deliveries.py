"""Deliveries as both databases keep them; each says only how a statement is said."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from types import ModuleType
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from holdfast.core.row import Instant
from holdfast.core.webhooks.delivery import (
    MAX_PENDING,
    PENDING,
    Delivery,
    FinishedAttempt,
    WebhookKey,
    at_capacity,
    claim,
    settle,
)
from holdfast.core.webhooks.webhook import Webhook
from holdfast.store.contract.deliveries import MOST_FOUND, START, Behind, Prospect, Reading, Room, fill

Say = Callable[..., list[tuple[Any, ...]]]

_HOOK = len(Webhook.__struct_fields__)


class SqlDeliveries(ABC):
    """The same steps in two dialects."""

    queries: ModuleType

    @abstractmethod
    def _looking(self) -> AbstractContextManager[tuple[Say, Instant]]:
        """A look, and the time."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[tuple[Say, Instant]]:
        """One transaction, and the time."""

    def look(self, limit: int, after: WebhookKey = START) -> Prospect:
        """What there is to do."""
        with self._looking() as (say, now):
            active = [(account, hook) for account, hook in say(self.queries.ACTIVE)]
            if not active:
                return Prospect([], [], is_due=False)
            found = say(self.queries.BEHIND, *after, MAX_PENDING, MAX_PENDING, limit)
            behind = [Behind(Webhook(*each[:_HOOK]), *each[_HOOK:]) for each in found]
            return Prospect(active, behind, bool(say(self.queries.DUE, now, now, "[]", "[]", 1)))

    def read_on(self, readings: Sequence[Reading]) -> list[WebhookKey]:
        """Move cursors and keep what was found."""
        with self._writing() as (say, now):
            moved = [
                reading for reading in readings if say(self.queries.MOVE, *reading.hook, reading.seq, _stood(reading))
            ]
            found = [delivery for reading in moved for delivery in reading.found]
            if found:
                kept = [astuple(replace(delivery, created_at=now, next_at=now)) for delivery in found]
                say(self.queries.ADD, _document(kept))
            return [reading.hook for reading in moved]

    def turn(self, outcomes: Sequence[FinishedAttempt], room: Room) -> list[Delivery]:
        """Settle, then take in hand."""
        with self._writing() as (say, now):
            if outcomes:
                self._settle(say, [settle(outcome, now) for outcome in outcomes], now)

            def find(busy: Counter[WebhookKey]) -> list[Delivery]:
                hooks, accounts = at_capacity(busy, room.per_hook, room.per_account)
                full = _document(hooks), _document([(account,) for account in accounts])
                return [Delivery(*columns) for columns in say(self.queries.CANDIDATES, now, now, *full, MOST_FOUND)]

            def take(chosen: list[Delivery]) -> list[Delivery]:
                taken = [claim(delivery, now + room.lasts) for delivery in chosen]
                say(
                    self.queries.CLAIM, _document([(*each.webhook_key, each.seq, each.claimed_until) for each in taken])
                )
                return taken

            return fill(room, find, take)

    def _settle(self, say: Say, settled: list[Delivery], now: Instant) -> None:
        """What another has taken in hand since is left alone, and so are those behind it."""
        changed = {tuple(key) for key in say(self.queries.SETTLE, _document([_settled(each) for each in settled]))}
        later = [
            (*each.ordering_key, each.next_at)
            for each in settled
            if (*each.webhook_key, each.seq) in changed and each.state == PENDING and each.next_at > now
        ]
        if later:
            say(self.queries.STAND_BEHIND, _document(later))

    def add(self, delivery: Delivery) -> Delivery:
        """A delivery that comes from no event."""
        with self._writing() as (say, now):
            kept = replace(delivery, seq=-now, created_at=now, next_at=now)
            say(self.queries.ADD, _document([astuple(kept)]))
            return kept

    def page(self, hook: WebhookKey, state: str | None, before: int, limit: int) -> list[Delivery]:
        """A webhook's deliveries, the newest first."""
        with self._looking() as (say, _):
            return [Delivery(*columns) for columns in say(self.queries.PAGE, *hook, state, state, before, limit)]

    def counts(self, hook: WebhookKey) -> dict[str, int]:
        """How many are in each state."""
        with self._looking() as (say, _):
            return dict(say(self.queries.COUNTS, *hook))

    def replay(self, hook: WebhookKey, *, seq: int | None, after: int | None, limit: int) -> list[int]:
        """Send again."""
        with self._writing() as (say, now):
            if seq is not None:
                again = say(self.queries.REPLAY_ONE, now, *hook, seq)
            elif after is not None:
                again = say(self.queries.REPLAY_AFTER, now, *hook, after, limit)
            else:
                again = say(self.queries.REPLAY_DEAD, now, *hook, limit)
            if again:
                say(self.queries.HASTEN_LINE, _document([(*hook, subject, each, now) for each, subject in again]))
            return sorted(each for each, _ in again)

    def hasten(self, hook: WebhookKey) -> None:
        """Nothing of this webhook's waits for its time any longer."""
        with self._writing() as (say, now):
            say(self.queries.HASTEN, now, *hook, now)

    def forget(self, delivered_before: Instant, dead_before: Instant, limit: int) -> int:
        """Remove what is old."""
        with self._writing() as (say, _):
            gone = len(say(self.queries.FORGET, delivered_before, dead_before, limit))
            for account, hook in say(self.queries.LOST):
                lost = len(say(self.queries.FORGET_LOST, account, hook, limit))
                if lost < limit:
                    say(self.queries.FORGET_CURSOR, account, hook)
                gone = max(gone, lost)
            return gone


def _stood(reading: Reading) -> int:
    """Where it stood; below every place if it has not begun."""
    return -1 if reading.cursor is None else reading.cursor


def _settled(delivery: Delivery) -> tuple[Any, ...]:
    """What an attempt may change, and the claim under which it was made."""
    return (*delivery.webhook_key, delivery.seq, delivery.claims, *_changed(delivery))


_changed = attrgetter("state", "attempts", "next_at", "status", "error", "settled_at")


def _document(records: list[Any]) -> str:
    return msgspec.json.encode(records).decode()
