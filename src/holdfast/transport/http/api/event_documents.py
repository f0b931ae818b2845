"""Events as readers see them: times in RFC 3339, and no secrets or proofs."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core import acl
from holdfast.core.event import Event
from holdfast.transport.times import rfc3339

_HIDDEN = {"proof", "ended_proof", "holder", "secret", "old_secret"}
"""Columns that contain a proof or the hash of one."""
_TIME_SUFFIXES = ("_at", "_until", "_anchor")
"""Suffixes of the names of columns that hold a time."""


def event_document(event: Event) -> dict[str, Any]:
    """An event as readers see it."""
    document = {
        "seq": event.seq,
        "subject": event.subject,
        "version": event.version,
        "kind": event.kind,
        "at": rfc3339(event.at),
        "actor": event.actor,
        "request_id": event.request_id,
        "data": public_event_data(msgspec.json.decode(event.data)),
    }
    return document | {"traceparent": event.traceparent} if event.traceparent else document


def public_event_data(data: dict[str, Any]) -> dict[str, Any]:
    """The data of an event, without secrets and proofs."""
    document: dict[str, Any] = {}
    for name, value in data.items():
        if name in _HIDDEN:
            continue
        if name == "acl" and value is not None:
            document[name] = acl.redact(msgspec.json.encode(value).decode())
        elif isinstance(value, dict) and name in {"ended", "offer"}:
            document[name] = public_event_data(value)
        elif (name.endswith(_TIME_SUFFIXES) or name in {"at", "until"}) and isinstance(value, int):
            document[name] = rfc3339(value)
        else:
            document[name] = value
    return document
