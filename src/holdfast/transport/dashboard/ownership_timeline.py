"""Timelines of who held what: bars on a time scale, in rows by owner; bars that overlap are drawn in lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.core.holdings.spans import HELD, Span
from holdfast.core.row import SECOND, Instant
from holdfast.transport.dashboard.charts.columns import WIDTH
from holdfast.transport.dashboard.labels import duration
from holdfast.transport.times import rfc3339

LANE_HEIGHT, BAR_HEIGHT = 14, 12
MIN_WIDTH = 2.0
"""So that a very short ownership is still visible."""
MAX_ROWS = 12
MAX_LANES = 6
"""Bars beside each other in one row; further ones share the last lane."""

_MARKS = {
    HELD: "held", "completed": "finished", "done": "finished", "released": "released", "snoozed": "released",
    "handed_over": "released", "asked": "released", "cancelled": "released",
}  # fmt: skip
"""CSS class of a bar by how it ended; other endings are a loss."""


class Bar(msgspec.Struct, frozen=True):
    """A span with its place in the drawing."""

    span: Span
    x: float
    width: float
    lane: int = 0
    title: str = ""
    """What was held, where a row shows several things."""

    @property
    def y(self) -> int:
        """Upper edge."""
        return self.lane * LANE_HEIGHT + (LANE_HEIGHT - BAR_HEIGHT) // 2

    @property
    def mark(self) -> str:
        """CSS class."""
        return _MARKS.get(self.span.how, "lost")

    @property
    def description(self) -> str:
        """Tooltip: what it was, how it ended, how long it lasted, and from when to when."""
        span = self.span
        what = f"{self.title}: " if self.title else ""
        how, until = span.how.replace("_", " "), _whole_seconds(span.until)
        if span.since is None:
            return f"{what}{how}, since before the first event that was read, until {until}"
        time = duration(span.until - span.since)
        since = _whole_seconds(span.since)
        if span.how == HELD:
            return f"{what}held for {time}, since {since}"
        return f"{what}{how} after {time}, from {since} to {until}"


class TimelineRow(msgspec.Struct, frozen=True):
    """All bars of one owner."""

    owner: str | None
    bars: list[Bar]
    lanes: int = 1

    @property
    def height(self) -> int:
        """Height of the drawing."""
        return self.lanes * LANE_HEIGHT


def timeline(found: Sequence[Span]) -> list[TimelineRow]:
    """The rows of the newest owners of one thing, on one time scale; `found` is sorted by the ends."""
    if not found:
        return []
    first, last = min(_start(each, each.until) for each in found), max(each.until for each in found)
    drawn: dict[str | None, list[Bar]] = {}
    for each in reversed(found):
        drawn.setdefault(each.owner, []).append(place(each, first, last))
    return [TimelineRow(owner, bars) for owner, bars in list(drawn.items())[:MAX_ROWS]]


def place(span: Span, first: Instant, last: Instant, lane: int = 0, title: str = "") -> Bar:
    """The bar of a span on a scale from `first` to `last`; what is outside is cut off."""
    scale = WIDTH / max(last - first, 1)
    since, until = max(_start(span, first), first), min(span.until, last)
    width = max((until - since) * scale, MIN_WIDTH)
    x = min((since - first) * scale, WIDTH - width)
    return Bar(span, round(x, 1), round(width, 1), lane, title)


def lanes_of(spans: Iterable[Span]) -> list[tuple[Span, int]]:
    """Each span, by its beginning, with the first lane that is free then."""
    ends: list[Instant] = []
    found = []
    for span in sorted(spans, key=lambda each: (_start(each, 0), each.until, each.id)):
        since = _start(span, 0)
        lane = next((number for number, end in enumerate(ends) if end <= since), len(ends))
        lane = min(lane, MAX_LANES - 1)
        if lane == len(ends):
            ends.append(span.until)
        ends[lane] = max(ends[lane], span.until)
        found.append((span, lane))
    return found


def _start(span: Span, earliest: Instant) -> Instant:
    return earliest if span.since is None else span.since


def _whole_seconds(instant: Instant) -> str:
    return rfc3339(instant // SECOND * SECOND)
