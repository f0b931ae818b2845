"""Deliveries in SQLite and PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import astuple, replace

from holdfast.core.errors import DamagedRow
from holdfast.core.row import Instant
from holdfast.core.webhooks.delivery import (
    MAX_PENDING,
    PENDING,
    Delivery,
    DeliveryFailure,
    FinishedAttempt,
    WebhookKey,
    at_capacity,
    claim,
    record_attempt,
)
from holdfast.core.webhooks.webhook import Webhook
from holdfast.store.contract.deliveries import (
    MAX_CANDIDATES,
    START,
    Capacity,
    CursorMove,
    LaggingWebhook,
    PendingWork,
    claim_within,
)
from holdfast.store.sql import delivery_queries as queries

if TYPE_CHECKING:
    from holdfast.store.sql.store import Execute, SqlStore

_HOOK_COLUMNS = len(Webhook.__struct_fields__)
_outcome_columns = attrgetter("state", "attempts", "next_at", "status", "error", "settled_at")
"""The columns that an attempt may change."""


class SqlDeliveries:
    """Deliveries in a database, written in separate transactions, not in batches."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._damaged = store.damaged_rows
        self._first_rows = store.dialect.first_rows
        self._due = queries.DUE_DELIVERIES + store.dialect.SKIP_LOCKED

    def pending_work(self, limit: int, after: WebhookKey = START) -> PendingWork:
        """What the dispatcher can do now."""
        with self._store.read() as reader:
            active = [(account, hook) for account, hook in reader.execute(queries.ACTIVE)]
            if not active:
                return PendingWork([], [], is_due=False)
            found = list(reader.execute(queries.LAGGING, *after, MAX_PENDING, MAX_PENDING, limit))
            hooks = self._damaged.decode(Webhook, [each[:_HOOK_COLUMNS] for each in found])
            behind = [
                LaggingWebhook(hook, *each[_HOOK_COLUMNS:])
                for hook, each in zip(hooks, found, strict=True)
                if not isinstance(hook, DamagedRow)
            ]
            is_due = any(reader.execute(queries.IS_DUE, reader.now, reader.now, "[]", "[]", 1))
            return PendingWork(active, behind, is_due)

    def advance_cursors(self, moves: Sequence[CursorMove]) -> list[WebhookKey]:
        """Move cursors and insert the deliveries."""
        with self._store.write() as (execute, now):
            moved = [move for move in moves if execute(queries.MOVE_CURSOR, *move.hook, move.seq, _stored_cursor(move))]
            deliveries = [delivery for move in moved for delivery in move.deliveries]
            if deliveries:
                added = [astuple(replace(delivery, created_at=now, next_at=now)) for delivery in deliveries]
                execute(queries.ADD, _document(added))
            return [move.hook for move in moved]

    def save_outcomes_and_claim(self, outcomes: Sequence[FinishedAttempt], capacity: Capacity) -> list[Delivery]:
        """Save outcomes, then claim what is due."""
        with self._store.write() as (execute, now):
            if outcomes:
                _record_attempts(execute, [record_attempt(outcome, now) for outcome in outcomes], now)

            def find(busy: Counter[WebhookKey]) -> list[Delivery]:
                hooks, accounts = at_capacity(busy, capacity.per_hook, capacity.per_account)
                full = _document(hooks), _document([(account,) for account in accounts])
                return self._damaged.usable(Delivery, execute(self._due, now, now, *full, MAX_CANDIDATES))

            def claim_all(chosen: list[Delivery]) -> list[Delivery]:
                claimed = [claim(delivery, now + capacity.claim_ttl) for delivery in chosen]
                records = [(*each.webhook_key, each.seq, each.claimed_until) for each in claimed]
                execute(queries.CLAIM, _document(records))
                return claimed

            return claim_within(capacity, find, claim_all)

    def add(self, delivery: Delivery) -> Delivery:
        """Insert a delivery that belongs to no event."""
        with self._store.write() as (execute, now):
            added = replace(delivery, seq=-now, created_at=now, next_at=now)
            execute(queries.ADD, _document([astuple(added)]))
            return added

    def page(
        self, hook: WebhookKey, state: str | None, before: int, limit: int, max_bytes: int | None = None
    ) -> list[Delivery]:
        """A webhook's deliveries, newest first."""
        with self._store.read() as reader:
            where = (*hook, state, state, before)
            return reader.page(Delivery, queries.PAGE, (limit, max_bytes), *where)

    def counts(self, hook: WebhookKey) -> dict[str, int]:
        """How many are in each state."""
        with self._store.read() as reader:
            return dict(reader.execute(queries.COUNTS, *hook))

    def failure(self, hook: WebhookKey) -> DeliveryFailure | None:
        """Whether the receiver fails now."""
        with self._store.read() as reader, reader.snapshot():
            first = self._damaged.usable(Delivery, reader.execute(queries.FIRST_FAILED, *hook, *hook))
            last = self._damaged.usable(Delivery, reader.execute(queries.LAST_FAILED, *hook, *hook))
            return DeliveryFailure(first[0].created_at, last[0]) if first and last else None

    def replay(self, hook: WebhookKey, *, seq: int | None, after: int | None, limit: int) -> list[int]:
        """Send again."""
        first = self._first_rows
        with self._store.write() as (execute, now):
            if seq is not None:
                replayed = execute(queries.REPLAY.format(queries.ONE), now, *hook, seq)
            elif after is not None:
                chosen = first("deliveries", queries.SETTLED_AFTER)
                replayed = execute(queries.REPLAY.format(chosen), now, *hook, after, limit)
            else:
                replayed = execute(queries.REPLAY.format(first("deliveries", queries.ALL_DEAD)), now, *hook, limit)
            if replayed:
                subjects = [(*hook, subject, each, now) for each, subject in replayed]
                execute(queries.RETRY_SUBJECT_NOW, _document(subjects))
            return sorted(each for each, _ in replayed)

    def retry_now(self, hook: WebhookKey) -> None:
        """Make all pending deliveries of a webhook due now."""
        with self._store.write() as (execute, now):
            execute(queries.RETRY_NOW, now, *hook, now)

    def delete_old(self, delivered_before: Instant, dead_before: Instant, limit: int) -> int:
        """Delete old deliveries, and those of deleted webhooks."""
        old = queries.DELETE.format(self._first_rows("deliveries", queries.OLD))
        of_hook = queries.DELETE.format(self._first_rows("deliveries", queries.OF_HOOK))
        with self._store.write() as (execute, _):
            deleted = len(execute(old, delivered_before, dead_before, limit))
            for account, hook in execute(queries.DELETED_HOOKS):
                orphaned = len(execute(of_hook, account, hook, limit))
                if orphaned < limit:
                    execute(queries.DELETE_CURSOR, account, hook)
                deleted = max(deleted, orphaned)
            return deleted


def _record_attempts(execute: Execute, tried: list[Delivery], now: Instant) -> None:
    """Save attempts, except of deliveries that another server has claimed since; failed ones delay those after them."""
    records = [(*each.webhook_key, each.seq, each.claims, *_outcome_columns(each)) for each in tried]
    changed = {tuple(key) for key in execute(queries.RECORD_ATTEMPTS, _document(records))}
    delayed = [
        (*each.ordering_key, each.next_at)
        for each in tried
        if (*each.webhook_key, each.seq) in changed and each.state == PENDING and each.next_at > now
    ]
    if delayed:
        execute(queries.DELAY_SUBJECT, _document(delayed))


def _stored_cursor(move: CursorMove) -> int:
    """Where the cursor was; -1 if the webhook has not started, which no stored cursor equals."""
    return -1 if move.cursor is None else move.cursor


def _document(records: list[Any]) -> str:
    return msgspec.json.encode(records).decode()
