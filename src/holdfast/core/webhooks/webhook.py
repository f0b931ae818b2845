"""A webhook: somebody who wants to be told of what happens, at an address of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from holdfast.core.event import SNAPSHOT, Event, apply
from holdfast.core.event_filter import matches_pattern
from holdfast.core.lease import EXPIRED, FORCED, LOCK, RELEASED
from holdfast.core.names import ELECTION_PREFIX
from holdfast.core.row import Instant, Row

STANDARD, OCTOSTORE = "standard", "octostore"
"""Whose rules a webhook follows: Standard Webhooks, or OctoStore's."""

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
"""What OctoStore calls what happens to a lock."""
LEASE_SUBJECT = "lease:"
_ELECTION_SUBJECTS = LEASE_SUBJECT + ELECTION_PREFIX


class Webhook(Row, frozen=True):
    """Where to send what. It reads the log from its own creation on."""

    table: ClassVar[str] = "webhooks"
    noun: ClassVar[str] = "webhook"
    hashed: ClassVar[frozenset[str]] = frozenset({"url"})
    """An address may be a secret by itself: whoever knows it can post there."""
    json: ClassVar[frozenset[str]] = frozenset({"events"})
    hidden: ClassVar[frozenset[str]] = frozenset({"secret", "old_secret"})

    principal: str = ""
    """Who made it. OctoStore's tell only of this one's own locks."""
    family: str = STANDARD
    url: str = ""
    events: str = ALL
    """A JSON list of kinds; one that ends in `*` stands for all that begin so."""
    subject: str | None = None
    """Only about this one, or with `*` at its end about all that begin so."""
    state: str = ACTIVE
    reason: str | None = None
    """Why it is not active."""
    secret: str | None = None
    old_secret: str | None = None
    """The secret before the last rotation, which still signs until `old_until`."""
    old_until: Instant | None = None
    created_at: Instant = 0


Filters = tuple[tuple[int, Webhook], ...]
"""(the event of the log since which it was so, the webhook with the filter that it had)."""


class Grant(msgspec.Struct, frozen=True):
    """What the log said of a lease when it was granted: the events after that tell only what changed."""

    kind: str | None = None
    holder: str | None = None
    principal: str | None = None
    token: int = 0


LimitGroup = tuple[str, str, str]
"""(account, family, whoever made them or "" for everybody's): webhooks that count towards one limit."""


def is_in_group(hook: Webhook, peers: LimitGroup) -> bool:
    """Whether it counts. The stores' queries must count the same."""
    return (hook.account, hook.family) == peers[:2] and peers[2] in {"", hook.principal}


def active_secrets(hook: Webhook, now: Instant) -> list[str]:
    """Every secret that signs just now, the newest first."""
    old = hook.old_secret if hook.old_until is not None and hook.old_until > now else None
    return [secret for secret in (hook.secret, old) if secret is not None]


def rotate(hook: Webhook, secret: str, until: Instant) -> Webhook:
    """A new secret; the old one signs beside it until then."""
    return replace(hook, secret=secret, old_secret=hook.secret, old_until=until)


def set_state(hook: Webhook, state: str, reason: str | None = None) -> Webhook:
    """Let it rest, or let it go on where it stopped."""
    return replace(hook, state=state, reason=None if state == ACTIVE else reason)


def wants_event(hook: Webhook, event: Event) -> bool:
    """Whether a webhook of ours is told of an event. Rooms of elections belong to no account, so nobody is."""
    kinds = msgspec.json.decode(hook.events, type=list[str])
    return (
        not event.subject.startswith(_ELECTION_SUBJECTS)
        and any(matches_pattern(kind, event.kind) for kind in kinds)
        and matches_pattern(hook.subject, event.subject)
    )


def filter_history(hook: Webhook, history: Iterable[Event]) -> Filters:
    """What it wanted since when, as its own events tell: whatever happened is judged by the filter of its time."""
    found: list[tuple[int, Webhook]] = []
    told: Webhook | None = None
    for event in history:
        if event.version > hook.version:
            break
        if told is None and event.version != 1 and not event.kind.endswith(f".{SNAPSHOT}"):
            continue  # retention has cut the beginning off
        told = apply(told or Webhook(hook.account, hook.id), event)
        then = replace(hook, events=told.events, subject=told.subject)
        if not found or found[-1][1] != then:
            found.append((event.seq, then))
    return tuple(found) or ((0, hook),)


def filter_at(filters: Filters, seq: int) -> Webhook:
    """The webhook as it was when this event happened; before its story begins, as it was first told."""
    return next((hook for since, hook in reversed(filters) if since <= seq), filters[0][1])


def octostore_event(event: Event) -> str | None:
    """What OctoStore calls an event, if it knows it at all."""
    noun, _, verb = event.kind.partition(".")
    return OCTOSTORE_EVENTS.get(verb) if noun == "lease" and not event.subject.startswith(_ELECTION_SUBJECTS) else None


def wants_lock_event(hook: Webhook, event: Event, grant: Grant) -> bool:
    """Whether a webhook of OctoStore's is told: only of its owner's own locks."""
    word = octostore_event(event)
    wanted = msgspec.json.decode(hook.events, type=list[str])
    return (
        word is not None
        and (word in wanted or "*" in wanted)
        and matches_pattern(hook.subject, event.subject)
        and grant.kind == LOCK
        and grant.principal == hook.principal
    )
