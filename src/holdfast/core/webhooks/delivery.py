"""Deliveries: one event for one webhook, retried until it is delivered or given up.

Deliveries are not in the log: an event for each delivery would cause further deliveries.
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
"""Seconds to wait after the first failure, the second, and so on; after the last one it is given up."""
JITTER = 0.2
"""Random share added to a wait, so that deliveries that failed together are not retried together."""
MAX_RETRY_AFTER = 24 * 3600
"""Seconds: a longer Retry-After of a receiver is cut to this."""
MAX_PENDING = 1_000
"""A webhook reads further events only while it has fewer pending deliveries than this."""

WebhookKey = tuple[str, str]
"""(account, webhook id)."""


class Delivery(msgspec.Struct, frozen=True):
    """One delivery."""

    account: str
    hook: str
    seq: int
    """The event's `seq` in the log. A test message has no event: its number is negative."""
    subject: str
    kind: str
    body: str
    """The exact body to send: retention may remove the event meanwhile."""
    created_at: Instant
    state: str = PENDING
    attempts: int = 0
    """How many attempts are known to have been made."""
    next_at: Instant = 0
    """When the next attempt may be made."""
    claims: int = 0
    """How often a server claimed it: a slow server cannot change a delivery that another one claimed since."""
    claimed_until: Instant | None = None
    status: int | None = None
    """HTTP status of the last attempt."""
    error: str | None = None
    """Error of the last attempt."""
    settled_at: Instant | None = None

    @property
    def webhook_key(self) -> WebhookKey:
        """The webhook it belongs to."""
        return (self.account, self.hook)

    @property
    def ordering_key(self) -> tuple[str, str, str]:
        """Deliveries with the same key are sent in order: one only after the previous one is settled."""
        return (self.account, self.hook, self.subject)


class AttemptResult(msgspec.Struct, frozen=True):
    """The result of one attempt."""

    arrived: bool
    status: int | None = None
    error: str | None = None
    retry_after: float | None = None
    """Seconds from the receiver's Retry-After header."""
    gone: bool = False
    """The receiver answered 410: it wants no more messages."""


def retry_wait(
    attempts: int, result: AttemptResult, schedule: tuple[float, ...], random_fraction: float
) -> Instant | None:
    """How long to wait after the n-th failure; None if that was the last attempt."""
    if attempts > len(schedule):
        return None
    planned = schedule[attempts - 1] * (1 + JITTER * random_fraction)
    requested = min(result.retry_after or 0.0, MAX_RETRY_AFTER)
    return int(max(planned, requested) * SECOND)


class FinishedAttempt(msgspec.Struct, frozen=True):
    """An attempt that has ended. Without a result its outcome is unknown, and the delivery may be tried again."""

    delivery: Delivery
    result: AttemptResult | None
    wait: Instant | None = None
    """How long until the next attempt; None if there is none."""


def record_attempt(attempt: FinishedAttempt, now: Instant) -> Delivery:
    """The delivery after an attempt."""
    delivery, result = replace(attempt.delivery, claimed_until=None), attempt.result
    if result is None:
        return delivery
    tried = replace(delivery, attempts=delivery.attempts + 1, status=result.status, error=result.error)
    if result.arrived:
        return replace(tried, state=DELIVERED, settled_at=now)
    if attempt.wait is None:
        return replace(tried, state=DEAD, settled_at=now)
    return replace(tried, next_at=now + attempt.wait)


def is_sendable(delivery: Delivery, now: Instant) -> bool:
    """Whether it may be sent now, if no earlier delivery with its ordering key is pending."""
    free = delivery.claimed_until is None or delivery.claimed_until <= now
    return delivery.state == PENDING and delivery.next_at <= now and free


def due_deliveries(deliveries: Iterable[Delivery], active: set[WebhookKey], now: Instant) -> list[Delivery]:
    """The deliveries that can be sent now, longest waiting first. The stores' queries apply the same rule."""
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
    """The webhooks and the accounts with as many attempts under way as they may have: no further one is started."""
    per_account_busy = _by_account(busy)
    hooks = [hook for hook, attempts in busy.items() if attempts >= per_hook]
    return hooks, [account for account, attempts in per_account_busy.items() if attempts >= per_account]


def choose_fairly(
    found: Iterable[Delivery], busy: Mapping[WebhookKey, int], per_hook: int, per_account: int, in_all: int
) -> list[Delivery]:
    """As many deliveries as the limits allow.

    Accounts with the fewest attempts under way come first, so that a slow account delays only itself.
    """
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
    """Claim it for one server."""
    return replace(delivery, claims=delivery.claims + 1, claimed_until=until)


def replay(delivery: Delivery, now: Instant) -> Delivery:
    """Send it again with all its attempts; a server that has claimed it loses the claim."""
    pending = replace(delivery, state=PENDING, attempts=0, next_at=now, settled_at=None)
    return replace(pending, claims=delivery.claims + 1, claimed_until=None)


def retry_now(delivery: Delivery, now: Instant) -> Delivery:
    """Make a pending delivery due now; it is sent after the earlier ones with its ordering key."""
    return replace(delivery, next_at=min(delivery.next_at, now)) if delivery.state == PENDING else delivery


class DeliveryFailure(msgspec.Struct, frozen=True):
    """A webhook's receiver fails: since the last delivery that arrived, an attempt was made and none arrived."""

    since: Instant
    """When the first delivery that failed was created; its first attempt follows at once."""
    last: Delivery
    """The newest delivery that failed."""


def find_failure(deliveries: Iterable[Delivery]) -> DeliveryFailure | None:
    """Whether the receiver of one webhook fails now. The stores' queries apply the same rule.

    A delivery that failed counts only if no newer one arrived: a receiver that refuses a few messages works. Tests,
    which have negative numbers, do not count.
    """
    found = [delivery for delivery in deliveries if delivery.seq >= 0]
    arrived = max((delivery.seq for delivery in found if delivery.state == DELIVERED), default=-1)
    failed = sorted(
        (each for each in found if each.seq > arrived and each.attempts > 0), key=lambda each: each.seq
    )  # fmt: skip
    return DeliveryFailure(failed[0].created_at, failed[-1]) if failed else None
