"""Events page: the event log, newest first, and one event."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.page import PAGE_BYTES
from holdfast.core.principal import Principal
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import event_lines
from holdfast.transport.dashboard.access.permissions import LOG, may_see_event
from holdfast.transport.dashboard.page import Page, PageRequest, TemplateResponse
from holdfast.transport.dashboard.pages.tasks import key_names
from holdfast.transport.http.api.event_documents import event_document
from holdfast.transport.http.request import HttpRefusal, encode

PAGE_SIZE = 100
SCAN_LIMIT, SCAN_PAGE = 5_000, 500
REQUEST_SCAN_LIMIT = 100_000
"""Newest events among which those of one request are searched."""
MAX_DIGITS = 16
"""Enough for 2^53, the largest sequence number."""

KINDS = ("lease.", "reservation.", "task.", "session.", "principal.", "account.", "purchase.", "webhook.")


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The filter of the page's address."""

    subject: str = ""
    kind: str = ""
    request: str = ""
    until: int = 0
    """Paused: no event after this one is shown."""
    before: int = 0
    """Only events before this one are shown."""

    @property
    def parameters(self) -> dict[str, str]:
        """The query parameters of the filter, without the position in the log."""
        return {"subject": self.subject, "kind": self.kind, "request": self.request}

    @property
    def is_live(self) -> bool:
        """Whether new events appear on the page."""
        return not (self.until or self.before)

    def matches(self, event: Event, by: Principal) -> bool:
        """Whether an event meets the filter, and the key may see it."""
        return (
            event.subject.startswith(self.subject)
            and event.kind.startswith(self.kind)
            and self.request in {"", event.request_id}
            and may_see_event(by, event)
        )


async def show(request: PageRequest) -> TemplateResponse:
    """The newest events that match."""
    filters = EventFilter(
        subject=request.query.get("subject", "").strip(),
        kind=request.query.get("kind", "").strip(),
        request=request.query.get("request", "").strip(),
        until=_parse_seq(request.query.get("until", "")),
        before=_parse_seq(request.query.get("before", "")),
    )
    by = request.by

    def read(reader: Reader) -> dict[str, Any]:
        found, older = _read_events(reader, by, filters)
        floor, last = reader.log_bounds(by.account)
        return {
            "lines": event_lines.with_titles(
                reader, by.account, [event_lines.line(event, reader.now) for event in found]
            ),
            "older": older,
            "last": last,
            "floor": floor,
            "key_names": key_names(reader, by),
        }

    return TemplateResponse("events.html", await request.ctx.read(read) | {"filters": filters, "kinds": KINDS})


async def show_one(request: PageRequest) -> TemplateResponse:
    """One event."""
    by, seq = request.by, _parse_seq(request.item)

    def read(reader: Reader) -> dict[str, Any]:
        found = reader.events(by.account, seq - 1, 1) if seq else []
        if not found or found[0].seq != seq or not may_see_event(by, found[0]):
            raise HttpRefusal(404, "there is no such event, or it is older than the log")
        document = event_document(found[0])
        return {
            "event": found[0],
            "line": event_lines.line(found[0], reader.now),
            "data": encode(document["data"]).decode(),
            "key_names": key_names(reader, by),
        }

    return TemplateResponse("event.html", await request.ctx.read(read))


def _read_events(reader: Reader, by: Principal, filters: EventFilter) -> tuple[list[Event], int]:
    """(events newest first, `before` of the next page or 0 if the log has no older events)."""
    floor, last = reader.log_bounds(by.account)
    end = min(filters.until or last, filters.before - 1 if filters.before else last, last)
    if filters.request:
        found = reader.events_of_request(
            by.account, filters.request, max(floor, last - REQUEST_SCAN_LIMIT), SCAN_LIMIT, PAGE_BYTES
        )
        return [event for event in reversed(found) if event.seq <= end and filters.matches(event, by)][:PAGE_SIZE], 0
    matching: list[Event] = []
    least = max(end - SCAN_LIMIT, floor)
    while end > least:
        start = max(end - SCAN_PAGE, least)
        for event in reversed(reader.events(by.account, start, end - start)):
            if filters.matches(event, by):
                matching.append(event)
                if len(matching) == PAGE_SIZE:
                    return matching, event.seq if event.seq - 1 > floor else 0
        end = start
    return matching, least + 1 if least > floor else 0


def _parse_seq(text: str) -> int:
    """A sequence number; 0 if it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS else 0


PAGE = Page("events", "Events", "v", LOG, show, show_one)
