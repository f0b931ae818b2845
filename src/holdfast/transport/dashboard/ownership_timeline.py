"""Ownership timeline of a job, lock or task: one row per owner, one bar per ownership."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.core.event import Event
from holdfast.core.lease import Ended, Lease, is_live
from holdfast.core.row import Instant
from holdfast.decoding import convert
from holdfast.transport.dashboard.charts.columns import WIDTH
from holdfast.transport.dashboard.labels import duration

HEIGHT = 14
MIN_WIDTH = 2.0
"""So that a very short ownership is still visible."""
MAX_ROWS = 12


class Ownership(msgspec.Struct, frozen=True):
    """A time during which one owner held it."""

    owner: str | None
    since: Instant
    until: Instant
    how: str
    """How it ended; `held` if it did not."""
    by: str | None = None
    reason: str | None = None
    x: float = 0.0
    width: float = 0.0

    @property
    def description(self) -> str:
        """Tooltip of the bar."""
        return f"{self.how} after {duration(self.until - self.since)}"


class TimelineRow(msgspec.Struct, frozen=True):
    """All ownerships of one owner."""

    owner: str | None
    bars: list[Ownership]


def ownerships(events: Iterable[Event], lease: Lease, now: Instant) -> list[Ownership]:
    """Ownerships, oldest first.

    The event that ends an ownership describes all of it, so it is found even if its claim is older than the log.
    """
    found = []
    for event in events:
        data = msgspec.json.decode(event.data).get("ended")
        if isinstance(data, dict) and "how" in data:
            ended = convert(data, Ended)
            since = ended.at if ended.claimed_at is None else ended.claimed_at
            found.append(Ownership(ended.owner, since, ended.at, ended.how, ended.by, ended.reason))
    found.sort(key=lambda each: each.until)
    if is_live(lease, now) and lease.claimed_at is not None:
        found.append(Ownership(lease.owner, lease.claimed_at, now, "held"))
    return found


def timeline(found: list[Ownership]) -> list[TimelineRow]:
    """The rows of the newest owners, on one time scale."""
    if not found:
        return []
    first, last = min(each.since for each in found), max(each.until for each in found)
    scale = WIDTH / max(last - first, 1)
    drawn: dict[str | None, list[Ownership]] = {}
    for each in reversed(found):
        width = max((each.until - each.since) * scale, MIN_WIDTH)
        x = min((each.since - first) * scale, WIDTH - width)
        placed = msgspec.structs.replace(each, x=round(x, 1), width=round(width, 1))
        drawn.setdefault(each.owner, []).append(placed)
    return [TimelineRow(owner, bars) for owner, bars in list(drawn.items())[:MAX_ROWS]]
