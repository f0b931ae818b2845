"""Events as their readers see them: times as times, and nothing that proves anything."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import acl
from holdfast.core.event import Event
from holdfast.transport.times import rfc3339

_HIDDEN = {"proof", "holder", "secret", "old_secret"}
"""Columns that prove something, if only by their hash."""
_MOMENTS = ("_at", "_until", "_anchor")
"""How the names of columns end that hold a moment."""


def event_document(event: Event) -> dict[str, Any]:
    """An event as its readers see it: times as times, nothing that proves anything."""
    document = {
        "seq": event.seq,
        "subject": event.subject,
        "version": event.version,
        "kind": event.kind,
        "at": rfc3339(event.at),
        "actor": event.actor,
        "request_id": event.request_id,
        "data": shown_data(msgspec.json.decode(event.data)),
    }
    return document | {"traceparent": event.traceparent} if event.traceparent else document


def shown_data(told: dict[str, Any]) -> dict[str, Any]:
    """What an event tells, without what proves anything."""
    shown: dict[str, Any] = {}
    for name, value in told.items():
        if name in _HIDDEN:
            continue
        if name == "acl" and value is not None:
            shown[name] = acl.redact(msgspec.json.encode(value).decode())
        elif isinstance(value, dict) and name == "ended":
            shown[name] = shown_data(value)
        elif (name.endswith(_MOMENTS) or name == "at") and isinstance(value, int):
            shown[name] = rfc3339(value)
        else:
            shown[name] = value
    return shown
