"""Deliveries of the in-memory store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from holdfast.core.page import take_bytes
from holdfast.core.row import Instant
from holdfast.core.webhooks.delivery import (
    DEAD,
    DELIVERED,
    MAX_PENDING,
    PENDING,
    Delivery,
    DeliveryFailure,
    FinishedAttempt,
    WebhookKey,
    at_capacity,
    claim,
    due_deliveries,
    find_failure,
    record_attempt,
    replay,
    retry_now,
)
from holdfast.core.webhooks.webhook import ACTIVE, Webhook
from holdfast.store.contract.deliveries import (
    MAX_CANDIDATES,
    START,
    Capacity,
    CursorMove,
    LaggingWebhook,
    PendingWork,
    claim_within,
)


class MemoryDeliveries:
    """Deliveries in dictionaries, by the rules that the queries of the databases must match."""

    def __init__(self, store: Any) -> None:
        self._store = store  # for its rows, its clock and its lock
        self.rows: dict[tuple[str, str, int], Delivery] = {}
        self.cursors: dict[WebhookKey, int] = {}

    def pending_work(self, limit: int, after: WebhookKey = START) -> PendingWork:
        """What the dispatcher can do now."""
        with self._store.read() as reader:
            active = self._active()
            behind = []
            for hook in [each for each in active if _key(each) > after]:
                floor, last = reader.log_bounds(hook.account)
                cursor = self.cursors.get(_key(hook))
                undecided = self.counts(_key(hook)).get(PENDING, 0)
                if (-1 if cursor is None else cursor) < last and undecided < MAX_PENDING:
                    behind.append(LaggingWebhook(hook, cursor, floor, last))
            hooks = [_key(hook) for hook in active]
            return PendingWork(
                hooks, behind[:limit], is_due=bool(due_deliveries(self.rows.values(), set(hooks), reader.now))
            )

    def advance_cursors(self, moves: Sequence[CursorMove]) -> list[WebhookKey]:
        """Move cursors and insert the deliveries."""
        with self._store.read() as reader:
            moved = [move for move in moves if self.cursors.get(move.hook) == move.cursor]
            for move in moved:
                self.cursors[move.hook] = move.seq
                for each in move.deliveries:
                    self._add(replace(each, created_at=reader.now, next_at=reader.now))
            return [move.hook for move in moved]

    def save_outcomes_and_claim(self, outcomes: Sequence[FinishedAttempt], capacity: Capacity) -> list[Delivery]:
        """Save outcomes, then claim what is due."""
        with self._store.read() as reader:
            now = reader.now
            for outcome in outcomes:
                self._record_attempt(outcome, now)
            active = {_key(hook) for hook in self._active()}

            def find(busy: Counter[WebhookKey]) -> list[Delivery]:
                hooks, accounts = at_capacity(busy, capacity.per_hook, capacity.per_account)
                free = {hook for hook in active if hook not in hooks and hook[0] not in accounts}
                return due_deliveries(self.rows.values(), free, now)[:MAX_CANDIDATES]

            def claim_all(chosen: list[Delivery]) -> list[Delivery]:
                claimed = [claim(each, now + capacity.claim_ttl) for each in chosen]
                self.rows |= {(*each.webhook_key, each.seq): each for each in claimed}
                return claimed

            return claim_within(capacity, find, claim_all)

    def _record_attempt(self, outcome: FinishedAttempt, now: Instant) -> None:
        after = record_attempt(outcome, now)
        key = (*after.webhook_key, after.seq)
        before = self.rows.get(key)
        if before is None or before.claims != after.claims or before.state != PENDING:
            return
        self.rows[key] = after
        for other, each in list(self.rows.items()):
            if after.state == PENDING == each.state and each.ordering_key == after.ordering_key:
                self.rows[other] = replace(each, next_at=max(each.next_at, after.next_at))

    def add(self, delivery: Delivery) -> Delivery:
        """Insert a delivery that belongs to no event."""
        with self._store.read() as reader:
            added = replace(delivery, seq=-reader.now, created_at=reader.now, next_at=reader.now)
            self._add(added)
            return added

    def _add(self, delivery: Delivery) -> None:
        if (Webhook.table, *delivery.webhook_key) in self._store.rows:
            self.rows.setdefault((*delivery.webhook_key, delivery.seq), delivery)

    def page(
        self, hook: WebhookKey, state: str | None, before: int, limit: int, max_bytes: int | None = None
    ) -> list[Delivery]:
        """A webhook's deliveries, the newest first."""
        with self._store.read():
            found = [each for each in self._find(hook) if state in {None, each.state} and each.seq < before]
            return list(take_bytes(sorted(found, key=lambda each: -each.seq)[:limit], max_bytes))

    def counts(self, hook: WebhookKey) -> dict[str, int]:
        """How many are in each state."""
        with self._store.read():
            return dict(Counter(each.state for each in self._find(hook)))

    def failure(self, hook: WebhookKey) -> DeliveryFailure | None:
        """Whether the receiver fails now."""
        with self._store.read():
            return find_failure(self._find(hook))

    def replay(self, hook: WebhookKey, *, seq: int | None, after: int | None, limit: int) -> list[int]:
        """Send again."""

        def is_chosen(each: Delivery) -> bool:
            if seq is not None:
                return each.seq == seq
            if after is not None:
                return each.settled_at is not None and each.seq > after
            return each.state == DEAD

        with self._store.read() as reader:
            found = sorted((each for each in self._find(hook) if is_chosen(each)), key=lambda each: each.seq)[:limit]
            self.rows |= {(*each.webhook_key, each.seq): replay(each, reader.now) for each in found}
            for head in found:
                self._make_due(partial(_is_behind, head), reader.now)
            return [each.seq for each in found]

    def retry_now(self, hook: WebhookKey) -> None:
        """Make all pending deliveries of a webhook due now."""
        with self._store.read() as reader:
            self._make_due(lambda each: each.webhook_key == hook, reader.now)

    def _make_due(self, is_affected: Callable[[Delivery], bool], now: Instant) -> None:
        self.rows |= {key: retry_now(each, now) for key, each in self.rows.items() if is_affected(each)}

    def delete_old(self, delivered_before: Instant, dead_before: Instant, limit: int) -> int:
        """Delete old deliveries, and those of deleted webhooks."""
        before = {DELIVERED: delivered_before, DEAD: dead_before}
        with self._store.read():
            deleted = self._delete(
                lambda each: each.settled_at is not None and each.settled_at < before[each.state], limit
            )
            hooks_with_data = {
                *self.cursors,
                *(each.webhook_key for each in self.rows.values() if each.state == PENDING),
            }
            for hook in [hook for hook in hooks_with_data if (Webhook.table, *hook) not in self._store.rows]:
                orphaned = self._delete(partial(_belongs_to, hook), limit)
                if orphaned < limit:
                    self.cursors.pop(hook, None)
                deleted = max(deleted, orphaned)
            return deleted

    def erase(self, account: str) -> None:
        """Delete everything of an account."""
        self.rows = {key: each for key, each in self.rows.items() if each.account != account}
        self.cursors = {hook: seq for hook, seq in self.cursors.items() if hook[0] != account}

    def _delete(self, is_old: Callable[[Delivery], bool], limit: int) -> int:
        old = [key for key, each in self.rows.items() if is_old(each)][:limit]
        for key in old:
            del self.rows[key]
        return len(old)

    def _find(self, hook: WebhookKey) -> list[Delivery]:
        return [each for each in self.rows.values() if each.webhook_key == hook]

    def _active(self) -> list[Webhook]:
        rows = self._store.indexes.tables.get(Webhook.table, {}).values()
        hooks = [row for row in rows if row.state == ACTIVE]
        return sorted(hooks, key=lambda hook: hook.key)


def _is_behind(head: Delivery, delivery: Delivery) -> bool:
    """Whether a delivery must wait until `head` is settled."""
    return delivery.ordering_key == head.ordering_key and delivery.seq > head.seq


def _belongs_to(hook: WebhookKey, delivery: Delivery) -> bool:
    return delivery.webhook_key == hook


def _key(hook: Webhook) -> WebhookKey:
    return (hook.account, hook.id)
