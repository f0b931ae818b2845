"""Webhook messages: the body that is sent for an event, rendered once and the same in every attempt."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.event import Event, is_takeover
from holdfast.core.log_gap import LOG
from holdfast.core.row import Instant
from holdfast.core.webhooks.delivery import DEAD, Delivery
from holdfast.core.webhooks.webhook import (
    LEASE_SUBJECT,
    OCTOSTORE,
    Grant,
    Webhook,
    octostore_event,
    wants_event,
    wants_lock_event,
)
from holdfast.decoding import decode
from holdfast.store.contract import Reader
from holdfast.transport.http.api.event_documents import event_document
from holdfast.transport.http.octostore.bodies import pseudonym
from holdfast.transport.times import rfc3339, rfc3339_offset

MAX_BODY = 20_000
"""Bytes. Receivers need not accept more; the full event is in `/v1/events`."""
ENVELOPE = 200
"""Bytes reserved for the fields around the event."""
TEST = "webhook.test"
REMOVED = f"{LOG}.removed"
"""Kind of the record of events that were removed before they were sent."""
_CLAIMED, _EXPIRED = "lease.claimed", "lease.expired"


def message_for(hook: Webhook, event: Event, reader: Reader) -> Delivery | None:
    """The delivery for an event, or None if the webhook does not receive it."""
    if hook.family != OCTOSTORE:
        return _delivery(hook, event, _render_event(event)) if wants_event(hook, event) else None
    if octostore_event(event) is None:
        return None
    grant = grant_of(event, reader)
    if grant is None or not wants_lock_event(hook, event, grant) or _is_taken_over(event, reader):
        return None
    name = event.subject.removeprefix(LEASE_SUBJECT)
    return _delivery(hook, event, _render_lock_event(octostore_event(event), name, grant, event.at))


def grant_of(event: Event, reader: Reader) -> Grant | None:
    """The holder and token of the lease that an event is about, from the claim that granted it."""
    claim = event if event.kind == _CLAIMED else reader.last_grant(event.account, event.subject, event.version)
    return None if claim is None else decode(claim.data, Grant)


def _is_taken_over(event: Event, reader: Reader) -> bool:
    """Whether the lease expired and was claimed in the same request: OctoStore reports the claim alone."""
    if event.kind != _EXPIRED:
        return False
    after = reader.last_grant(event.account, event.subject, event.version + 2)
    return after is not None and is_takeover(event, after)


def build_test_delivery(hook: Webhook, now: Instant) -> Delivery:
    """A test message. It has its own subject, so that it does not wait for deliveries of another one."""
    if hook.family == OCTOSTORE:
        body = _render_lock_event("test", "test", Grant(holder=hook.principal), now)
    else:
        body = {"type": TEST, "timestamp": rfc3339(now), "data": {"webhook_id": hook.id}}
    return Delivery(hook.account, hook.id, 0, f"test:{now}", TEST, _to_json(body), now)


def record_of_removed_events(hook: Webhook, after: int, floor: int, now: Instant) -> Delivery:
    """A dead letter for the events after `after`, up to `floor`, which retention removed before they were sent."""
    data = {"webhook_id": hook.id, "after": after, "up_to": floor}
    body = {"type": REMOVED, "timestamp": rfc3339(now), "data": data}
    return Delivery(
        hook.account,
        hook.id,
        floor,
        f"{LOG}:{floor}",
        REMOVED,
        _to_json(body),
        now,
        state=DEAD,
        error=f"retention removed the events {after + 1} to {floor} before they could be sent",
        settled_at=now,
    )


def message_id(delivery: Delivery) -> str:
    """The message id, which is the same in every attempt: receivers use it to recognise duplicates."""
    number = str(delivery.seq) if delivery.seq >= 0 else f"test{-delivery.seq}"
    return f"msg_{delivery.hook.removeprefix('whk_')}_{number}"


def _render_event(event: Event) -> dict[str, Any]:
    document = event_document(event)
    if len(msgspec.json.encode(document)) > MAX_BODY - ENVELOPE:
        document |= {"data": {}, "truncated": True}
    return {"type": event.kind, "timestamp": rfc3339(event.at), "data": document}


def _render_lock_event(kind: str | None, name: str, grant: Grant, at: Instant) -> dict[str, Any]:
    return {
        "event": kind,
        "lock": name,
        "holder_id": pseudonym(grant.holder or ""),
        "fencing_token": grant.token,
        "timestamp": rfc3339_offset(at),
    }


def _delivery(hook: Webhook, event: Event, body: dict[str, Any]) -> Delivery:
    return Delivery(hook.account, hook.id, event.seq, event.subject, event.kind, _to_json(body), event.at)


def _to_json(body: dict[str, Any]) -> str:
    return msgspec.json.encode(body).decode()
