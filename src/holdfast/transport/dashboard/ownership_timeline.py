"""Everybody who owned a name, as lanes of a time line: one lane an owner, one bar an ownership."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.core.event import Event
from holdfast.core.lease import Ended, Lease, is_live
from holdfast.core.row import Instant
from holdfast.transport.dashboard.charts import WIDTH
from holdfast.transport.dashboard.labels import duration

HEIGHT = 14
THINNEST = 2.0
"""An ownership of a moment can still be seen."""
MOST_LANES = 12


class Ownership(msgspec.Struct, frozen=True):
    """Somebody had it from then to then."""

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
    def words(self) -> str:
        """What the bar means."""
        return f"{self.how} after {duration(self.until - self.since)}"


class Lane(msgspec.Struct, frozen=True):
    """All ownerships of one owner."""

    owner: str | None
    bars: list[Ownership]


def ownerships(news: Iterable[Event], lease: Lease, now: Instant) -> list[Ownership]:
    """Oldest first; each end tells of the whole ownership, so that a log whose beginning is gone still does."""
    found = []
    for event in news:
        told = msgspec.json.decode(event.data).get("ended")
        if isinstance(told, dict) and "how" in told:
            story = msgspec.convert(told, Ended)
            since = story.at if story.claimed_at is None else story.claimed_at
            found.append(Ownership(story.owner, since, story.at, story.how, story.by, story.reason))
    found.sort(key=lambda each: each.until)
    if is_live(lease, now) and lease.claimed_at is not None:
        found.append(Ownership(lease.owner, lease.claimed_at, now, "held"))
    return found


def lanes(found: list[Ownership]) -> list[Lane]:
    """The newest owners' lanes, all on one scale of time."""
    if not found:
        return []
    first, last = min(each.since for each in found), max(each.until for each in found)
    scale = WIDTH / max(last - first, 1)
    drawn: dict[str | None, list[Ownership]] = {}
    for each in reversed(found):
        width = max((each.until - each.since) * scale, THINNEST)
        x = min((each.since - first) * scale, WIDTH - width)
        placed = msgspec.structs.replace(each, x=round(x, 1), width=round(width, 1))
        drawn.setdefault(each.owner, []).append(placed)
    return [Lane(owner, bars) for owner, bars in list(drawn.items())[:MOST_LANES]]
