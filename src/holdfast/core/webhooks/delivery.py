"""A delivery: one event on its way to one webhook, until it is there or nobody tries any more.

Deliveries are not in the log: whoever reads the log must not write to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter

import msgspec
from msgspec.structs import replace

from holdfast.core.row import SECOND, Instant

PENDING, DELIVERED, DEAD = "pending", "delivered", "dead"
STATES = (PENDING, DELIVERED, DEAD)

SCHEDULE: tuple[float, ...] = (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
"""Seconds to wait after the first failure, the second, and so on; after the last of them nobody tries again."""
JITTER = 0.2
"""How much longer a wait may be: those who failed together must not come back together."""
MAX_RETRY_AFTER = 24 * 3600
"""Seconds: no receiver can put us off for longer."""
MAX_PENDING = 1_000
"""A webhook reads on in the log only while it has fewer deliveries than this under way."""

WebhookKey = tuple[str, str]
"""(account, webhook)."""


class Delivery(msgspec.Struct, frozen=True):
    """One row."""

    account: str
    hook: str
    seq: int
    """The event's place in the log. A test is no event: its number is below zero."""
    subject: str
    kind: str
    body: str
    """What is sent, to the byte: retention may remove the event meanwhile."""
    created_at: Instant
    state: str = PENDING
    attempts: int = 0
    """How often it was tried, as far as we know."""
    next_at: Instant = 0
    """Not before then."""
    claims: int = 0
    """How often a server took it in hand: whoever was too slow cannot settle what another has taken since."""
    claimed_until: Instant | None = None
    status: int | None = None
    """What the receiver answered last."""
    error: str | None = None
    """What went wrong last."""
    settled_at: Instant | None = None

    @property
    def webhook_key(self) -> WebhookKey:
        """Whose it is."""
        return (self.account, self.hook)

    @property
    def ordering_key(self) -> tuple[str, str, str]:
        """Where it stands in line: nobody in it is sent before the one in front is settled."""
        return (self.account, self.hook, self.subject)


class AttemptResult(msgspec.Struct, frozen=True):
    """What came of one attempt."""

    arrived: bool
    status: int | None = None
    error: str | None = None
    retry_after: float | None = None
    """Seconds for which the receiver asked to be left alone."""
    gone: bool = False
    """The receiver wants nothing from us, ever."""


def retry_wait(
    attempts: int, verdict: AttemptResult, schedule: tuple[float, ...], random_fraction: float
) -> Instant | None:
    """How long to wait after failing for the n-th time; None if that was the last time."""
    if attempts > len(schedule):
        return None
    planned = schedule[attempts - 1] * (1 + JITTER * random_fraction)
    asked = min(verdict.retry_after or 0.0, MAX_RETRY_AFTER)
    return int(max(planned, asked) * SECOND)


class FinishedAttempt(msgspec.Struct, frozen=True):
    """An attempt that is over; without a verdict nobody knows how it went, so it is free to be tried again."""

    delivery: Delivery
    verdict: AttemptResult | None
    wait: Instant | None = None
    """How long until the next attempt; None for never."""


def settle(outcome: FinishedAttempt, now: Instant) -> Delivery:
    """The delivery after an attempt."""
    delivery, verdict = replace(outcome.delivery, claimed_until=None), outcome.verdict
    if verdict is None:
        return delivery
    tried = replace(delivery, attempts=delivery.attempts + 1, status=verdict.status, error=verdict.error)
    if verdict.arrived:
        return replace(tried, state=DELIVERED, settled_at=now)
    if outcome.wait is None:
        return replace(tried, state=DEAD, settled_at=now)
    return replace(tried, next_at=now + outcome.wait)


def is_sendable(delivery: Delivery, now: Instant) -> bool:
    """Whether anybody may try it now, if it stands first in its line."""
    free = delivery.claimed_until is None or delivery.claimed_until <= now
    return delivery.state == PENDING and delivery.next_at <= now and free


def due_deliveries(deliveries: Iterable[Delivery], active: set[WebhookKey], now: Instant) -> list[Delivery]:
    """What can be sent now, longest waiting first. The stores' queries must find the same."""
    pending = [delivery for delivery in deliveries if delivery.state == PENDING]
    first: dict[tuple[str, str, str], int] = {}
    for delivery in pending:
        first[delivery.ordering_key] = min(first.get(delivery.ordering_key, delivery.seq), delivery.seq)
    found = [
        each
        for each in pending
        if is_sendable(each, now) and each.seq == first[each.ordering_key] and each.webhook_key in active
    ]
    return sorted(found, key=lambda each: (each.next_at, each.account, each.hook, each.seq))


def at_capacity(busy: Mapping[WebhookKey, int], per_hook: int, per_account: int) -> tuple[list[WebhookKey], list[str]]:
    """Webhooks, and accounts, that have no place left: nothing of theirs need be looked at."""
    of_accounts = _by_account(busy)
    hooks = [hook for hook, attempts in busy.items() if attempts >= per_hook]
    return hooks, [account for account, attempts in of_accounts.items() if attempts >= per_account]


def choose_fairly(
    found: Iterable[Delivery], busy: Mapping[WebhookKey, int], per_hook: int, per_account: int, in_all: int
) -> list[Delivery]:
    """As many as there is room for. Accounts with the least under way come first: the slow fill their own places."""
    of_hooks, of_accounts = Counter(busy), _by_account(busy)
    ranked: list[tuple[int, Delivery]] = []
    for delivery in found:
        if of_hooks[delivery.webhook_key] < per_hook and of_accounts[delivery.account] < per_account:
            of_hooks[delivery.webhook_key] += 1
            of_accounts[delivery.account] += 1
            ranked.append((of_accounts[delivery.account], delivery))
    ranked.sort(key=itemgetter(0))
    return [delivery for _, delivery in ranked[:in_all]]


def _by_account(busy: Mapping[WebhookKey, int]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (account, _), attempts in busy.items():
        totals[account] += attempts
    return totals


def claim(delivery: Delivery, until: Instant) -> Delivery:
    """A server takes it in hand."""
    return replace(delivery, claims=delivery.claims + 1, claimed_until=until)


def replay(delivery: Delivery, now: Instant) -> Delivery:
    """Send it again, with all its chances; whoever has it in hand just now no longer does."""
    afresh = replace(delivery, state=PENDING, attempts=0, next_at=now, settled_at=None)
    return replace(afresh, claims=delivery.claims + 1, claimed_until=None)


def retry_now(delivery: Delivery, now: Instant) -> Delivery:
    """Try it as soon as it is first in its line: what it waited for has changed."""
    return replace(delivery, next_at=min(delivery.next_at, now)) if delivery.state == PENDING else delivery
