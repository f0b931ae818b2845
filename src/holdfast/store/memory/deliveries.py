"""Deliveries in dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from holdfast.core.row import Instant
from holdfast.core.webhooks.delivery import (
    DEAD,
    DELIVERED,
    MAX_PENDING,
    PENDING,
    Delivery,
    FinishedAttempt,
    WebhookKey,
    at_capacity,
    claim,
    due_deliveries,
    replay,
    retry_now,
    settle,
)
from holdfast.core.webhooks.webhook import ACTIVE, Webhook
from holdfast.store.contract.deliveries import MOST_FOUND, START, Behind, Prospect, Reading, Room, fill


class MemoryDeliveries:
    """What the queries of the databases say, said by the rules themselves."""

    def __init__(self, store: Any) -> None:
        self._store = store  # which holds this: its rows, its clock and its lock
        self.kept: dict[tuple[str, str, int], Delivery] = {}
        self.cursors: dict[WebhookKey, int] = {}

    def look(self, limit: int, after: WebhookKey = START) -> Prospect:
        """What there is to do."""
        with self._store.read() as reader:
            active = self._active()
            behind = []
            for hook in [each for each in active if _of(each) > after]:
                floor, last = reader.log_bounds(hook.account)
                cursor = self.cursors.get(_of(hook))
                undecided = self.counts(_of(hook)).get(PENDING, 0)
                if (-1 if cursor is None else cursor) < last and undecided < MAX_PENDING:
                    behind.append(Behind(hook, cursor, floor, last))
            hooks = [_of(hook) for hook in active]
            return Prospect(
                hooks, behind[:limit], is_due=bool(due_deliveries(self.kept.values(), set(hooks), reader.now))
            )

    def read_on(self, readings: Sequence[Reading]) -> list[WebhookKey]:
        """Move cursors and keep what was found."""
        with self._store.read() as reader:
            moved = [reading for reading in readings if self.cursors.get(reading.hook) == reading.cursor]
            for reading in moved:
                self.cursors[reading.hook] = reading.seq
                for each in reading.found:
                    self._add(replace(each, created_at=reader.now, next_at=reader.now))
            return [reading.hook for reading in moved]

    def turn(self, outcomes: Sequence[FinishedAttempt], room: Room) -> list[Delivery]:
        """Settle, then take in hand."""
        with self._store.read() as reader:
            now = reader.now
            for outcome in outcomes:
                self._settle(outcome, now)
            active = {_of(hook) for hook in self._active()}

            def find(busy: Counter[WebhookKey]) -> list[Delivery]:
                hooks, accounts = at_capacity(busy, room.per_hook, room.per_account)
                free = {hook for hook in active if hook not in hooks and hook[0] not in accounts}
                return due_deliveries(self.kept.values(), free, now)[:MOST_FOUND]

            def take(chosen: list[Delivery]) -> list[Delivery]:
                taken = [claim(each, now + room.lasts) for each in chosen]
                self.kept |= {(*each.webhook_key, each.seq): each for each in taken}
                return taken

            return fill(room, find, take)

    def _settle(self, outcome: FinishedAttempt, now: Instant) -> None:
        after = settle(outcome, now)
        key = (*after.webhook_key, after.seq)
        before = self.kept.get(key)
        if before is None or before.claims != after.claims or before.state != PENDING:
            return
        self.kept[key] = after
        for other, each in list(self.kept.items()):
            if after.state == PENDING == each.state and each.ordering_key == after.ordering_key:
                self.kept[other] = replace(each, next_at=max(each.next_at, after.next_at))

    def add(self, delivery: Delivery) -> Delivery:
        """A delivery that comes from no event."""
        with self._store.read() as reader:
            kept = replace(delivery, seq=-reader.now, created_at=reader.now, next_at=reader.now)
            self._add(kept)
            return kept

    def _add(self, delivery: Delivery) -> None:
        if (Webhook.table, *delivery.webhook_key) in self._store.rows:
            self.kept.setdefault((*delivery.webhook_key, delivery.seq), delivery)

    def page(self, hook: WebhookKey, state: str | None, before: int, limit: int) -> list[Delivery]:
        """A webhook's deliveries, the newest first."""
        with self._store.read():
            found = [each for each in self._of(hook) if state in {None, each.state} and each.seq < before]
            return sorted(found, key=lambda each: -each.seq)[:limit]

    def counts(self, hook: WebhookKey) -> dict[str, int]:
        """How many are in each state."""
        with self._store.read():
            return dict(Counter(each.state for each in self._of(hook)))

    def replay(self, hook: WebhookKey, *, seq: int | None, after: int | None, limit: int) -> list[int]:
        """Send again."""

        def wanted(each: Delivery) -> bool:
            if seq is not None:
                return each.seq == seq
            if after is not None:
                return each.settled_at is not None and each.seq > after
            return each.state == DEAD

        with self._store.read() as reader:
            found = sorted((each for each in self._of(hook) if wanted(each)), key=lambda each: each.seq)[:limit]
            self.kept |= {(*each.webhook_key, each.seq): replay(each, reader.now) for each in found}
            for head in found:
                self._hasten(partial(_is_behind, head), reader.now)
            return [each.seq for each in found]

    def hasten(self, hook: WebhookKey) -> None:
        """Nothing of this webhook's waits for its time any longer."""
        with self._store.read() as reader:
            self._hasten(lambda each: each.webhook_key == hook, reader.now)

    def _hasten(self, is_meant: Callable[[Delivery], bool], now: Instant) -> None:
        self.kept |= {key: retry_now(each, now) for key, each in self.kept.items() if is_meant(each)}

    def forget(self, delivered_before: Instant, dead_before: Instant, limit: int) -> int:
        """Remove what is old."""
        before = {DELIVERED: delivered_before, DEAD: dead_before}
        with self._store.read():
            gone = self._drop(lambda each: each.settled_at is not None and each.settled_at < before[each.state], limit)
            known = {*self.cursors, *(each.webhook_key for each in self.kept.values() if each.state == PENDING)}
            for hook in [hook for hook in known if (Webhook.table, *hook) not in self._store.rows]:
                lost = self._drop(lambda each, hook=hook: each.webhook_key == hook, limit)  # type: ignore[misc] # its default
                if lost < limit:
                    self.cursors.pop(hook, None)
                gone = max(gone, lost)
            return gone

    def erase(self, account: str) -> None:
        """Remove everything of an account."""
        self.kept = {key: each for key, each in self.kept.items() if each.account != account}
        self.cursors = {hook: seq for hook, seq in self.cursors.items() if hook[0] != account}

    def _drop(self, is_old: Callable[[Delivery], bool], limit: int) -> int:
        old = [key for key, each in self.kept.items() if is_old(each)][:limit]
        for key in old:
            del self.kept[key]
        return len(old)

    def _of(self, hook: WebhookKey) -> list[Delivery]:
        return [each for each in self.kept.values() if each.webhook_key == hook]

    def _active(self) -> list[Webhook]:
        hooks = [row for row in self._store.rows.values() if isinstance(row, Webhook) and row.state == ACTIVE]
        return sorted(hooks, key=lambda hook: hook.key)


def _is_behind(head: Delivery, delivery: Delivery) -> bool:
    """Whether a delivery must wait until `head` is settled."""
    return delivery.ordering_key == head.ordering_key and delivery.seq > head.seq


def _of(hook: Webhook) -> WebhookKey:
    return (hook.account, hook.id)
