"""Events: the log as it grows, newest first; one of them in full."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.core.principal import Principal
from holdfast.store.contract import Reader
from holdfast.transport.dashboard import event_lines
from holdfast.transport.dashboard.page import Page, Shown, Visit
from holdfast.transport.dashboard.pages.tasks import names
from holdfast.transport.dashboard.permissions import LOG, may_follow
from holdfast.transport.http.api.event_documents import event_document
from holdfast.transport.http.request import HttpRefusal, encode

PAGE_SIZE = 100
LOOKED_AT, AT_ONCE = 5_000, 500
RECENT = 100_000
"""How far back the events of one request are looked for."""

KINDS = ("lease.", "task.", "session.", "principal.", "account.", "purchase.", "webhook.")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The filter of the address."""

    subject: str = ""
    kind: str = ""
    request: str = ""
    until: int = 0
    """Paused: nothing newer than this is shown."""
    before: int = 0
    """Older ones than this."""

    @property
    def given(self) -> dict[str, str]:
        """What stands in an address for it, wherever it looks."""
        return {"subject": self.subject, "kind": self.kind, "request": self.request}

    @property
    def is_live(self) -> bool:
        """Whether it grows by itself."""
        return not (self.until or self.before)

    def fits(self, event: Event, by: Principal) -> bool:
        """Whether an event is one of them, and one that this visitor may see."""
        return (
            event.subject.startswith(self.subject)
            and event.kind.startswith(self.kind)
            and self.request in {"", event.request_id}
            and may_follow(by, event)
        )


async def show(visit: Visit) -> Shown:
    """The tail of the log."""
    asked = Asked(
        subject=visit.query.get("subject", "").strip(),
        kind=visit.query.get("kind", "").strip(),
        request=visit.query.get("request", "").strip(),
        until=_seq(visit.query.get("until", "")),
        before=_seq(visit.query.get("before", "")),
    )
    by = visit.by

    def find(reader: Reader) -> dict[str, Any]:
        found, older = _look(reader, by, asked)
        floor, last = reader.log_bounds(by.account)
        return {
            "lines": [event_lines.line(event, reader.now) for event in found],
            "older": older,
            "last": last,
            "floor": floor,
            "names": names(reader, by),
        }

    return Shown("events.html", await visit.ctx.read(find) | {"asked": asked, "kinds": KINDS})


async def show_one(visit: Visit) -> Shown:
    """What one event tells."""
    by, seq = visit.by, _seq(visit.item)

    def find(reader: Reader) -> dict[str, Any]:
        found = reader.events(by.account, seq - 1, 1) if seq else []
        if not found or found[0].seq != seq or not may_follow(by, found[0]):
            raise HttpRefusal(404, "there is no such event, or it is older than the log")
        document = event_document(found[0])
        return {
            "event": found[0],
            "line": event_lines.line(found[0], reader.now),
            "data": encode(document["data"]).decode(),
            "names": names(reader, by),
        }

    return Shown("event.html", await visit.ctx.read(find))


def _look(reader: Reader, by: Principal, asked: Asked) -> tuple[list[Event], int]:
    """(newest first, from where to look for older ones; 0 at the beginning of the log)."""
    floor, last = reader.log_bounds(by.account)
    end = min(asked.until or last, asked.before - 1 if asked.before else last, last)
    if asked.request:
        found = reader.events_of_request(by.account, asked.request, max(floor, last - RECENT))
        return [event for event in reversed(found) if event.seq <= end and asked.fits(event, by)][:PAGE_SIZE], 0
    shown: list[Event] = []
    least = max(end - LOOKED_AT, floor)
    while end > least:
        start = max(end - AT_ONCE, least)
        for event in reversed(reader.events(by.account, start, end - start)):
            if asked.fits(event, by):
                shown.append(event)
                if len(shown) == PAGE_SIZE:
                    return shown, event.seq if event.seq - 1 > floor else 0
        end = start
    return shown, least + 1 if least > floor else 0


def _seq(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 17 else 0  # noqa: PLR2004 - below 2^53


PAGE = Page("events", "Events", "v", LOG, show, show_one)
