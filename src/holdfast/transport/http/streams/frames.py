"""Events as the lines of a stream (`text/event-stream`), each a CloudEvents 1.0 document.

A document is one line of plain ASCII: nothing that an agent wrote can end a frame or begin another.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.transport.http.api.event_documents import shown_data
from holdfast.transport.times import rfc3339

MEDIA = b"text/event-stream"
RESET = "reset"
"""The type of a stream's last frame when what comes next is gone. No event has a type without a dot."""


def ascii_json(document: Any) -> bytes:
    """One line of ASCII."""
    return json.dumps(document, separators=(",", ":")).encode()


def cloud_event(event: Event, source: str) -> dict[str, Any]:
    """An event for everybody outside. `sequence` sorts as text, as its definition asks."""
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
        "data": shown_data(msgspec.json.decode(event.data)),
    }
    return document | {"traceparent": event.traceparent} if event.traceparent else document


def frame(event: Event, source: str) -> bytes:
    """One event. Its `id` is what a reader sends as `Last-Event-ID` to go on from here."""
    document = ascii_json(cloud_event(event, source))
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.seq, event.kind.encode(), document)


def opening(cursor: int, retry: int) -> bytes:
    """The first frame: the stream is open, and stands here. A frame without data moves a reader's cursor silently."""
    return b": open\nretry: %d\nid: %d\n\n" % (retry, cursor)


def beat(cursor: int) -> bytes:
    """Still here, and nothing was missed up to there: a reader of rare events need not look at the others again."""
    return b": beat\nid: %d\n\n" % cursor


def reset(oldest: int) -> bytes:
    """The last frame: retention was faster than this stream. It has no id, so that nobody goes on by mistake."""
    message = f"events before {oldest} are gone; start again from there, knowing that something was missed"
    document = {"error": "cursor_too_old", "message": message, "oldest": oldest}
    return b"event: %b\ndata: %b\n\n" % (RESET.encode(), ascii_json(document))
