"""Frames of `text/event-stream`; each event is a CloudEvents 1.0 document.

A document is one line of ASCII, so text that an agent wrote cannot end a frame or begin another.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.transport.http.api.event_documents import public_event_data
from holdfast.transport.times import rfc3339

MEDIA = b"text/event-stream"
RESET = "reset"
"""Type of the last frame of a stream whose next events were removed. Every event's type has a dot."""


def ascii_json(document: Any) -> bytes:
    """Encode a document as one line of ASCII."""
    return json.dumps(document, separators=(",", ":")).encode()


def cloud_event(event: Event, source: str) -> dict[str, Any]:
    """An event as a CloudEvents document. `sequence` sorts as text, as its definition requires."""
    document = {
        "specversion": "1.0",
        "id": f"{event.account}:{event.seq}",
        "source": source,
        "type": event.kind,
        "subject": event.subject,
        "time": rfc3339(event.at),
        "datacontenttype": "application/json",
        "sequence": f"{event.seq:016d}",
        "version": event.version,
        "actor": event.actor,
        "requestid": event.request_id,
        "data": public_event_data(msgspec.json.decode(event.data)),
    }
    return document | {"traceparent": event.traceparent} if event.traceparent else document


def frame(event: Event, source: str) -> bytes:
    """The frame of one event. A reader sends its `id` as `Last-Event-ID` to continue after it."""
    document = ascii_json(cloud_event(event, source))
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.seq, event.kind.encode(), document)


def opening(cursor: int, retry: int) -> bytes:
    """The first frame, with the cursor. A frame without data moves the reader's cursor without an event."""
    return b": open\nretry: %d\nid: %d\n\n" % (retry, cursor)


def heartbeat(cursor: int) -> bytes:
    """A sign that the stream is open, with the cursor: up to it no further event matches the reader's filter."""
    return b": beat\nid: %d\n\n" % cursor


def reset(oldest: int) -> bytes:
    """The last frame, when retention removed the next events. It has no id: the reader must not continue silently."""
    message = f"events before {oldest} were removed; start again from there, and expect that some were missed"
    document = {"error": "cursor_too_old", "message": message, "oldest": oldest}
    return b"event: %b\ndata: %b\n\n" % (RESET.encode(), ascii_json(document))
