"""Webhooks: URLs that receive the events of an account, and the filter of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from holdfast.core.event import SNAPSHOT, Event, apply
from holdfast.core.event_filter import is_election_event, matches_pattern
from holdfast.core.lease import EXPIRED, FORCED, LOCK, RELEASED
from holdfast.core.row import Instant, Row
from holdfast.decoding import decode

STANDARD, OCTOSTORE = "standard", "octostore"
"""The protocol of a webhook: Standard Webhooks, or OctoStore's."""

ACTIVE, PAUSED, DISABLED = "active", "paused", "disabled"
STATES = (ACTIVE, PAUSED, DISABLED)

ALL = '["*"]'
OCTOSTORE_EVENTS = {
    "claimed": "acquired",
    "renewed": "renewed",
    RELEASED: "released",
    FORCED: "released",
    EXPIRED: EXPIRED,
}
"""Event verbs of locks, and OctoStore's names for them."""
LEASE_SUBJECT = "lease:"
AT_ONCE = 0.02
"""Seconds until the first retry of an OctoStore webhook."""


class Webhook(Row, frozen=True):
    """One webhook. It receives events from its creation on."""

    table: ClassVar[str] = "webhooks"
    noun: ClassVar[str] = "webhook"
    hashed: ClassVar[frozenset[str]] = frozenset({"url"})
    """A URL may be a secret: anyone who knows it can post there."""
    json: ClassVar[frozenset[str]] = frozenset({"events"})
    hidden: ClassVar[frozenset[str]] = frozenset({"secret", "old_secret"})

    principal: str = ""
    """The principal that created it. OctoStore's webhooks receive only events of that principal's locks."""
    family: str = STANDARD
    url: str = ""
    events: str = ALL
    """A JSON list of event kinds; one that ends in `*` is a prefix."""
    subject: str | None = None
    """Only events of this subject; a subject that ends in `*` is a prefix."""
    state: str = ACTIVE
    reason: str | None = None
    """Why it is not active."""
    secret: str | None = None
    old_secret: str | None = None
    """The secret before the last rotation, which still signs until `old_until`."""
    old_until: Instant | None = None
    created_at: Instant = 0


Filters = tuple[tuple[int, Webhook], ...]
"""(seq of the event that changed the filter, the webhook with that filter), oldest first."""


class Grant(msgspec.Struct, frozen=True):
    """The columns of a lease's `claimed` event: later events of the lease record only what changed."""

    kind: str | None = None
    holder: str | None = None
    principal: str | None = None
    token: int = 0


LimitGroup = tuple[str, str, str]
"""(account, family, principal or "" for all): the webhooks that count toward one limit."""


def is_in_group(hook: Webhook, group: LimitGroup) -> bool:
    """Whether it counts toward that limit. The stores' queries apply the same rule."""
    return (hook.account, hook.family) == group[:2] and group[2] in {"", hook.principal}


def active_secrets(hook: Webhook, now: Instant) -> list[str]:
    """The secrets that sign now, the newest first."""
    old = hook.old_secret if hook.old_until is not None and hook.old_until > now else None
    return [secret for secret in (hook.secret, old) if secret is not None]


def rotate(hook: Webhook, secret: str, until: Instant) -> Webhook:
    """Replace the secret; the old one also signs until `until`."""
    return replace(hook, secret=secret, old_secret=hook.secret, old_until=until)


def retry_schedule(hook: Webhook, configured: tuple[float, ...]) -> tuple[float, ...]:
    """Its waits after failures, in seconds. OctoStore repeats a message at once; then it waits as any other."""
    return (AT_ONCE, *configured) if hook.family == OCTOSTORE else configured


def set_state(hook: Webhook, state: str, reason: str | None = None) -> Webhook:
    """Pause, disable or resume it; a resumed webhook continues where it stopped."""
    return replace(hook, state=state, reason=None if state == ACTIVE else reason)


def wants_event(hook: Webhook, event: Event) -> bool:
    """Whether a standard webhook receives an event. Elections belong to no account, so no webhook receives theirs."""
    kinds = decode(hook.events, list[str])
    return (
        not is_election_event(event)
        and any(matches_pattern(kind, event.kind) for kind in kinds)
        and matches_pattern(hook.subject, event.subject)
    )


def filter_history(hook: Webhook, history: Iterable[Event]) -> Filters:
    """Its filters over time, from its own events: an event is matched against the filter that applied at its `seq`."""
    found: list[tuple[int, Webhook]] = []
    state: Webhook | None = None
    for event in history:
        if event.version > hook.version:
            break
        if state is None and event.version != 1 and not event.kind.endswith(f".{SNAPSHOT}"):
            continue  # retention has removed its first events
        state = apply(state or Webhook(hook.account, hook.id), event)
        filtered = replace(hook, events=state.events, subject=state.subject)
        if not found or found[-1][1] != filtered:
            found.append((event.seq, filtered))
    return tuple(found) or ((0, hook),)


def filter_at(filters: Filters, seq: int) -> Webhook:
    """The webhook with the filter that applied at `seq`; before its first known event, with its first known filter."""
    return next((hook for since, hook in reversed(filters) if since <= seq), filters[0][1])


def octostore_event(event: Event) -> str | None:
    """OctoStore's name for an event, or None if it has none."""
    noun, _, verb = event.kind.partition(".")
    return OCTOSTORE_EVENTS.get(verb) if noun == "lease" and not is_election_event(event) else None


def wants_lock_event(hook: Webhook, event: Event, grant: Grant) -> bool:
    """Whether an OctoStore webhook receives an event: only those of its owner's locks."""
    name = octostore_event(event)
    names = decode(hook.events, list[str])
    return (
        name is not None
        and (name in names or "*" in names)
        and matches_pattern(hook.subject, event.subject)
        and grant.kind == LOCK
        and grant.principal == hook.principal
    )
