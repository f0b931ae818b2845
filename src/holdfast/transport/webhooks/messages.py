"""What a webhook is told of an event, to the byte. It is written once and sent alike at every attempt."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.event import Event, is_takeover
from holdfast.core.row import Instant
from holdfast.core.webhooks.delivery import Delivery
from holdfast.core.webhooks.webhook import (
    LEASE_SUBJECT,
    OCTOSTORE,
    Grant,
    Webhook,
    octostore_event,
    wants_event,
    wants_lock_event,
)
from holdfast.store.contract import Reader
from holdfast.transport.http.api.event_documents import event_document
from holdfast.transport.http.octostore.bodies import pseudonym
from holdfast.transport.times import rfc3339, rfc3339_offset

MAX_BODY = 20_000
"""Bytes. Receivers need not take more; whoever wants the rest asks `/v1/events`."""
ENVELOPE = 200
"""Bytes for what stands around an event."""
TEST = "webhook.test"
_CLAIMED, _EXPIRED = "lease.claimed", "lease.expired"


def message_for(hook: Webhook, event: Event, reader: Reader) -> Delivery | None:
    """What to send of an event, or None if this webhook is not told of it."""
    if hook.family != OCTOSTORE:
        return _delivery(hook, event, _told(event)) if wants_event(hook, event) else None
    if octostore_event(event) is None:
        return None
    grant = grant_of(event, reader)
    if grant is None or not wants_lock_event(hook, event, grant) or _is_taken_over(event, reader):
        return None
    name = event.subject.removeprefix(LEASE_SUBJECT)
    return _delivery(hook, event, _lock_told(octostore_event(event), name, grant, event.at))


def grant_of(event: Event, reader: Reader) -> Grant | None:
    """Whose lease an event is about: it tells so itself, or the last one before it that told."""
    told = event if event.kind == _CLAIMED else reader.last_grant(event.account, event.subject, event.version)
    return None if told is None else msgspec.json.decode(told.data, type=Grant)


def _is_taken_over(event: Event, reader: Reader) -> bool:
    """Whether the lease expired and was claimed in the same request: OctoStore reports the claim alone."""
    if event.kind != _EXPIRED:
        return False
    after = reader.last_grant(event.account, event.subject, event.version + 2)
    return after is not None and is_takeover(event, after)


def a_test(hook: Webhook, now: Instant) -> Delivery:
    """A message that tells of nothing, to see whether it arrives. Each stands in a line of its own."""
    if hook.family == OCTOSTORE:
        body = _lock_told("test", "test", Grant(holder=hook.principal), now)
    else:
        body = {"type": TEST, "timestamp": rfc3339(now), "data": {"webhook_id": hook.id}}
    return Delivery(hook.account, hook.id, 0, f"test:{now}", TEST, _text(body), now)


def message_id(delivery: Delivery) -> str:
    """The same for every attempt: by it a receiver knows what it has seen before."""
    number = str(delivery.seq) if delivery.seq >= 0 else f"test{-delivery.seq}"
    return f"msg_{delivery.hook.removeprefix('whk_')}_{number}"


def _told(event: Event) -> dict[str, Any]:
    document = event_document(event)
    if len(msgspec.json.encode(document)) > MAX_BODY - ENVELOPE:
        document |= {"data": {}, "truncated": True}
    return {"type": event.kind, "timestamp": rfc3339(event.at), "data": document}


def _lock_told(word: str | None, name: str, grant: Grant, at: Instant) -> dict[str, Any]:
    return {
        "event": word,
        "lock": name,
        "holder_id": pseudonym(grant.holder or ""),
        "fencing_token": grant.token,
        "timestamp": rfc3339_offset(at),
    }


def _delivery(hook: Webhook, event: Event, told: dict[str, Any]) -> Delivery:
    return Delivery(hook.account, hook.id, event.seq, event.subject, event.kind, _text(told), event.at)


def _text(told: dict[str, Any]) -> str:
    return msgspec.json.encode(told).decode()
